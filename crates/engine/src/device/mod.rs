//! The seam between the forward pass and what computes it: coarse operations on many rows at a time.
//!
//! Invariant: an implementation computes each row as if it stood alone, so that a row's result doesn't
//! depend on its neighbours. Weights are named by the spec; the device holds the file and finds them itself.

mod cpu;

pub use cpu::{CpuBuffer, CpuCache, CpuDevice};

use turbospark_model::{Activation, Attention, Embedding, Linear, Norm};

use crate::forward::Row;

/// What computes the forward pass. Buffers are `[rows, width]` f32.
pub trait Device {
    /// Activations on the device.
    type Buffer: Default;
    /// Keys and values of one sequence on the device.
    type Cache;

    /// Starts a batch: positions decide the rotary angles of all its layers.
    fn begin(&mut self, rows: &[Row]);

    /// Gives `buffer` the shape `[rows, width]`; its contents are undefined until an operation writes them.
    fn shape(&mut self, buffer: &mut Self::Buffer, rows: usize, width: usize);

    /// `out[r] = scale * weight[rows[r].token]`; tokens have been checked.
    fn embed(&mut self, embedding: &Embedding, rows: &[Row], out: &mut Self::Buffer);

    /// `out = norm(x)`, row by row.
    fn norm(&mut self, norm: &Norm, x: &Self::Buffer, out: &mut Self::Buffer);

    /// `x = norm(x)` for each part of `width` elements: whole rows or heads.
    fn norm_in_place(&mut self, norm: &Norm, width: usize, x: &mut Self::Buffer);

    /// `out = weight · x + bias` for several weights that share `x`, shaped as their rows say.
    fn linear(&mut self, x: &Self::Buffer, outputs: &mut [(&Linear, &mut Self::Buffer)]);

    /// Says which weights the call of [`Device::linear`] after the next one will read, so that the device may fetch them
    /// early. Never changes a result.
    fn expect(&mut self, _weights: &[&Linear]) {}

    /// Turns each head of `x` by its row's position.
    fn rope(&mut self, attention: &Attention, x: &mut Self::Buffer);

    /// Writes `k` and `v` `[rows, n_kv_heads * head_dim]` at the rows' positions of their sequences' caches.
    fn cache(
        &mut self,
        layer: usize,
        rows: &[Row],
        caches: &mut [&mut Self::Cache],
        k: &Self::Buffer,
        v: &Self::Buffer,
    );

    /// Attention of each row over its sequence up to its own position: `out` has the shape of `q`, `[rows, n_heads *
    /// head_dim]`.
    fn attend(
        &mut self,
        attention: &Attention,
        layer: usize,
        rows: &[Row],
        caches: &[&mut Self::Cache],
        q: &Self::Buffer,
        out: &mut Self::Buffer,
    );

    /// `gate = activation(gate) * up`.
    fn glu(&mut self, activation: Activation, gate: &mut Self::Buffer, up: &Self::Buffer);

    /// `x += y`.
    fn add(&mut self, x: &mut Self::Buffer, y: &Self::Buffer);

    /// `out[i] = x[picked[i]]`.
    fn pick(&mut self, x: &Self::Buffer, picked: &[usize], out: &mut Self::Buffer);

    /// `x = cap * tanh(x / cap)`.
    fn soft_cap(&mut self, cap: f32, x: &mut Self::Buffer);

    /// The buffer's values for the caller: where a recorded device waits for its results.
    fn read<'b>(&mut self, buffer: &'b mut Self::Buffer) -> &'b mut [f32];
}
