//! The seam between the forward pass and what computes it: coarse operations on many rows at a time.
//!
//! Invariant: an implementation computes each row as if it stood alone, so that a row's result doesn't
//! depend on its neighbours. Weights are named by the spec; the device holds the file and finds them itself.

mod cpu;

pub use cpu::{CpuBuffer, CpuCache, CpuDevice};
pub(crate) use cpu::{is_vector, scratch_bytes, vector_bytes};

use turbospark_experts::{HeldLayer, Wave};
use turbospark_kernels::{NotFinite, Routes};
use turbospark_model::{
    Activation, DeltaNet, Embedding, Linear, Moe, Norm, QueryTemperature, Rope, Router, Stack, TensorRef,
};

use crate::forward::Row;

/// What an attention layer's scores look like.
#[derive(Debug, Clone, Copy)]
pub struct Attend {
    /// Index of the layer whose cache is read.
    pub layer: usize,
    /// Query heads.
    pub n_heads: usize,
    /// Factor on the scores.
    pub scale: f32,
    /// Positions that a row sees, its own included.
    pub window: Option<usize>,
    /// `[n_heads]` logits in the softmax's denominator.
    pub sinks: Option<TensorRef>,
}

/// What computes the forward pass. Buffers are `[rows, width]` f32; an operation's outputs get their shape from it.
pub trait Device {
    /// Activations on the device.
    type Buffer: Default;
    /// What one sequence leaves in the layers.
    type Cache;

    /// Starts a batch: positions decide the rotary angles of all its layers.
    fn begin(&mut self, rows: &[Row]);

    /// Takes the matrices of a layer from `layer` until the next call; those that it has not are where they are mapped.
    fn hold(&mut self, layer: Option<HeldLayer>);

    /// `out[r] = scale * weight[rows[r].token]` of `width` elements; tokens have been checked.
    fn embed(&mut self, embedding: &Embedding, width: usize, rows: &[Row], out: &mut Self::Buffer);

    /// `out = norm(x)`, for each part of the norm's width.
    fn norm(&mut self, norm: &Norm, x: &Self::Buffer, out: &mut Self::Buffer);

    /// `x = norm(x)`, for each part of the norm's width: whole rows or heads.
    fn norm_in_place(&mut self, norm: &Norm, x: &mut Self::Buffer);

    /// `out = weight · x + bias` for several weights that share `x`, shaped as their rows say.
    fn linear(&mut self, x: &Self::Buffer, outputs: &mut [(&Linear, &mut Self::Buffer)]);

    /// `out[r, i] = matrix i · x[r, i]` for each matrix of a stack: `x` is `[rows, n, columns]`, `out` `[rows, n, rows of a matrix]`.
    fn stacked(&mut self, stack: &Stack, x: &Self::Buffer, out: &mut Self::Buffer);

    /// Says which weights the call of [`Device::linear`] after the next one will read, so that the device may fetch them
    /// early. Never changes a result.
    fn expect(&mut self, _weights: &[&Linear]) {}

    /// Turns the leading elements of each head of `head_dim` by its row's position.
    fn rope(&mut self, rope: &Rope, head_dim: usize, x: &mut Self::Buffer);

    /// Multiplies each row by the factor of its position.
    fn temperature(&mut self, temperature: &QueryTemperature, rows: &[Row], x: &mut Self::Buffer);

    /// Takes each head of `a + b` elements apart: `first` gets its first `a`, `second` the rest.
    fn split(
        &mut self,
        x: &Self::Buffer,
        a: usize,
        b: usize,
        first: &mut Self::Buffer,
        second: &mut Self::Buffer,
    );

    /// The reverse of [`Device::split`]. A `second` of one head a row is given to each head of `first`.
    fn join(&mut self, first: (&Self::Buffer, usize), second: (&Self::Buffer, usize), out: &mut Self::Buffer);

    /// Writes keys and values `[rows, heads, width]` at the rows' positions of their sequences' caches; no `v` where the
    /// values are part of the keys.
    fn cache(
        &mut self,
        layer: usize,
        rows: &[Row],
        caches: &mut [&mut Self::Cache],
        k: &Self::Buffer,
        v: Option<&Self::Buffer>,
    );

    /// Attention of each row over its sequence up to its own position: `out` is `[rows, n_heads, width of a value]`.
    fn attend(
        &mut self,
        attend: &Attend,
        rows: &[Row],
        caches: &[&mut Self::Cache],
        q: &Self::Buffer,
        out: &mut Self::Buffer,
    );

    /// The recurrence of a gated delta net over the rows of each sequence: `qkv` is what the convolution reads and is used up,
    /// `gates` are `beta` and `alpha`, or one buffer of both; `out` is `[rows, n_v_heads, v_dim]` before its norm.
    #[allow(clippy::too_many_arguments)]
    fn delta(
        &mut self,
        net: &DeltaNet,
        layer: usize,
        rows: &[Row],
        caches: &mut [&mut Self::Cache],
        qkv: &mut Self::Buffer,
        gates: (&Self::Buffer, Option<&Self::Buffer>),
        out: &mut Self::Buffer,
    );

    /// `x = norm(x) * silu(gate)`.
    fn gated_norm(&mut self, norm: &Norm, x: &mut Self::Buffer, gate: &Self::Buffer);

    /// `x *= sigmoid(gate)`; a gate of one element a row is for the whole row.
    fn gate(&mut self, x: &mut Self::Buffer, gate: &Self::Buffer);

    /// `gate = activation(gate) * up`.
    fn glu(&mut self, activation: Activation, gate: &mut Self::Buffer, up: &Self::Buffer);

    /// `gate = activation(gate) * up[.., part]`, where each row of `up` is made of parts as wide as `gate`.
    fn glu_part(&mut self, activation: Activation, gate: &mut Self::Buffer, up: &Self::Buffer, part: usize);

    /// The experts of each row and their weights, from the router's logits `[rows, n_experts]`.
    ///
    /// # Errors
    /// The first logit that is NaN or infinite.
    fn route(
        &mut self,
        router: &Router,
        top_k: usize,
        logits: &Self::Buffer,
        routes: &mut Routes,
    ) -> Result<(), NotFinite>;

    /// Prepares the sum over ranks of `weight * expert(x)`: `experts` ascend and are all that the routes name.
    fn moe_begin(&mut self, moe: &Moe, routes: &Routes, experts: &[u32]);

    /// Computes the experts of a wave for all their rows of `x`.
    fn moe_wave(&mut self, moe: &Moe, x: &Self::Buffer, experts: &[u32], wave: &Wave<'_>);

    /// `out[r] = sum over ranks of weight * expert(x[r])`, in rank order, after all experts' waves.
    fn moe_end(&mut self, moe: &Moe, routes: &Routes, out: &mut Self::Buffer);

    /// `x += factor * y`.
    fn add(&mut self, x: &mut Self::Buffer, y: &Self::Buffer, factor: f32);

    /// `x *= factor`.
    fn scale(&mut self, x: &mut Self::Buffer, factor: f32);

    /// `x *= factor`, a tensor of one element.
    fn scale_by(&mut self, x: &mut Self::Buffer, factor: TensorRef);

    /// `out[i] = x[picked[i]]`.
    fn pick(&mut self, x: &Self::Buffer, picked: &[usize], out: &mut Self::Buffer);

    /// Narrows `x` to the rows that `kept` lists, which ascend: `x[i] = x[kept[i]]`.
    fn keep(&mut self, x: &mut Self::Buffer, kept: &[usize]);

    /// `x = cap * tanh(x / cap)`.
    fn soft_cap(&mut self, cap: f32, x: &mut Self::Buffer);

    /// The buffer's values for the caller: where a recorded device waits for its results.
    fn read<'b>(&mut self, buffer: &'b mut Self::Buffer) -> &'b mut [f32];
}
