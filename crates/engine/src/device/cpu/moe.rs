//! Mixtures of experts on the processor: all products of a stage as one region, each expert's weights read once.
//!
//! Invariant: a slot is one (row, rank); slots of one expert are neighbours, in order of rows. Whatever the grouping and the order in
//! which experts get usable, a row's output is the sum of its own slots in rank order.

use std::ops::Range;

use smallvec::SmallVec;
use turbospark_experts::Wave;
use turbospark_kernels::{Cpu, MatJob, MatScratch, Routes};
use turbospark_model::{Moe, Stack};

use super::{CpuBuffer, Weights, glu, resize};
use crate::forward::PerExpert;

/// Slots whose inner activations are held at a time: what a long prompt takes stays small.
const SLOTS: usize = 2048;

/// One layer's routed experts while their waves come in.
#[derive(Default)]
pub(super) struct MoeState {
    /// The row of each slot.
    rows: Vec<u32>,
    /// The slot of each (row, rank).
    slots: Vec<u32>,
    /// Where each expert's slots begin; one more than experts.
    starts: Vec<usize>,
    /// `[slots of a part of a wave, width]`.
    gate: Vec<f32>,
    up: Vec<f32>,
    /// `[slots, hidden]`.
    down: Vec<f32>,
}

/// Products of a stage; those of a single row need no memory of the system.
type Jobs<'a> = SmallVec<[MatJob<'a>; 32]>;

/// What computes: threads, weights and the buffers of matrix products.
pub(super) struct Parts<'a> {
    pub(super) cpu: &'a Cpu,
    pub(super) weights: &'a Weights,
    pub(super) products: &'a mut MatScratch,
}

/// One expert of a wave with its slots.
struct Member {
    /// Index in the wave.
    at: usize,
    /// Index in the request.
    expert: usize,
    slots: Range<usize>,
}

impl MoeState {
    /// Slots whose inner activations are held at a time, of `rows` rows: an expert's are never divided.
    pub(super) fn slots_at_a_time(rows: usize, top_k: usize) -> usize {
        rows.saturating_mul(top_k).min(rows.max(SLOTS))
    }

    /// Bytes that a layer takes for `rows` rows.
    pub(super) fn bytes_for(moe: &Moe, rows: usize) -> usize {
        let slots = rows * moe.top_k;
        let inner = 2 * MoeState::slots_at_a_time(rows, moe.top_k) * moe.width;
        size_of::<f32>() * (inner + slots * moe.down.rows) + 2 * size_of::<u32>() * slots
    }

    /// Bytes held now.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        let floats = self.gate.capacity() + self.up.capacity() + self.down.capacity();
        size_of::<f32>() * floats + size_of::<u32>() * (self.rows.capacity() + self.slots.capacity())
    }

    /// Groups the slots of `routes` by expert. `experts` ascend.
    pub(super) fn begin(&mut self, moe: &Moe, routes: &Routes, experts: &[u32]) {
        let n = routes.experts.len();
        let index = |expert: u32| experts.binary_search(&expert).unwrap_or_default();
        self.starts.clear();
        self.starts.resize(experts.len() + 1, 0);
        routes.experts.iter().for_each(|&e| self.starts[index(e) + 1] += 1);
        (1..self.starts.len()).for_each(|i| self.starts[i] += self.starts[i - 1]);
        let mut next: PerExpert<usize> = self.starts.as_slice().into();
        resize(&mut self.rows, n);
        resize(&mut self.slots, n);
        for (i, &expert) in routes.experts.iter().enumerate() {
            let slot = &mut next[index(expert)];
            self.rows[*slot] = (i / routes.top_k) as u32;
            self.slots[i] = *slot as u32;
            *slot += 1;
        }
        resize(&mut self.down, n * moe.down.rows);
    }

    /// Computes the slots of a wave's experts.
    pub(super) fn wave(
        &mut self,
        parts: &mut Parts<'_>,
        moe: &Moe,
        x: &CpuBuffer,
        experts: &[u32],
        wave: &Wave<'_>,
    ) {
        let members = wave.indices().iter().enumerate().map(|(at, &expert)| Member {
            at,
            expert,
            slots: self.starts[expert]..self.starts[expert + 1],
        });
        let members: PerExpert<Member> = members.collect();
        let mut left = members.as_slice();
        while !left.is_empty() {
            let mut slots = 0;
            let fits = left.iter().take_while(|m| {
                slots += m.slots.len();
                slots <= SLOTS
            });
            let (now, later) = left.split_at(fits.count().max(1));
            self.group(parts, moe, x, experts, wave, now);
            left = later;
        }
    }

    fn group(
        &mut self,
        Parts { cpu, weights, products }: &mut Parts<'_>,
        moe: &Moe,
        x: &CpuBuffer,
        experts: &[u32],
        wave: &Wave<'_>,
        members: &[Member],
    ) {
        let group = Group { weights, moe, experts, wave, members };
        let n: usize = members.iter().map(|m| m.slots.len()).sum();
        resize(&mut self.gate, n * moe.width);
        resize(&mut self.up, n * moe.width);
        // A single row meets all its experts; of many, each expert has its own.
        let one = x.rows() == 1;
        let mut jobs = Jobs::new();
        group.jobs(&moe.gate, one, apart(&mut self.gate, moe.width, members), &mut jobs);
        group.jobs(&moe.up, one, apart(&mut self.up, moe.width, members), &mut jobs);
        if one {
            cpu.matmul(products, &x.data, &mut jobs);
        } else {
            let rows: Vec<u32> = members.iter().flat_map(|m| &self.rows[m.slots.clone()]).copied().collect();
            cpu.matmul_picked(products, &x.data, &rows, &mut jobs);
        }
        drop(jobs);
        group.add_biases(cpu, &moe.gate, apart(&mut self.gate, moe.width, members));
        group.add_biases(cpu, &moe.up, apart(&mut self.up, moe.width, members));
        glu(cpu, moe.activation, &mut self.gate, &self.up);
        let hidden = moe.down.rows;
        let mut jobs = Jobs::new();
        group.jobs(&moe.down, false, placed(&mut self.down, hidden, members), &mut jobs);
        cpu.matmul(products, &self.gate, &mut jobs);
        drop(jobs);
        group.add_biases(cpu, &moe.down, placed(&mut self.down, hidden, members));
    }

    /// Adds up each row's slots.
    pub(super) fn end(&mut self, cpu: &Cpu, moe: &Moe, routes: &Routes, out: &mut CpuBuffer) {
        out.shape(routes.experts.len() / routes.top_k, moe.down.rows);
        cpu.combine(&mut out.data, &self.down, &self.slots, &routes.weights, routes.top_k);
    }
}

/// Experts of a wave that are computed together.
struct Group<'a, 'w> {
    weights: &'a Weights,
    moe: &'a Moe,
    experts: &'a [u32],
    wave: &'a Wave<'w>,
    members: &'a [Member],
}

impl<'w> Group<'_, 'w> {
    /// One product for each expert: `stack`'s matrix of it with its slots of the input, or with the only row.
    fn jobs<'b>(
        &self,
        stack: &Stack,
        one_row: bool,
        outs: impl Iterator<Item = &'b mut [f32]>,
        jobs: &mut Jobs<'b>,
    ) where
        'w: 'b,
    {
        let part = self.moe.tensors().position(|t| t.index == stack.weight.index).unwrap_or_default();
        let mut start = 0;
        for (member, out) in self.members.iter().zip(outs) {
            let rows = start..start + member.slots.len();
            start = rows.end;
            // Opening checked that an expert's rows are whole blocks.
            let Some(w) = self.weights.of_stack(stack, self.wave.part(member.at, part)) else { continue };
            jobs.push(MatJob { w, rows: if one_row { 0..1 } else { rows }, out });
        }
    }

    fn add_biases<'b>(&self, cpu: &Cpu, stack: &Stack, outs: impl Iterator<Item = &'b mut [f32]>) {
        let Some(bias) = stack.bias else { return };
        let bias = self.weights.vector(bias);
        for (member, out) in self.members.iter().zip(outs) {
            let expert = self.experts[member.expert] as usize;
            cpu.add_bias(out, &bias[expert * stack.rows..][..stack.rows]);
        }
    }
}

/// Each member's slots of a buffer that has only theirs, one after the other.
fn apart<'b>(x: &'b mut [f32], width: usize, members: &[Member]) -> impl Iterator<Item = &'b mut [f32]> {
    let mut rest = x;
    members.iter().map(move |m| rest.split_off_mut(..m.slots.len() * width).unwrap_or_default())
}

/// Each member's slots of a buffer that has all slots. Members ascend.
fn placed<'b>(x: &'b mut [f32], width: usize, members: &[Member]) -> impl Iterator<Item = &'b mut [f32]> {
    let (mut rest, mut start) = (x, 0);
    let take = move |m: &Member| {
        let _ = rest.split_off_mut(..(m.slots.start - start) * width);
        start = m.slots.end;
        rest.split_off_mut(..m.slots.len() * width).unwrap_or_default()
    };
    members.iter().map(take)
}
