//! LFU: the expert used least often since it came leaves, of equals the least recently used.

use super::ranks::Ranks;
use super::{CacheShape, Policy};
use crate::{Key, RouteBatch};

pub(super) struct Lfu {
    /// By uses and last use.
    cached: Ranks<(u64, u64)>,
    now: u64,
}

impl Lfu {
    pub(super) fn new(shape: CacheShape) -> Lfu {
        Lfu { cached: Ranks::new(shape), now: 0 }
    }
}

impl Policy for Lfu {
    fn name(&self) -> &'static str {
        "lfu"
    }

    fn requested(&mut self, batch: &RouteBatch<'_>) {
        self.now += 1;
        for key in batch.keys() {
            if let Some((uses, _)) = self.cached.get(key) {
                self.cached.set(key, (uses + 1, self.now));
            }
        }
    }

    fn placed(&mut self, key: Key) {
        self.cached.set(key, (1, self.now));
    }

    fn removed(&mut self, key: Key) {
        self.cached.remove(key);
    }

    fn victim(&mut self, may_leave: &dyn Fn(Key) -> bool) -> Option<Key> {
        self.cached.least(may_leave)
    }
}
