//! The CPU device: each operation is one call of `turbospark-kernels`, or a few.
//!
//! Invariant: matrices stay mapped as the file stores them. Only vectors (norm weights, biases) and rotary tables
//! are held as f32.

mod account;
mod cache;
mod moe;
mod ropes;
mod weights;

pub use cache::CpuCache;

use std::sync::Arc;

use smallvec::SmallVec;
use turbospark_experts::{HeldLayer, Wave};
use turbospark_format::Gguf;
use turbospark_kernels::{
    AttnParams, AttnRow, AttnScratch, Cpu, DeltaGates, DeltaWeights, Groups, Mat, MatJob, MatScratch,
    NotFinite, Pairing, RouterParams, Routes, Scoring,
};
use turbospark_model::{
    Activation, DeltaNet, Embedding, Linear, ModelSpec, Moe, Norm, QueryTemperature, Rope, Router, Stack,
    TensorRef,
};

use super::{Attend, Device};
use crate::EngineError;
use crate::forward::Row;
pub(crate) use account::scratch_bytes;
use moe::{MoeState, Parts};
use ropes::Ropes;
use weights::Weights;
pub(crate) use weights::{is_vector, vector_bytes};

/// Added to the squared length of a delta net's queries and keys; no file has a key for it.
const KEY_EPS: f32 = 1e-6;
/// Added to the sum that chosen scores are divided by, so that scores that all underflow give no NaN.
const NORM_FLOOR: f32 = 1e-20;

/// One entry for each head of a row.
type PerHead<T> = SmallVec<[T; 128]>;

/// Computes on the processor's cores, eagerly.
pub struct CpuDevice {
    cpu: Cpu,
    weights: Weights,
    ropes: Ropes,
    products: MatScratch,
    attention: AttnScratch,
    moe: MoeState,
    /// Outputs of [`Device::stacked`] before heads are put side by side.
    heads: Vec<f32>,
}

/// Activations in memory, `[rows, width]`.
#[derive(Default)]
pub struct CpuBuffer {
    data: Vec<f32>,
    width: usize,
}

impl CpuBuffer {
    /// Bytes held.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.data.capacity() * size_of::<f32>()
    }

    fn rows(&self) -> usize {
        self.data.len() / self.width.max(1)
    }

    /// Sets the shape; the contents are undefined until an operation writes them.
    fn shape(&mut self, rows: usize, width: usize) {
        self.width = width;
        resize(&mut self.data, rows * width);
    }

    fn row(&self, row: usize) -> &[f32] {
        &self.data[row * self.width..(row + 1) * self.width]
    }
}

impl CpuDevice {
    /// A device of `threads` threads for the weights of `spec` in `gguf`.
    ///
    /// # Errors
    /// A matrix or vector whose bytes don't make the values its shape says.
    pub fn new(gguf: Arc<Gguf>, spec: &ModelSpec, threads: usize) -> Result<CpuDevice, EngineError> {
        let weights = Weights::new(gguf, spec)?;
        Ok(CpuDevice {
            cpu: Cpu::new(threads),
            ropes: Ropes::new(spec, &weights),
            weights,
            products: MatScratch::default(),
            attention: AttnScratch::default(),
            moe: MoeState::default(),
            heads: Vec::new(),
        })
    }

    /// Bytes of scratch held, without that of the threads.
    #[cfg(test)]
    pub(crate) fn scratch_held(&self) -> usize {
        let heads = self.heads.capacity() * size_of::<f32>();
        self.ropes.bytes() + heads + self.products.bytes() + self.attention.bytes() + self.moe.bytes()
    }

    /// Threads in use.
    pub fn threads(&self) -> usize {
        self.cpu.threads()
    }
}

impl Device for CpuDevice {
    type Buffer = CpuBuffer;
    type Cache = CpuCache;

    fn begin(&mut self, rows: &[Row]) {
        self.ropes.begin(rows);
    }

    fn hold(&mut self, layer: Option<HeldLayer>) {
        self.weights.hold(layer);
    }

    fn embed(&mut self, embedding: &Embedding, width: usize, rows: &[Row], out: &mut CpuBuffer) {
        out.shape(rows.len(), width);
        for (row, out) in rows.iter().zip(out.data.chunks_exact_mut(width)) {
            self.weights.row(embedding.weight, row.token as usize, out);
        }
        self.scale(out, embedding.scale);
    }

    fn norm(&mut self, norm: &Norm, x: &CpuBuffer, out: &mut CpuBuffer) {
        out.shape(x.rows(), x.width);
        self.cpu.rms_norm(&x.data, self.weights.norm(norm), norm.eps, norm.width, &mut out.data);
    }

    fn norm_in_place(&mut self, norm: &Norm, x: &mut CpuBuffer) {
        self.cpu.rms_norm_in_place(&mut x.data, self.weights.norm(norm), norm.eps, norm.width);
    }

    fn linear(&mut self, x: &CpuBuffer, outputs: &mut [(&Linear, &mut CpuBuffer)]) {
        let rows = x.rows();
        for (linear, out) in outputs.iter_mut() {
            out.shape(rows, linear.rows);
        }
        // Opening checked every matrix, so none is left out here.
        let jobs = outputs.iter_mut().filter_map(|(linear, out)| {
            Some(MatJob { w: self.weights.matrix(linear)?, rows: 0..rows, out: &mut out.data })
        });
        self.cpu.matmul(&mut self.products, &x.data, &mut jobs.collect::<SmallVec<[_; 4]>>());
        for (linear, out) in outputs {
            if let Some(bias) = linear.bias {
                self.cpu.add_bias(&mut out.data, self.weights.vector(bias));
            }
        }
    }

    fn stacked(&mut self, stack: &Stack, x: &CpuBuffer, out: &mut CpuBuffer) {
        let (m, n) = (x.rows(), stack.n);
        out.shape(m, n * stack.rows);
        resize(&mut self.heads, m * n * stack.rows);
        // Head by head, so that each matrix meets all rows at once.
        let picked: PerHead<u32> = (0..n).flat_map(|h| (0..m).map(move |r| (r * n + h) as u32)).collect();
        let outs = self.heads.chunks_exact_mut((m * stack.rows).max(1));
        let jobs = outs.enumerate().filter_map(|(h, out)| {
            Some(MatJob { w: self.weights.stacked(stack, h)?, rows: h * m..(h + 1) * m, out })
        });
        self.cpu.matmul_picked(&mut self.products, &x.data, &picked, &mut jobs.collect::<PerHead<_>>());
        for (row, out) in out.data.chunks_exact_mut(n * stack.rows).enumerate() {
            for (h, out) in out.chunks_exact_mut(stack.rows).enumerate() {
                out.copy_from_slice(&self.heads[(h * m + row) * stack.rows..][..stack.rows]);
            }
        }
    }

    fn expect(&mut self, weights: &[&Linear]) {
        let mats: SmallVec<[Mat<'_>; 4]> = weights.iter().filter_map(|l| self.weights.matrix(l)).collect();
        self.cpu.expect(&mats);
    }

    fn rope(&mut self, rope: &Rope, head_dim: usize, x: &mut CpuBuffer) {
        let pairing = match rope.pairing {
            turbospark_model::Pairing::Interleaved => Pairing::Interleaved,
            turbospark_model::Pairing::Halves => Pairing::Halves,
        };
        if let Some(angles) = self.ropes.angles(rope) {
            self.cpu.rope(&mut x.data, head_dim, pairing, angles);
        }
    }

    fn temperature(&mut self, temperature: &QueryTemperature, rows: &[Row], x: &mut CpuBuffer) {
        for (row, x) in rows.iter().zip(x.data.chunks_exact_mut(x.width)) {
            let steps = row.position / temperature.period;
            let factor = 1.0 + temperature.scale * (1.0 + steps as f32).ln();
            self.cpu.scale(x, factor);
        }
    }

    fn split(&mut self, x: &CpuBuffer, a: usize, b: usize, first: &mut CpuBuffer, second: &mut CpuBuffer) {
        let (rows, heads) = (x.rows(), x.width / (a + b));
        first.shape(rows, heads * a);
        second.shape(rows, heads * b);
        let outs = first.data.chunks_exact_mut(a).zip(second.data.chunks_exact_mut(b));
        for (x, (first, second)) in x.data.chunks_exact(a + b).zip(outs) {
            first.copy_from_slice(&x[..a]);
            second.copy_from_slice(&x[a..]);
        }
    }

    fn join(
        &mut self,
        (first, a): (&CpuBuffer, usize),
        (second, b): (&CpuBuffer, usize),
        out: &mut CpuBuffer,
    ) {
        let heads = first.width / a;
        out.shape(first.rows(), heads * (a + b));
        let parts = first.data.chunks_exact(a).zip(second.data.chunks_exact(b));
        for (out, (first, second)) in out.data.chunks_exact_mut(a + b).zip(parts) {
            out[..a].copy_from_slice(first);
            out[a..].copy_from_slice(second);
        }
    }

    fn cache(
        &mut self,
        layer: usize,
        rows: &[Row],
        caches: &mut [&mut CpuCache],
        k: &CpuBuffer,
        v: Option<&CpuBuffer>,
    ) {
        for_each_sequence(rows, |range, first| {
            let kv = caches[first.sequence].keys_from(layer, first.position);
            let part = |x: &'_ CpuBuffer| range.start * x.width..range.end * x.width;
            let v = v.map_or([].as_slice(), |v| &v.data[part(v)]);
            self.cpu.kv_write(kv, first.position, &k.data[part(k)], v);
        });
    }

    fn attend(
        &mut self,
        attend: &Attend,
        rows: &[Row],
        caches: &[&mut CpuCache],
        q: &CpuBuffer,
        out: &mut CpuBuffer,
    ) {
        let seen: SmallVec<[AttnRow<'_>; 8]> = rows
            .iter()
            .map(|r| AttnRow { kv: caches[r.sequence].keys(attend.layer), position: r.position })
            .collect();
        let v_dim = seen.first().map_or(0, |r| r.kv.v_dim());
        out.shape(rows.len(), attend.n_heads * v_dim);
        let params = AttnParams {
            n_heads: attend.n_heads,
            scale: attend.scale,
            window: attend.window,
            sinks: attend.sinks.map(|s| self.weights.vector(s)),
        };
        self.cpu.attend(&mut self.attention, &params, &q.data, &seen, &mut out.data);
    }

    fn delta(
        &mut self,
        net: &DeltaNet,
        layer: usize,
        rows: &[Row],
        caches: &mut [&mut CpuCache],
        qkv: &mut CpuBuffer,
        (beta, alpha): (&CpuBuffer, Option<&CpuBuffer>),
        out: &mut CpuBuffer,
    ) {
        let shape = cache::delta_shape(net);
        out.shape(rows.len(), net.n_v_heads * net.v_dim);
        let weights = DeltaWeights {
            a: self.weights.vector(net.a),
            dt_bias: self.weights.vector(net.dt_bias),
            eps: KEY_EPS,
        };
        let conv = self.weights.vector(net.conv);
        for_each_sequence(rows, |range, first| {
            let state = caches[first.sequence].state(layer);
            let part = |width: usize| range.start * width..range.end * width;
            let qkv = &mut qkv.data[part(shape.channels())];
            self.cpu.delta_conv(&shape, state, conv, qkv);
            let beta = &beta.data[part(beta.width)];
            let gates = match alpha {
                Some(alpha) => DeltaGates::Split { beta, alpha: &alpha.data[part(alpha.width)] },
                None => DeltaGates::PerKeyHead(beta),
            };
            let out = &mut out.data[part(net.n_v_heads * net.v_dim)];
            self.cpu.delta_rule(&shape, state, &weights, qkv, gates, out);
        });
    }

    fn gated_norm(&mut self, norm: &Norm, x: &mut CpuBuffer, gate: &CpuBuffer) {
        if let Some(weight) = self.weights.norm(norm) {
            self.cpu.gated_norm(&mut x.data, weight, norm.eps, &gate.data);
        }
    }

    fn gate(&mut self, x: &mut CpuBuffer, gate: &CpuBuffer) {
        if gate.width == 1 && x.width != 1 {
            self.cpu.sigmoid_scale_rows(&mut x.data, x.width, &gate.data);
        } else {
            self.cpu.sigmoid_mul(&mut x.data, &gate.data);
        }
    }

    fn glu(&mut self, activation: Activation, gate: &mut CpuBuffer, up: &CpuBuffer) {
        glu(&self.cpu, activation, &mut gate.data, &up.data);
    }

    fn glu_part(&mut self, activation: Activation, gate: &mut CpuBuffer, up: &CpuBuffer, part: usize) {
        let width = gate.width;
        for (gate, up) in gate.data.chunks_exact_mut(width).zip(up.data.chunks_exact(up.width)) {
            glu(&self.cpu, activation, gate, &up[part * width..(part + 1) * width]);
        }
    }

    fn route(
        &mut self,
        router: &Router,
        top_k: usize,
        logits: &CpuBuffer,
        routes: &mut Routes,
    ) -> Result<(), NotFinite> {
        let params = RouterParams {
            n_experts: logits.width,
            top_k,
            scoring: match router.scoring {
                turbospark_model::Scoring::Softmax => Scoring::Softmax,
                turbospark_model::Scoring::SoftmaxOfSelected => Scoring::SoftmaxOfSelected,
                turbospark_model::Scoring::Sigmoid => Scoring::Sigmoid,
            },
            correction: router.correction.map(|c| self.weights.vector(c)),
            groups: router.groups.map(|g| Groups { count: g.count, used: g.used, best: g.best }),
            normalise: router.normalise,
            norm_floor: NORM_FLOOR,
            scale: router.weight_scale,
            expert_scale: router.expert_scale.map(|s| self.weights.vector(s)),
        };
        self.cpu.route(&params, &logits.data, routes)
    }

    fn moe_begin(&mut self, moe: &Moe, routes: &Routes, experts: &[u32]) {
        self.moe.begin(moe, routes, experts);
    }

    fn moe_wave(&mut self, moe: &Moe, x: &CpuBuffer, experts: &[u32], wave: &Wave<'_>) {
        let mut parts = Parts { cpu: &self.cpu, weights: &self.weights, products: &mut self.products };
        self.moe.wave(&mut parts, moe, x, experts, wave);
    }

    fn moe_end(&mut self, moe: &Moe, routes: &Routes, out: &mut CpuBuffer) {
        self.moe.end(&self.cpu, moe, routes, out);
    }

    fn add(&mut self, x: &mut CpuBuffer, y: &CpuBuffer, factor: f32) {
        if factor == 1.0 {
            self.cpu.add(&mut x.data, &y.data);
        } else {
            self.cpu.add_scaled(&mut x.data, &y.data, factor);
        }
    }

    fn scale(&mut self, x: &mut CpuBuffer, factor: f32) {
        if factor != 1.0 {
            self.cpu.scale(&mut x.data, factor);
        }
    }

    fn scale_by(&mut self, x: &mut CpuBuffer, factor: TensorRef) {
        self.cpu.scale(&mut x.data, self.weights.vector(factor)[0]);
    }

    fn pick(&mut self, x: &CpuBuffer, picked: &[usize], out: &mut CpuBuffer) {
        out.shape(picked.len(), x.width);
        for (&row, out) in picked.iter().zip(out.data.chunks_exact_mut(x.width.max(1))) {
            out.copy_from_slice(x.row(row));
        }
    }

    fn keep(&mut self, x: &mut CpuBuffer, kept: &[usize]) {
        for (to, &from) in kept.iter().enumerate() {
            x.data.copy_within(from * x.width..(from + 1) * x.width, to * x.width);
        }
        x.data.truncate(kept.len() * x.width);
    }

    fn soft_cap(&mut self, cap: f32, x: &mut CpuBuffer) {
        self.cpu.soft_cap(&mut x.data, cap);
    }

    fn read<'b>(&mut self, buffer: &'b mut CpuBuffer) -> &'b mut [f32] {
        &mut buffer.data
    }
}

/// Resizes without room to spare: what is held is what the largest contents took, which is what a plan counts.
fn resize<T: Clone + Default>(x: &mut Vec<T>, len: usize) {
    x.reserve_exact(len.saturating_sub(x.len()));
    x.resize(len, T::default());
}

/// `gate = activation(gate) * up`.
fn glu(cpu: &Cpu, activation: Activation, gate: &mut [f32], up: &[f32]) {
    match activation {
        Activation::Silu => cpu.silu_mul(gate, up),
        Activation::GeluTanh => cpu.gelu_mul(gate, up),
        Activation::ClampedSwiglu { limit, alpha } => cpu.swiglu_clamped(gate, up, limit, alpha),
    }
}

/// Calls `f(rows, first of them)` for each run of rows of one sequence.
fn for_each_sequence(rows: &[Row], mut f: impl FnMut(std::ops::Range<usize>, &Row)) {
    let mut start = 0;
    for run in rows.chunk_by(|a, b| a.sequence == b.sequence) {
        f(start..start + run.len(), &run[0]);
        start += run.len();
    }
}
