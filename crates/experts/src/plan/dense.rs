//! Dense models over the budget: which layers stay in memory, and what is read for each token.
//!
//! Layers are used in turn, over and over: a cache that drops what was used longest ago would never hit. So the first layers that fit
//! stay, and the rest pass through two buffers, one computed with and one read into.

use super::{Needs, sum};

/// How a dense model is divided between memory and disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DensePlan {
    /// Layers that stay in memory: the first ones.
    pub pinned: usize,
    /// All layers.
    pub layers: usize,
    /// Bytes of those that stay.
    pub pinned_bytes: u64,
    /// Bytes of the two buffers that the others pass through; 0 where all stay.
    pub buffers: u64,
    /// Bytes that are read for each token, or once for each batch of prompt rows.
    pub read_per_token: u64,
}

/// Divides the layers of `needs.dense_layers`; `None` where the budget doesn't even hold the rest of the model and two layers.
///
/// # Panics
/// Where `needs` has no batch.
pub fn plan_dense(needs: &Needs, budget: u64) -> Option<DensePlan> {
    let layers = &needs.dense_layers;
    let all = sum(layers.iter().copied());
    let rest = needs.base().saturating_add(needs.spend(needs.least())).saturating_sub(all);
    let n = layers.len();
    if rest.saturating_add(all) <= budget {
        return Some(DensePlan { pinned: n, layers: n, pinned_bytes: all, buffers: 0, read_per_token: 0 });
    }
    let rest = rest.saturating_add(needs.read_buffers);
    // The buffers have to hold the largest of the layers that are not pinned: those behind the ones tried.
    let fits = |pinned: usize| {
        let (stay, pass) = layers.split_at(pinned);
        let pinned_bytes = sum(stay.iter().copied());
        let largest = pass.iter().copied().max().unwrap_or(0);
        let buffers = largest.saturating_mul(pass.len().min(2) as u64);
        let read_per_token = sum(pass.iter().copied());
        let plan = DensePlan { pinned, layers: n, pinned_bytes, buffers, read_per_token };
        (sum([rest, pinned_bytes, buffers]) <= budget).then_some(plan)
    };
    (0..n).rev().find_map(fits)
}
