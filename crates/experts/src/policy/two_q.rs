//! 2Q (Johnson and Shasha 1994), the full version: newcomers queue first in, first out in a quarter of the slots; who is
//! asked for again after leaving it, while half as many names as slots are remembered, enters the LRU of the rest.

use super::ranks::Ranks;
use super::{CacheShape, Policy};
use crate::{Key, RouteBatch};

pub(super) struct TwoQ {
    /// Newcomers, by arrival.
    new: Ranks<u64>,
    /// Names of newcomers that left, by departure.
    gone: Ranks<u64>,
    /// Those that came back, by last use.
    main: Ranks<u64>,
    most_new: usize,
    most_gone: usize,
    now: u64,
}

impl TwoQ {
    pub(super) fn new(shape: CacheShape) -> TwoQ {
        TwoQ {
            new: Ranks::new(shape),
            gone: Ranks::new(shape),
            main: Ranks::new(shape),
            most_new: (shape.slots / 4).max(1),
            most_gone: (shape.slots / 2).max(1),
            now: 0,
        }
    }
}

impl Policy for TwoQ {
    fn name(&self) -> &'static str {
        "2q"
    }

    fn requested(&mut self, batch: &RouteBatch<'_>) {
        self.now += 1;
        for key in batch.keys() {
            self.main.update(key, self.now);
        }
    }

    fn placed(&mut self, key: Key) {
        let queue = if self.gone.remove(key) { &mut self.main } else { &mut self.new };
        queue.set(key, self.now);
    }

    fn removed(&mut self, key: Key) {
        self.main.remove(key);
        if self.new.remove(key) {
            self.gone.set(key, self.now);
            if self.gone.len() > self.most_gone
                && let Some(oldest) = self.gone.least(&|_| true)
            {
                self.gone.remove(oldest);
            }
        }
    }

    fn victim(&mut self, may_leave: &dyn Fn(Key) -> bool) -> Option<Key> {
        let (first, second) = if self.new.len() > self.most_new {
            (&mut self.new, &mut self.main)
        } else {
            (&mut self.main, &mut self.new)
        };
        first.least(may_leave).or_else(|| second.least(may_leave))
    }
}
