//! Dense models over the budget: which layers stay in memory, and what is read for each token.
//!
//! Layers are used in turn, over and over: a cache that drops what was used longest ago would never hit. So the first layers that fit
//! stay, and the rest pass through two buffers, one computed with and one read into.
//!
//! Invariant: more memory never keeps fewer layers.

use super::{Needs, sum};

/// One layer of a dense model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerNeeds {
    /// Bytes of its matrices.
    pub bytes: u64,
    /// Bytes that are read to have them.
    pub read: u64,
}

/// How a dense model is divided between memory and disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DensePlan {
    /// Layers that stay in memory: the first ones.
    pub pinned: usize,
    /// All layers.
    pub layers: usize,
    /// Bytes of those that stay.
    pub pinned_bytes: u64,
    /// Bytes of the two buffers that the others pass through.
    pub buffers: u64,
    /// Bytes that are read for each token, or once for each batch of prompt rows.
    pub read_per_token: u64,
}

impl DensePlan {
    /// What layers take of memory.
    pub(super) fn held(&self) -> u64 {
        self.pinned_bytes.saturating_add(self.buffers)
    }
}

impl Needs {
    /// Matrices of all layers.
    pub(super) fn dense_bytes(&self) -> u64 {
        sum(self.dense_layers.iter().map(|l| l.bytes))
    }

    /// What is taken whatever the budget where layers are streamed, but for batches.
    pub(super) fn dense_base(&self) -> u64 {
        let outside = self.resident_bytes().saturating_sub(self.dense_bytes());
        self.base_with(outside).saturating_add(self.read_buffers)
    }

    /// The division of the smallest budget.
    pub(super) fn least_dense(&self) -> DensePlan {
        self.pin(0)
    }

    /// Keeps as many layers as `budget` holds beside what batches may take. The budget is at least the floor and less than the whole.
    pub(super) fn dense(&self, budget: u64) -> DensePlan {
        let room = budget.saturating_sub(self.dense_base()).saturating_sub(self.share(budget));
        let mut plans = (1..self.dense_layers.len()).rev().map(|pinned| self.pin(pinned));
        plans.find(|plan| plan.held() <= room).unwrap_or_else(|| self.least_dense())
    }

    /// Keeps the first `pinned` layers. The buffers have to hold the largest of the others.
    fn pin(&self, pinned: usize) -> DensePlan {
        let (stay, pass) = self.dense_layers.split_at(pinned);
        let largest = pass.iter().map(|l| l.read).max().unwrap_or(0);
        DensePlan {
            pinned,
            layers: self.dense_layers.len(),
            pinned_bytes: sum(stay.iter().map(|l| l.bytes)),
            buffers: largest.saturating_mul(pass.len().min(2) as u64),
            read_per_token: sum(pass.iter().map(|l| l.read)),
        }
    }
}
