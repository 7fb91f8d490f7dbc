//! The bookkeeping of a cache of experts: which one is in which slot, who leaves, and what was hit. No bytes and no I/O.
//!
//! Invariant: what is hit and who leaves follows from the sequence of requests alone, not from how fast reads or products are; so a
//! replay that makes the same calls counts the same. The rules:
//!
//! 1. A request names experts of one layer. Those that have a slot at this moment are hits, the others misses, in ascending order.
//! 2. Hits are used first. Each miss is placed in turn, in a free slot (the lowest) or in the slot of a victim.
//! 3. The policy chooses the victim among what is not of the request and those of its misses that were placed `window` placements ago or
//!    earlier: they have been used by then, so a request for more experts than there are slots works. Where there is neither, the
//!    hits may leave too.
//! 4. A victim that is still in use is waited for; none other is taken in its place.

use super::{CacheShape, Policy};
use crate::{ExpertError, Key, Phase, RouteBatch};

/// How many misses of one request are in slots together, where there are as many slots: what is being read and computed with. Engine
/// and replay use the same.
pub const WINDOW: usize = 16;

const NONE: u32 = u32::MAX;

/// What was asked for and found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Experts that were asked for, once for each request that named them.
    pub requests: u64,
    /// Of these, the ones that had a slot then.
    pub hits: u64,
}

impl Counts {
    /// Those that had to be read.
    pub fn misses(&self) -> u64 {
        self.requests - self.hits
    }

    /// Share of the hits; 0 where nothing was asked for.
    pub fn hit_rate(&self) -> f64 {
        if self.requests == 0 { 0.0 } else { self.hits as f64 / self.requests as f64 }
    }
}

/// Which expert is in which slot.
pub struct CacheCore {
    shape: CacheShape,
    window: usize,
    policy: Box<dyn Policy>,
    /// `[layers, experts]`.
    slots: Vec<u32>,
    /// `[slots]`.
    keys: Vec<Option<Key>>,
    /// Free slots, the lowest last.
    free: Vec<u32>,
    /// `[layers, experts]`: the request that named an expert last, and its number among the misses placed, from 1; 0: a hit.
    named: Vec<(u64, u32)>,
    request: u64,
    /// Misses of the request that were placed.
    placed: u32,
    /// A victim that was still in use.
    waiting: Option<Key>,
    prefill: Counts,
    decode: Counts,
}

impl CacheCore {
    /// An empty cache; `window` as in the rules, usually [`WINDOW`].
    ///
    /// # Panics
    /// Without a slot, or with `u32::MAX` or more.
    pub fn new(shape: CacheShape, window: usize, policy: Box<dyn Policy>) -> CacheCore {
        assert!((1..NONE as usize).contains(&shape.slots), "a cache has at least one slot");
        let keys = shape.layers * shape.experts;
        CacheCore {
            shape,
            window: window.clamp(1, shape.slots),
            policy,
            slots: vec![NONE; keys],
            keys: vec![None; shape.slots],
            free: (0..shape.slots as u32).rev().collect(),
            named: vec![(0, 0); keys],
            request: 0,
            placed: 0,
            waiting: None,
            prefill: Counts::default(),
            decode: Counts::default(),
        }
    }

    /// Notes a request, counts it, and gives its misses in `missing`, in the order in which to place them.
    ///
    /// # Errors
    /// An expert that the shape has not; nothing is noted then.
    pub fn request(&mut self, batch: &RouteBatch<'_>, missing: &mut Vec<u32>) -> Result<(), ExpertError> {
        missing.clear();
        let fits = |e: u32| (batch.layer as usize) < self.shape.layers && (e as usize) < self.shape.experts;
        if let Some(&expert) = batch.experts.iter().find(|&&e| !fits(e)) {
            return Err(ExpertError::NoSuchExpert { layer: batch.layer as usize, expert });
        }
        self.request += 1;
        self.waiting = None;
        self.placed = 0;
        for key in batch.keys() {
            if self.slot_of(key).is_some() {
                let at = self.at(key);
                self.named[at] = (self.request, 0);
            } else {
                missing.push(key.expert);
            }
        }
        let counts = match batch.phase {
            Phase::Prefill => &mut self.prefill,
            Phase::Decode => &mut self.decode,
        };
        counts.requests += batch.experts.len() as u64;
        counts.hits += (batch.experts.len() - missing.len()) as u64;
        self.policy.requested(batch);
        Ok(())
    }

    /// Gives `key`, the next miss of the request, a slot; its victim, if it needs one, is gone then. `None`: the victim's slot is
    /// `live`, so this has to be asked again when it has been released. A key that has a slot keeps it.
    pub fn place(&mut self, key: Key, live: &dyn Fn(usize) -> bool) -> Option<usize> {
        if let Some(slot) = self.slot_of(key) {
            return Some(slot);
        }
        let slot = match self.free.pop() {
            Some(slot) => slot as usize,
            None => self.take_from_victim(live)?,
        };
        self.keys[slot] = Some(key);
        let at = self.at(key);
        self.slots[at] = slot as u32;
        self.placed += 1;
        self.named[at] = (self.request, self.placed);
        self.policy.placed(key);
        Some(slot)
    }

    fn take_from_victim(&mut self, live: &dyn Fn(usize) -> bool) -> Option<usize> {
        let victim = match self.waiting {
            Some(victim) => victim,
            None => self.victim(false).or_else(|| self.victim(true))?,
        };
        let slot = self.slot_of(victim)?;
        if live(slot) {
            self.waiting = Some(victim);
            return None;
        }
        self.waiting = None;
        self.leave(victim);
        Some(slot)
    }

    fn victim(&mut self, or_hits: bool) -> Option<Key> {
        // With the one to be placed, `window` are held.
        let used = (self.placed + 1).saturating_sub(self.window as u32);
        let (named, experts, request) = (&self.named, self.shape.experts, self.request);
        self.policy.victim(&|key| {
            let (by, number) = named[key.layer as usize * experts + key.expert as usize];
            by != request || (number <= used && (number > 0 || or_hits))
        })
    }

    /// The slot of `key`, if it has one.
    pub fn slot_of(&self, key: Key) -> Option<usize> {
        let slot = self.slots[self.at(key)];
        (slot != NONE).then_some(slot as usize)
    }

    /// The expert in `slot`.
    pub fn key_of(&self, slot: usize) -> Option<Key> {
        self.keys[slot]
    }

    /// Takes `key`'s slot back, as after a failed read.
    pub fn forget(&mut self, key: Key) {
        if let Some(slot) = self.slot_of(key) {
            if self.waiting == Some(key) {
                self.waiting = None;
            }
            self.leave(key);
            self.keys[slot] = None;
            // In order, so that the lowest is taken first.
            let at = self.free.partition_point(|&other| other > slot as u32);
            self.free.insert(at, slot as u32);
        }
    }

    fn leave(&mut self, key: Key) {
        let at = self.at(key);
        self.slots[at] = NONE;
        self.policy.removed(key);
    }

    fn at(&self, key: Key) -> usize {
        key.layer as usize * self.shape.experts + key.expert as usize
    }

    /// What the cache is for.
    pub fn shape(&self) -> CacheShape {
        self.shape
    }

    /// Name of the policy.
    pub fn policy(&self) -> &'static str {
        self.policy.name()
    }

    /// Counts since the start.
    pub fn counts(&self, phase: Phase) -> Counts {
        match phase {
            Phase::Prefill => self.prefill,
            Phase::Decode => self.decode,
        }
    }
}
