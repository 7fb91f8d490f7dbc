//! The offline optimum (Belady 1966): the expert whose next use is furthest in the future leaves.
//!
//! Invariant: it is asked by a replay of the trace that it was made from, batch by batch; each expert of a batch has its next
//! use at the place that the batch's order gives it.

use super::Trace;
use crate::policy::Ranks;
use crate::{CacheShape, Key, Policy, RouteBatch};

pub(super) struct Belady {
    experts: usize,
    /// For each request of the trace, the batch in which the same expert is asked for next; `u32::MAX`: never.
    next: Vec<u32>,
    /// Requests that have been seen.
    seen: usize,
    /// `[layers, experts]`: the next use from now on.
    next_of: Vec<u32>,
    /// The furthest first.
    cached: Ranks<u32>,
}

impl Belady {
    pub(super) fn new(trace: &Trace, shape: CacheShape) -> Belady {
        let mut next_of = vec![u32::MAX; shape.layers * shape.experts];
        let mut next = vec![u32::MAX; trace.requests()];
        let mut last_of = vec![usize::MAX; next_of.len()];
        let mut request = 0;
        for (i, batch) in trace.batches().enumerate() {
            for key in batch.keys() {
                let last = &mut last_of[key.layer as usize * shape.experts + key.expert as usize];
                if let Some(before) = next.get_mut(*last) {
                    *before = i as u32;
                }
                *last = request;
                request += 1;
            }
        }
        next_of.fill(u32::MAX);
        Belady { experts: shape.experts, next, seen: 0, next_of, cached: Ranks::new(shape) }
    }

    fn at(&self, key: Key) -> usize {
        key.layer as usize * self.experts + key.expert as usize
    }
}

impl Policy for Belady {
    fn name(&self) -> &'static str {
        "optimum"
    }

    fn requested(&mut self, batch: &RouteBatch<'_>) {
        for key in batch.keys() {
            let at = self.at(key);
            self.next_of[at] = self.next[self.seen];
            self.seen += 1;
            if self.cached.has(key) {
                self.cached.set(key, u32::MAX - self.next_of[at]);
            }
        }
    }

    fn placed(&mut self, key: Key) {
        self.cached.set(key, u32::MAX - self.next_of[self.at(key)]);
    }

    fn removed(&mut self, key: Key) {
        self.cached.remove(key);
    }

    fn victim(&mut self, may_leave: &dyn Fn(Key) -> bool) -> Option<Key> {
        self.cached.least(may_leave)
    }
}
