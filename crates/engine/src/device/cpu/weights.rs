//! The file's tensors as the CPU reads them: matrices where they are mapped, vectors as f32.
//!
//! Invariant: what opening checked needs no check later: every matrix that a spec names has whole blocks in each row.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use turbospark_experts::HeldLayer;
use turbospark_format::{Gguf, TensorInfo, dequantize};
use turbospark_kernels::Mat;
use turbospark_model::{
    Attention, DeltaGates, FeedForward, KeyValues, Layer, Linear, Mixer, ModelSpec, Norm, Role, Stack,
    TensorRef,
};

use crate::EngineError;

/// A file's matrices and vectors.
pub(super) struct Weights {
    gguf: Arc<Gguf>,
    vectors: HashMap<usize, Vec<f32>>,
    /// The matrices of a layer that is not mapped.
    held: Option<HeldLayer>,
}

impl Weights {
    /// # Errors
    /// A matrix or vector whose bytes don't make the values its shape says.
    pub(super) fn new(gguf: Arc<Gguf>, spec: &ModelSpec) -> Result<Weights, EngineError> {
        let mut vectors = HashMap::new();
        for tensor in vectors_of(spec) {
            let info = &gguf.tensors()[tensor.index];
            vectors.insert(tensor.index, read_vector(&gguf, info)?);
        }
        for (index, (tensor, role)) in gguf.tensors().iter().zip(&spec.roles).enumerate() {
            let used = !vectors.contains_key(&index) && *role != Role::Unused;
            let whole = tensor.shape.first().and_then(|&n| tensor.block_type.row_bytes(n));
            if used && whole.is_none_or(|bytes| bytes as u64 * rows(tensor) as u64 != tensor.bytes) {
                return Err(bad(tensor));
            }
        }
        Ok(Weights { gguf, vectors, held: None })
    }

    /// The values of a vector that the spec names.
    pub(super) fn vector(&self, tensor: TensorRef) -> &[f32] {
        &self.vectors[&tensor.index]
    }

    pub(super) fn norm(&self, norm: &Norm) -> Option<&[f32]> {
        norm.weight.map(|w| self.vector(w))
    }

    /// The matrix of a projection, or `None` where its rows are not whole blocks, which opening refused.
    pub(super) fn matrix(&self, linear: &Linear) -> Option<Mat<'_>> {
        let info = self.info(linear.weight);
        part(info, self.bytes(linear.weight), linear.first_row, linear.rows, linear.columns)
    }

    /// Matrix `i` of a stack.
    pub(super) fn stacked(&self, stack: &Stack, i: usize) -> Option<Mat<'_>> {
        let bytes = self.bytes(stack.weight);
        let size = bytes.len() / stack.n;
        self.of_stack(stack, &bytes[i * size..][..size])
    }

    /// One matrix of a stack, from the bytes of all stored rows of it.
    pub(super) fn of_stack<'b>(&self, stack: &Stack, bytes: &'b [u8]) -> Option<Mat<'b>> {
        part(self.info(stack.weight), bytes, stack.first_row, stack.rows, stack.columns)
    }

    /// Row `row` of a matrix of `width` columns, dequantised.
    pub(super) fn row(&self, tensor: TensorRef, row: usize, out: &mut [f32]) {
        let info = self.info(tensor);
        let bytes = self.bytes(tensor);
        let size = bytes.len() / rows(info);
        dequantize(info.block_type, &bytes[row * size..][..size], out);
    }

    /// Takes matrices from `layer` instead of the mapping, as far as it has them.
    pub(super) fn hold(&mut self, layer: Option<HeldLayer>) {
        self.held = layer;
    }

    fn bytes(&self, tensor: TensorRef) -> &[u8] {
        let held = self.held.as_ref().and_then(|layer| layer.bytes(tensor.index));
        held.unwrap_or_else(|| self.gguf.bytes(self.info(tensor)))
    }

    fn info(&self, tensor: TensorRef) -> &TensorInfo {
        &self.gguf.tensors()[tensor.index]
    }
}

/// Rows of all matrices of a tensor.
fn rows(tensor: &TensorInfo) -> usize {
    tensor.shape.iter().skip(1).product()
}

fn part<'b>(
    info: &TensorInfo,
    bytes: &'b [u8],
    first_row: usize,
    rows: usize,
    columns: usize,
) -> Option<Mat<'b>> {
    let row_bytes = info.block_type.row_bytes(columns)?;
    Mat::new(info.block_type, rows, columns, bytes.get(first_row * row_bytes..)?.get(..rows * row_bytes)?)
}

fn read_vector(gguf: &Gguf, tensor: &TensorInfo) -> Result<Vec<f32>, EngineError> {
    let n: usize = tensor.shape.iter().product();
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

/// Bytes of the vectors that are held as f32.
pub(crate) fn vector_bytes(spec: &ModelSpec, gguf: &Gguf) -> u64 {
    let indices: HashSet<usize> = vectors_of(spec).iter().map(|t| t.index).collect();
    indices.into_iter().map(|i| (gguf.tensors()[i].elements() * size_of::<f32>()) as u64).sum()
}

/// Says of an index in `Gguf::tensors()` whether the forward pass reads that tensor as a vector.
pub(crate) fn is_vector(spec: &ModelSpec) -> impl Fn(usize) -> bool {
    let indices: HashSet<usize> = vectors_of(spec).iter().map(|t| t.index).collect();
    move |index| indices.contains(&index)
}

/// Every tensor that the forward pass reads as a vector.
fn vectors_of(spec: &ModelSpec) -> Vec<TensorRef> {
    let mut found = Vec::new();
    for layer in &spec.layers {
        vectors_of_mixer(&layer.mixer, &mut found);
        vectors_of_feed_forward(layer, &mut found);
        let norms = [Some(&layer.mixer_norm), layer.mixer_post_norm.as_ref(), Some(&layer.ff_norm)];
        found.extend(
            norms.into_iter().chain([layer.ff_post_norm.as_ref()]).flatten().filter_map(|n| n.weight),
        );
        found.extend(layer.side.iter().filter_map(|s| s.norm.weight));
        found.extend(layer.output_scale);
    }
    found.extend(spec.side.iter().filter_map(|s| s.norm.weight));
    found.extend(spec.head.norm.weight);
    found
}

fn vectors_of_mixer(mixer: &Mixer, found: &mut Vec<TensorRef>) {
    match mixer {
        Mixer::Attention(a) => {
            let Attention { q, o, q_norm, kv, rope, sinks, .. } = a;
            found.extend([q, o].into_iter().filter_map(|l| l.bias));
            found.extend(q_norm.iter().filter_map(|n| n.weight));
            found.extend(rope.iter().filter_map(|r| r.freq_factors));
            found.extend(sinks);
            if let KeyValues::Own { k, v, k_norm, v_norm } = kv {
                found.extend([Some(k), v.as_ref()].into_iter().flatten().filter_map(|l| l.bias));
                found.extend([k_norm, v_norm].into_iter().flatten().filter_map(|n| n.weight));
            }
        }
        Mixer::Latent(a) => {
            found.extend(a.kv_norm.weight);
            found.extend(a.rope.freq_factors);
            if let turbospark_model::LatentQuery::LowRank { norm, .. } = &a.q {
                found.extend(norm.weight);
            }
        }
        Mixer::Delta(d) => {
            found.extend([d.conv, d.dt_bias, d.a]);
            found.extend(d.norm.weight);
            let gates = match &d.gates {
                DeltaGates::Split { beta, alpha } => vec![beta, alpha],
                DeltaGates::PerKeyHead(both) => vec![both],
            };
            found.extend(gates.into_iter().chain([&d.qkv, &d.z, &d.out]).filter_map(|l| l.bias));
        }
    }
}

fn vectors_of_feed_forward(layer: &Layer, found: &mut Vec<TensorRef>) {
    let biases = |d: &turbospark_model::DenseFeedForward| [d.gate.bias, d.up.bias, d.down.bias];
    match &layer.feed_forward {
        FeedForward::Dense(d) => found.extend(biases(d).into_iter().flatten()),
        FeedForward::Moe(m) => {
            found.extend(
                [m.gate.bias, m.up.bias, m.down.bias, m.router.projection.bias].into_iter().flatten(),
            );
            found.extend([m.router.correction, m.router.expert_scale].into_iter().flatten());
            found.extend([&m.router.norm, &m.post_norm].into_iter().flatten().filter_map(|n| n.weight));
            if let Some(s) = &m.shared {
                found.extend(biases(&s.network).into_iter().flatten());
                found.extend([&s.norm, &s.post_norm].into_iter().flatten().filter_map(|n| n.weight));
            }
        }
    }
}
