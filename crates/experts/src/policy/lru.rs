//! LRU: the least recently used expert leaves. Experts of one request are used at the same time, the first one first.

use super::ranks::Ranks;
use super::{CacheShape, Policy};
use crate::{Key, RouteBatch};

pub(super) struct Lru {
    /// By last use.
    cached: Ranks<u64>,
    now: u64,
}

impl Lru {
    pub(super) fn new(shape: CacheShape) -> Lru {
        Lru { cached: Ranks::new(shape), now: 0 }
    }
}

impl Policy for Lru {
    fn name(&self) -> &'static str {
        "lru"
    }

    fn requested(&mut self, batch: &RouteBatch<'_>) {
        self.now += 1;
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
        self.cached.least(may_leave)
    }
}
