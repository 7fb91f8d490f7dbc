//! ARC (Megiddo and Modha 2003): LRU lists of experts used once and used again, and of the names that left each; a request for such
//! a name moves the share that its list may keep.
//!
//! Misses of one request are placed after all its hits are noted; for a single key that is the published order.

use super::ranks::Ranks;
use super::{CacheShape, Policy};
use crate::{Key, RouteBatch};

pub(super) struct Arc {
    /// Cached, used once, by use: T1.
    once: Ranks<u64>,
    /// Cached, used again, by last use: T2.
    again: Ranks<u64>,
    /// Left the first: B1.
    once_gone: Ranks<u64>,
    /// Left the second: B2.
    again_gone: Ranks<u64>,
    /// Slots that `once` should have: p.
    share: usize,
    slots: usize,
    now: u64,
}

impl Arc {
    pub(super) fn new(shape: CacheShape) -> Arc {
        Arc {
            once: Ranks::new(shape),
            again: Ranks::new(shape),
            once_gone: Ranks::new(shape),
            again_gone: Ranks::new(shape),
            share: 0,
            slots: shape.slots,
            now: 0,
        }
    }

    fn forget_oldest(names: &mut Ranks<u64>) {
        if let Some(oldest) = names.least(&|_| true) {
            names.remove(oldest);
        }
    }
}

impl Policy for Arc {
    fn name(&self) -> &'static str {
        "arc"
    }

    fn requested(&mut self, batch: &RouteBatch<'_>) {
        self.now += 1;
        for key in batch.keys() {
            if self.once.remove(key) || self.again.has(key) {
                self.again.set(key, self.now);
            } else if self.once_gone.has(key) {
                let step = (self.again_gone.len() / self.once_gone.len()).max(1);
                self.share = (self.share + step).min(self.slots);
            } else if self.again_gone.has(key) {
                let step = (self.once_gone.len() / self.again_gone.len()).max(1);
                self.share = self.share.saturating_sub(step);
            }
        }
    }

    fn placed(&mut self, key: Key) {
        let known = self.once_gone.remove(key) || self.again_gone.remove(key);
        let list = if known { &mut self.again } else { &mut self.once };
        list.set(key, self.now);
    }

    fn removed(&mut self, key: Key) {
        if self.once.remove(key) {
            self.once_gone.set(key, self.now);
        } else if self.again.remove(key) {
            self.again_gone.set(key, self.now);
        }
        if self.once.len() + self.once_gone.len() > self.slots {
            Arc::forget_oldest(&mut self.once_gone);
        }
        if self.once.len() + self.again.len() + self.once_gone.len() + self.again_gone.len() > 2 * self.slots
        {
            Arc::forget_oldest(&mut self.again_gone);
        }
    }

    fn victim(&mut self, may_leave: &dyn Fn(Key) -> bool) -> Option<Key> {
        let (first, second) = if self.once.len() > self.share {
            (&mut self.once, &mut self.again)
        } else {
            (&mut self.again, &mut self.once)
        };
        first.least(may_leave).or_else(|| second.least(may_leave))
    }
}
