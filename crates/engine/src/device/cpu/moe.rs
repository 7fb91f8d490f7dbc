//! Mixtures of experts on the processor: all products of a stage as one region, each expert's weights read once.
//!
//! Invariant: a slot is one (row, rank); slots of one expert are neighbours, in order of rows. Whatever the grouping, a row's output is the
//! sum of its own slots in rank order.

use std::ops::Range;

use turbospark_experts::Lease;
use turbospark_kernels::{Cpu, MatJob, MatScratch, Routes};
use turbospark_model::{Moe, Stack};

use super::{CpuBuffer, Weights, glu};

/// Buffers of one layer's routed experts.
#[derive(Default)]
pub(super) struct MoeScratch {
    /// The row of each slot.
    rows: Vec<u32>,
    /// The slot of each (row, rank).
    slots: Vec<u32>,
    /// Where each expert's slots begin; one more than experts.
    starts: Vec<usize>,
    /// `[slots, width]`.
    gate: Vec<f32>,
    up: Vec<f32>,
    /// `[slots, hidden]`.
    down: Vec<f32>,
}

impl MoeScratch {
    /// Groups the slots of `routes` by expert.
    fn group(&mut self, routes: &Routes, experts: &[u32]) {
        let n = routes.experts.len();
        let index = |expert: u32| experts.binary_search(&expert).unwrap_or_default();
        self.starts.clear();
        self.starts.resize(experts.len() + 1, 0);
        routes.experts.iter().for_each(|&e| self.starts[index(e) + 1] += 1);
        (1..self.starts.len()).for_each(|i| self.starts[i] += self.starts[i - 1]);
        let mut next = self.starts.clone();
        self.rows.resize(n, 0);
        self.slots.resize(n, 0);
        for (i, &expert) in routes.experts.iter().enumerate() {
            let slot = &mut next[index(expert)];
            self.rows[*slot] = (i / routes.top_k) as u32;
            self.slots[i] = *slot as u32;
            *slot += 1;
        }
    }

    fn group_range(&self, expert: usize) -> Range<usize> {
        self.starts[expert]..self.starts[expert + 1]
    }
}

/// What computes: threads, weights and the buffers of matrix products.
pub(super) struct Parts<'a> {
    pub(super) cpu: &'a Cpu,
    pub(super) weights: &'a Weights,
    pub(super) products: &'a mut MatScratch,
}

/// `out[r] = sum over ranks of weight * expert(x[r])`.
pub(super) fn run(
    parts: &mut Parts<'_>,
    s: &mut MoeScratch,
    moe: &Moe,
    x: &CpuBuffer,
    routes: &Routes,
    (experts, lease): (&[u32], &Lease<'_>),
    out: &mut CpuBuffer,
) {
    let Parts { cpu, weights, products } = parts;
    s.group(routes, experts);
    let slots = s.rows.len();
    let (mut gate, mut up, mut down) =
        (std::mem::take(&mut s.gate), std::mem::take(&mut s.up), std::mem::take(&mut s.down));
    gate.resize(slots * moe.width, 0.0);
    up.resize(slots * moe.width, 0.0);
    down.resize(slots * moe.down.rows, 0.0);

    // A single row meets all its experts; of many, each expert has its own.
    let one = x.rows() == 1;
    let mut all = jobs(weights, moe, &moe.gate, (s, lease), one, &mut gate);
    all.append(&mut jobs(weights, moe, &moe.up, (s, lease), one, &mut up));
    if one {
        cpu.matmul(products, &x.data, &mut all);
    } else {
        cpu.matmul_picked(products, &x.data, &s.rows, &mut all);
    }
    drop(all);
    let add_biases = |stack: &Stack, out: &mut [f32]| {
        let Some(bias) = stack.bias else { return };
        let bias = weights.vector(bias);
        for (i, &expert) in experts.iter().enumerate() {
            let range = s.group_range(i);
            let out = &mut out[range.start * stack.rows..range.end * stack.rows];
            cpu.add_bias(out, &bias[expert as usize * stack.rows..][..stack.rows]);
        }
    };
    add_biases(&moe.gate, &mut gate);
    add_biases(&moe.up, &mut up);
    glu(cpu, moe.activation, &mut gate, &up);
    cpu.matmul(products, &gate, &mut jobs(weights, moe, &moe.down, (s, lease), false, &mut down));
    add_biases(&moe.down, &mut down);
    out.shape(x.rows(), moe.down.rows);
    cpu.combine(&mut out.data, &down, &s.slots, &routes.weights, routes.top_k);
    (s.gate, s.up, s.down) = (gate, up, down);
}

/// One product for each leased expert: `stack`'s matrix of it with the expert's slots of the input, or with the only row.
fn jobs<'b>(
    weights: &Weights,
    moe: &Moe,
    stack: &Stack,
    (s, lease): (&MoeScratch, &Lease<'b>),
    one_row: bool,
    out: &'b mut [f32],
) -> Vec<MatJob<'b>> {
    let part = moe.tensors().iter().position(|t| t.index == stack.weight.index).unwrap_or_default();
    let mut rest = out;
    let mut jobs = Vec::with_capacity(s.starts.len());
    for expert in 0..s.starts.len() - 1 {
        let range = s.group_range(expert);
        let (out, after) = rest.split_at_mut(range.len() * stack.rows);
        rest = after;
        // Opening checked that an expert's rows are whole blocks.
        let Some(w) = weights.of_stack(stack, lease.part(expert, part)) else { continue };
        jobs.push(MatJob { w, rows: if one_row { 0..1 } else { range }, out });
    }
    jobs
}
