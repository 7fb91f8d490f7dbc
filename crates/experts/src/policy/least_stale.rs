//! Least-Stale, after the idea of Hoang et al. (2026): layers take turns, so what the present pass has not used is stale and leaves first,
//! the longest unused before the others. If nothing is stale, the layer just passed leaves first: its turn is furthest away.

use super::ranks::Ranks;
use super::{CacheShape, Policy};
use crate::{Key, RouteBatch};

pub(super) struct LeastStale {
    /// By last use.
    cached: Ranks<u64>,
    now: u64,
    /// When the present pass began.
    pass: u64,
    layer: u32,
}

impl LeastStale {
    pub(super) fn new(shape: CacheShape) -> LeastStale {
        LeastStale { cached: Ranks::new(shape), now: 0, pass: 0, layer: 0 }
    }
}

impl Policy for LeastStale {
    fn name(&self) -> &'static str {
        "least-stale"
    }

    fn requested(&mut self, batch: &RouteBatch<'_>) {
        self.now += 1;
        if batch.layer <= self.layer {
            self.pass = self.now;
        }
        self.layer = batch.layer;
        for key in batch.keys() {
            self.cached.update(key, self.now);
        }
    }

    fn placed(&mut self, key: Key) {
        self.cached.set(key, self.now);
    }

    fn removed(&mut self, key: Key) {
        self.cached.remove(key);
    }

    fn victim(&mut self, may_leave: &dyn Fn(Key) -> bool) -> Option<Key> {
        let pass = self.pass;
        self.cached.least_by(may_leave, |_, used| if used < pass { used } else { u64::MAX - used })
    }
}
