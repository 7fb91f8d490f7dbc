//! LRU-2 (O'Neil, O'Neil and Weikum 1993): the expert whose last use but one is longest ago leaves. Times of use survive eviction.

use super::ranks::Ranks;
use super::{CacheShape, Policy};
use crate::{Key, RouteBatch};

pub(super) struct LruK {
    experts: usize,
    /// `[layers, experts]`: the last use but one and the last, 0 for never.
    uses: Vec<(u64, u64)>,
    /// By `uses`.
    cached: Ranks<(u64, u64)>,
    now: u64,
}

impl LruK {
    pub(super) fn new(shape: CacheShape) -> LruK {
        let uses = vec![(0, 0); shape.layers * shape.experts];
        LruK { experts: shape.experts, uses, cached: Ranks::new(shape), now: 0 }
    }

    fn at(&self, key: Key) -> usize {
        key.layer as usize * self.experts + key.expert as usize
    }
}

impl Policy for LruK {
    fn name(&self) -> &'static str {
        "lru-2"
    }

    fn requested(&mut self, batch: &RouteBatch<'_>) {
        self.now += 1;
        for key in batch.keys() {
            let at = self.at(key);
            self.uses[at] = (self.uses[at].1, self.now);
            self.cached.update(key, self.uses[at]);
        }
    }

    fn placed(&mut self, key: Key) {
        self.cached.set(key, self.uses[self.at(key)]);
    }

    fn removed(&mut self, key: Key) {
        self.cached.remove(key);
    }

    fn victim(&mut self, may_leave: &dyn Fn(Key) -> bool) -> Option<Key> {
        self.cached.least(may_leave)
    }
}
