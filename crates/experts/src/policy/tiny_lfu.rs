//! W-TinyLFU (Einziger, Friedman and Manes 2017): an LRU window of a hundredth of the slots, and a segmented LRU that takes what falls
//! out of it if it was used more often than what would have to leave.
//!
//! A model has few enough experts to count each one's uses exactly, where the paper has a sketch. All counts are halved after ten
//! uses a slot.

use super::ranks::Ranks;
use super::{CacheShape, Policy};
use crate::{Key, RouteBatch};

pub(super) struct TinyLfu {
    experts: usize,
    window: Ranks<u64>,
    /// Admitted, not used since.
    probation: Ranks<u64>,
    /// Admitted and used again; four fifths of the main part.
    protected: Ranks<u64>,
    /// `[layers, experts]`: uses, also of those not cached.
    uses: Vec<u32>,
    counted: usize,
    halve_after: usize,
    most_window: usize,
    /// Of probation and protected together.
    most_main: usize,
    now: u64,
}

impl TinyLfu {
    pub(super) fn new(shape: CacheShape) -> TinyLfu {
        let most_window = (shape.slots / 100).max(1);
        TinyLfu {
            experts: shape.experts,
            window: Ranks::new(shape),
            probation: Ranks::new(shape),
            protected: Ranks::new(shape),
            uses: vec![0; shape.layers * shape.experts],
            counted: 0,
            halve_after: 10 * shape.slots.max(1),
            most_window,
            most_main: shape.slots.saturating_sub(most_window),
            now: 0,
        }
    }

    fn at(&self, key: Key) -> usize {
        key.layer as usize * self.experts + key.expert as usize
    }

    fn count(&mut self, key: Key) {
        let at = self.at(key);
        self.uses[at] += 1;
        self.counted += 1;
        if self.counted >= self.halve_after {
            self.uses.iter_mut().for_each(|n| *n /= 2);
            self.counted /= 2;
        }
    }
}

impl Policy for TinyLfu {
    fn name(&self) -> &'static str {
        "w-tinylfu"
    }

    fn requested(&mut self, batch: &RouteBatch<'_>) {
        self.now += 1;
        for key in batch.keys() {
            self.count(key);
            if self.window.has(key) {
                self.window.set(key, self.now);
            } else if self.probation.remove(key) || self.protected.has(key) {
                self.protected.set(key, self.now);
                if self.protected.len() > self.most_main * 4 / 5
                    && let Some(oldest) = self.protected.least(&|_| true)
                {
                    self.protected.remove(oldest);
                    self.probation.set(oldest, self.now);
                }
            }
        }
    }

    fn placed(&mut self, key: Key) {
        self.window.set(key, self.now);
        // As long as there is room, nobody has to be worth it.
        while self.window.len() > self.most_window
            && self.probation.len() + self.protected.len() < self.most_main
            && let Some(oldest) = self.window.least(&|_| true)
        {
            self.window.remove(oldest);
            self.probation.set(oldest, self.now);
        }
    }

    fn removed(&mut self, key: Key) {
        let _ = self.window.remove(key) || self.probation.remove(key) || self.protected.remove(key);
    }

    fn victim(&mut self, may_leave: &dyn Fn(Key) -> bool) -> Option<Key> {
        loop {
            let main = self.probation.least(may_leave).or_else(|| self.protected.least(may_leave));
            let candidate = self.window.least(may_leave);
            // With the newcomer, the window is one larger.
            if self.window.len() < self.most_window {
                return main.or(candidate);
            }
            let (Some(candidate), Some(main)) = (candidate, main) else { return main.or(candidate) };
            if self.uses[self.at(candidate)] <= self.uses[self.at(main)] {
                return Some(candidate);
            }
            self.window.remove(candidate);
            self.probation.set(candidate, self.now);
            if self.window.len() < self.most_window {
                return Some(main);
            }
        }
    }
}
