//! The CPU device: each operation is one call of `turbospark-kernels`.
//!
//! Invariant: matrices stay mapped as the file stores them. Only vectors (norm weights, biases) and rotary tables
//! are held as f32.

use std::collections::HashMap;
use std::sync::Arc;

use turbospark_format::{Gguf, TensorInfo, dequantize};
use turbospark_kernels::{
    AttnParams, AttnRow, AttnScratch, Cpu, KvKind, KvLayer, Mat, MatJob, MatScratch, Pairing, RopeRows,
    RopedHead, Values,
};
use turbospark_model::{
    Activation, Attention, Embedding, Linear, Mixer, ModelSpec, Norm, Role, Rope, TensorRef,
};

use super::Device;
use crate::EngineError;
use crate::forward::Row;

/// Computes on the processor's cores, eagerly.
pub struct CpuDevice {
    cpu: Cpu,
    gguf: Arc<Gguf>,
    /// Norm weights and biases by tensor index.
    vectors: HashMap<usize, Vec<f32>>,
    ropes: Vec<RopeTable>,
    products: MatScratch,
    attention: AttnScratch,
}

/// Frequencies of one rotary embedding, and the angles of the current batch.
struct RopeTable {
    rope: Rope,
    head_dim: usize,
    /// Radians per position, `[head_dim / 2]`.
    frequencies: Vec<f32>,
    angles: RopeRows,
}

/// Activations in memory, `[rows, width]`.
#[derive(Default)]
pub struct CpuBuffer {
    data: Vec<f32>,
    width: usize,
}

impl CpuBuffer {
    fn rows(&self) -> usize {
        self.data.len() / self.width.max(1)
    }
}

/// Keys and values of one sequence, layer by layer.
pub struct CpuCache {
    layers: Vec<KvLayer>,
}

impl CpuCache {
    /// An empty cache; memory is taken in pages as positions are written.
    pub fn new(spec: &ModelSpec, kind: KvKind) -> CpuCache {
        let layer = |mixer: &Mixer| match mixer {
            Mixer::Attention(a) => KvLayer::new(kind, a.n_kv_heads, a.head_dim, Values::Own(a.head_dim)),
        };
        CpuCache { layers: spec.layers.iter().map(|l| layer(&l.mixer)).collect() }
    }

    /// Forgets positions from `positions` on.
    pub fn truncate(&mut self, positions: usize) {
        for layer in &mut self.layers {
            layer.truncate(positions);
        }
    }

    /// Bytes that `positions` positions of `spec` take.
    pub fn bytes_for(spec: &ModelSpec, kind: KvKind, positions: usize) -> u64 {
        let layer = |mixer: &Mixer| match mixer {
            Mixer::Attention(a) => {
                KvLayer::bytes_for(kind, a.n_kv_heads, a.head_dim, Values::Own(a.head_dim), positions)
            }
        };
        spec.layers.iter().map(|l| layer(&l.mixer) as u64).sum()
    }
}

impl CpuDevice {
    /// A device of `threads` threads for the weights of `spec` in `gguf`.
    ///
    /// # Errors
    /// A matrix or vector whose bytes don't make the values its shape says.
    pub fn new(gguf: Arc<Gguf>, spec: &ModelSpec, threads: usize) -> Result<CpuDevice, EngineError> {
        let mut vectors = HashMap::new();
        for (index, (tensor, role)) in gguf.tensors().iter().zip(&spec.roles).enumerate() {
            let is_vector = tensor.shape.iter().skip(1).all(|&d| d == 1);
            if is_vector || matches!(role, Role::Norm | Role::Rotary) {
                vectors.insert(index, read_vector(&gguf, tensor)?);
            } else if matrix(&gguf, tensor).is_none() {
                return Err(bad(tensor));
            }
        }
        let mut device = CpuDevice {
            cpu: Cpu::new(threads),
            gguf,
            vectors,
            ropes: Vec::new(),
            products: MatScratch::default(),
            attention: AttnScratch::default(),
        };
        for layer in &spec.layers {
            let Mixer::Attention(attention) = &layer.mixer;
            if device.table(attention).is_none() {
                let table = RopeTable {
                    rope: attention.rope.clone(),
                    head_dim: attention.head_dim,
                    frequencies: device.frequencies(attention),
                    angles: RopeRows::default(),
                };
                device.ropes.push(table);
            }
        }
        Ok(device)
    }

    /// Threads in use.
    pub fn threads(&self) -> usize {
        self.cpu.threads()
    }

    fn table(&self, attention: &Attention) -> Option<&RopeTable> {
        self.ropes.iter().find(|t| t.rope == attention.rope && t.head_dim == attention.head_dim)
    }

    /// `theta^(-2i / head_dim) / scaling / freq_factors[i]`.
    fn frequencies(&self, attention: &Attention) -> Vec<f32> {
        let Attention { rope, head_dim, .. } = attention;
        let factors = rope.freq_factors.map(|t| self.vector(t));
        (0..head_dim / 2)
            .map(|i| {
                let exponent = (2 * i) as f64 / *head_dim as f64;
                let plain = (1.0 / f64::from(rope.theta).powf(exponent)) as f32 / rope.scaling;
                factors.map_or(plain, |f| plain / f[i])
            })
            .collect()
    }

    fn vector(&self, tensor: TensorRef) -> &[f32] {
        &self.vectors[&tensor.index]
    }
}

/// The matrix of a tensor, or `None` where its bytes are not that matrix.
fn matrix<'a>(gguf: &'a Gguf, tensor: &TensorInfo) -> Option<Mat<'a>> {
    let (columns, rows) = (*tensor.shape.first()?, *tensor.shape.get(1)?);
    Mat::new(tensor.block_type, rows, columns, gguf.bytes(tensor))
}

fn read_vector(gguf: &Gguf, tensor: &TensorInfo) -> Result<Vec<f32>, EngineError> {
    let n = tensor.shape.first().copied().unwrap_or_default();
    let bytes = gguf.bytes(tensor);
    if tensor.block_type.row_bytes(n) != Some(bytes.len()) {
        return Err(bad(tensor));
    }
    let mut values = vec![0.0; n];
    dequantize(tensor.block_type, bytes, &mut values);
    Ok(values)
}

fn bad(tensor: &TensorInfo) -> EngineError {
    EngineError::BadTensor {
        name: tensor.name.clone(),
        shape: tensor.shape.clone(),
        block_type: tensor.block_type.name(),
    }
}

impl Device for CpuDevice {
    type Buffer = CpuBuffer;
    type Cache = CpuCache;

    fn begin(&mut self, rows: &[Row]) {
        for table in &mut self.ropes {
            table.angles.fill(rows.iter().map(|r| r.position), &table.frequencies, 1.0);
        }
    }

    fn shape(&mut self, buffer: &mut CpuBuffer, rows: usize, width: usize) {
        buffer.width = width;
        buffer.data.resize(rows * width, 0.0);
    }

    fn embed(&mut self, embedding: &Embedding, rows: &[Row], out: &mut CpuBuffer) {
        let tensor = &self.gguf.tensors()[embedding.weight.index];
        let bytes = self.gguf.bytes(tensor);
        let row_bytes = bytes.len() / tensor.shape[1];
        for (row, out) in rows.iter().zip(out.data.chunks_exact_mut(out.width)) {
            let start = row.token as usize * row_bytes;
            dequantize(tensor.block_type, &bytes[start..start + row_bytes], out);
        }
        if embedding.scale != 1.0 {
            self.cpu.scale(&mut out.data, embedding.scale);
        }
    }

    fn norm(&mut self, norm: &Norm, x: &CpuBuffer, out: &mut CpuBuffer) {
        self.shape(out, x.rows(), x.width);
        self.cpu.rms_norm(&x.data, Some(self.vector(norm.weight)), norm.eps, x.width, &mut out.data);
    }

    fn norm_in_place(&mut self, norm: &Norm, width: usize, x: &mut CpuBuffer) {
        self.cpu.rms_norm_in_place(&mut x.data, Some(self.vector(norm.weight)), norm.eps, width);
    }

    fn linear(&mut self, x: &CpuBuffer, outputs: &mut [(&Linear, &mut CpuBuffer)]) {
        let rows = x.rows();
        for (linear, out) in outputs.iter_mut() {
            out.width = linear.rows;
            out.data.resize(rows * linear.rows, 0.0);
        }
        let mut jobs: Vec<MatJob<'_>> = outputs
            .iter_mut()
            .filter_map(|(linear, out)| {
                // Opening checked every matrix, so none is left out here.
                let w = matrix(&self.gguf, &self.gguf.tensors()[linear.weight.index])?;
                Some(MatJob { w, out: &mut out.data })
            })
            .collect();
        self.cpu.matmul(&mut self.products, &x.data, rows, &mut jobs);
        for (linear, out) in outputs {
            if let Some(bias) = linear.bias {
                self.cpu.add_bias(&mut out.data, &self.vectors[&bias.index]);
            }
        }
    }

    fn expect(&mut self, weights: &[&Linear]) {
        let mats: Vec<Mat<'_>> =
            weights.iter().filter_map(|l| matrix(&self.gguf, &self.gguf.tensors()[l.weight.index])).collect();
        self.cpu.expect(&mats);
    }

    fn rope(&mut self, attention: &Attention, x: &mut CpuBuffer) {
        let pairing = match attention.rope.pairing {
            turbospark_model::Pairing::Interleaved => Pairing::Interleaved,
            turbospark_model::Pairing::Halves => Pairing::Halves,
        };
        if let Some(table) = self.table(attention) {
            let head = RopedHead { width: attention.head_dim, at: 0 };
            self.cpu.rope(&mut x.data, head, pairing, &table.angles);
        }
    }

    fn cache(
        &mut self,
        layer: usize,
        rows: &[Row],
        caches: &mut [&mut CpuCache],
        k: &CpuBuffer,
        v: &CpuBuffer,
    ) {
        // Consecutive rows of one sequence are written as one piece.
        let mut start = 0;
        for piece in rows.chunk_by(|a, b| a.sequence == b.sequence) {
            let end = start + piece.len();
            let Row { sequence, position, .. } = piece[0];
            let cache = &mut caches[sequence].layers[layer];
            let (k, v) = (&k.data[start * k.width..end * k.width], &v.data[start * v.width..end * v.width]);
            self.cpu.kv_write(cache, position, k, v);
            start = end;
        }
    }

    fn attend(
        &mut self,
        attention: &Attention,
        layer: usize,
        rows: &[Row],
        caches: &[&mut CpuCache],
        q: &CpuBuffer,
        out: &mut CpuBuffer,
    ) {
        let seen: Vec<AttnRow<'_>> = rows
            .iter()
            .map(|r| AttnRow { kv: &caches[r.sequence].layers[layer], position: r.position })
            .collect();
        let Attention { n_heads, scale, window, .. } = *attention;
        self.shape(out, rows.len(), q.width);
        let params = AttnParams { n_heads, scale, window, sinks: None };
        self.cpu.attend(&mut self.attention, &params, &q.data, &seen, &mut out.data);
    }

    fn glu(&mut self, activation: Activation, gate: &mut CpuBuffer, up: &CpuBuffer) {
        match activation {
            Activation::Silu => self.cpu.silu_mul(&mut gate.data, &up.data),
            Activation::GeluTanh => self.cpu.gelu_mul(&mut gate.data, &up.data),
        }
    }

    fn add(&mut self, x: &mut CpuBuffer, y: &CpuBuffer) {
        self.cpu.add(&mut x.data, &y.data);
    }

    fn pick(&mut self, x: &CpuBuffer, picked: &[usize], out: &mut CpuBuffer) {
        self.shape(out, picked.len(), x.width);
        for (&row, out) in picked.iter().zip(out.data.chunks_exact_mut(x.width)) {
            out.copy_from_slice(&x.data[row * x.width..(row + 1) * x.width]);
        }
    }

    fn soft_cap(&mut self, cap: f32, x: &mut CpuBuffer) {
        self.cpu.soft_cap(&mut x.data, cap);
    }

    fn read<'b>(&mut self, buffer: &'b mut CpuBuffer) -> &'b mut [f32] {
        &mut buffer.data
    }
}
