//! Experts read from the file when a layer needs them, into a cache of fixed size.
//!
//! What is where, who leaves and what counts as a hit is [`CacheCore`]'s business and follows from the requests alone; here bytes
//! are moved. All misses of a request are asked for at once; what is there is given first, and the rest as it lands.
//!
//! Beside the cache's slots there are a few for reading ahead. An expert that was read ahead changes places with the cache's
//! slot when it is asked for, so reading ahead evicts nothing and changes no count.
//!
//! Invariant: a slot that is lent, read into, or holds an expert that was asked for and not given yet is never reused.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use smallvec::smallvec;
use turbospark_format::Gguf;

use crate::read::{Finished, Reader, Wait, laid_out, parts_of};
use crate::slots::{Leased, SlotState, Slots};
use crate::{CacheCore, ExpertError, ExpertLayout, Few, Key, Parts, Residency, RouteBatch, Stats, Wave};

/// How often a wait for reads looks whether to go on.
const LOOK: Duration = Duration::from_millis(20);

/// Experts of a model in a file, a part of them in memory.
pub struct Streamed {
    gguf: Arc<Gguf>,
    layout: ExpertLayout,
    slots: Arc<Slots>,
    reader: Box<dyn Reader>,
    core: CacheCore,
    /// The slot of the pool that each slot of the cache is.
    place: Vec<usize>,
    /// Slots of the pool that are neither the cache's nor hold what was read ahead.
    spare: Vec<usize>,
    /// Experts that were read ahead, and their slots.
    ahead: HashMap<Key, usize>,
    /// What to read ahead, first to last.
    hinted: VecDeque<Key>,
    /// Whether that is a guess: then only while nothing that was asked for is read, and one at a time.
    guessed: bool,
    /// Placed, but the slot still waits for a read that was given up.
    unsent: VecDeque<(Key, usize)>,
    /// Reads in flight by id: the expert, and the slot it goes to.
    pending: HashMap<u64, (Key, usize)>,
    next_id: u64,
    asked: Option<Asked>,
    /// Experts of the request that had no slot, in the order in which they get one.
    missing: Vec<u32>,
    wave: Vec<Leased>,
    finished: Finished,
}

/// A request that has not been given in full.
struct Asked {
    layer: u32,
    experts: Few<u32>,
    given: Few<bool>,
    /// How many of the missing ones have got a slot.
    placed: usize,
}

impl Streamed {
    /// Streams the experts of `layout` through `reader` into `slots`, of which the cache gets as many as `core` has and reading
    /// ahead the rest.
    ///
    /// # Panics
    /// Where the pool has fewer slots than the cache, or smaller ones than [`ExpertLayout::slot_bytes`].
    pub fn new(
        gguf: Arc<Gguf>,
        layout: ExpertLayout,
        slots: Arc<Slots>,
        reader: Box<dyn Reader>,
        core: CacheCore,
    ) -> Streamed {
        let cached = core.shape().slots;
        assert!(slots.len() >= cached, "a pool smaller than its cache");
        assert!(slots.slot_bytes() >= layout.slot_bytes(&gguf), "slots too small for an expert");
        Streamed {
            place: (0..cached).collect(),
            spare: (cached..slots.len()).collect(),
            gguf,
            layout,
            slots,
            reader,
            core,
            ahead: HashMap::new(),
            hinted: VecDeque::new(),
            guessed: false,
            unsent: VecDeque::new(),
            pending: HashMap::new(),
            next_id: 0,
            asked: None,
            missing: Vec::new(),
            wave: Vec::new(),
            finished: Vec::new(),
        }
    }

    /// Places misses as far as slots allow and sends their reads; then those ahead, as far as there are spare slots.
    fn pump(&mut self) -> Result<(), ExpertError> {
        while let Some(asked) = &mut self.asked
            && let Some(&expert) = self.missing.get(asked.placed)
        {
            let (slots, core, place) = (&self.slots, &mut self.core, &self.place);
            let waits: Few<usize> = asked
                .experts
                .iter()
                .zip(&asked.given)
                .filter(|(_, given)| !**given)
                .filter_map(|(&expert, _)| core.slot_of(Key { layer: asked.layer, expert }))
                .collect();
            let unsent = &self.unsent;
            let live = |slot: usize| {
                waits.contains(&slot)
                    || unsent.iter().any(|&(_, other)| other == place[slot])
                    || match slots.state(place[slot]) {
                        SlotState::Free => false,
                        SlotState::Reading => true,
                        SlotState::Ready { leases } => leases > 0,
                    }
            };
            let key = Key { layer: asked.layer, expert };
            let Some(slot) = core.place(key, &live) else { break };
            asked.placed += 1;
            match self.ahead.remove(&key) {
                Some(read) => self.spare.push(std::mem::replace(&mut self.place[slot], read)),
                None => self.unsent.push_back((key, self.place[slot])),
            }
        }
        for _ in 0..self.unsent.len() {
            let Some((key, slot)) = self.unsent.pop_front() else { break };
            if self.slots.state(slot) == SlotState::Reading {
                self.unsent.push_back((key, slot));
            } else {
                self.send(key, slot)?;
            }
        }
        if self.asked.as_ref().is_some_and(|a| a.placed < self.missing.len()) {
            return Ok(());
        }
        while let Some(&key) = self.hinted.front() {
            if self.guessed && !self.pending.is_empty() {
                break;
            }
            if self.core.slot_of(key).is_some() || self.ahead.contains_key(&key) {
                self.hinted.pop_front();
                continue;
            }
            let usable = |&slot: &usize| self.slots.state(slot) != SlotState::Reading;
            let Some(at) = self.spare.iter().position(usable) else { break };
            let slot = self.spare.swap_remove(at);
            self.hinted.pop_front();
            self.ahead.insert(key, slot);
            self.send(key, slot)?;
        }
        Ok(())
    }

    fn send(&mut self, key: Key, slot: usize) -> Result<(), ExpertError> {
        let segments = self.layout.segments(&self.gguf, key.layer as usize, key.expert)?;
        self.next_id += 1;
        self.pending.insert(self.next_id, (key, slot));
        self.reader.submit(self.next_id, &parts_of(&segments, slot));
        Ok(())
    }

    /// Takes note of the reads that have ended.
    ///
    /// # Errors
    /// The first failed one that is part of the request.
    fn collect(&mut self, wait: Wait) -> Result<(), ExpertError> {
        let mut finished = std::mem::take(&mut self.finished);
        self.reader.finished(wait, &mut finished);
        let mut result = Ok(());
        for (id, read) in finished.drain(..) {
            let Some((key, slot)) = self.pending.remove(&id) else { continue };
            let Err(source) = read else { continue };
            self.forget(key, slot);
            let wanted = |a: &Asked| a.layer == key.layer && a.experts.contains(&key.expert);
            if result.is_ok() && self.asked.as_ref().is_some_and(wanted) {
                result = Err(ExpertError::Read { layer: key.layer as usize, expert: key.expert, source });
            }
        }
        self.finished = finished;
        result
    }

    /// Reads experts ahead, as far as there are spare slots.
    fn expect(&mut self, layer: usize, experts: &[u32], guessed: bool) {
        let keys = experts.iter().map(|&expert| Key { layer: layer as u32, expert });
        let layout = &self.layout;
        self.hinted.clear();
        self.hinted.extend(keys.filter(|&key| layout.layer(layer, key.expert).is_ok()));
        self.guessed = guessed;
        // A read that can't be started ahead is reported when it is asked for.
        let _ = self.pump();
    }

    /// Drops the request and every read that has not ended.
    fn give_up(&mut self) {
        self.reader.cancel_pending();
        self.asked = None;
        self.hinted.clear();
        for (key, slot) in std::mem::take(&mut self.unsent)
            .into_iter()
            .chain(std::mem::take(&mut self.pending).into_values())
        {
            self.forget(key, slot);
        }
    }

    /// Takes back that `slot` gets `key`, if that is still so.
    fn forget(&mut self, key: Key, slot: usize) {
        if self.ahead.get(&key) == Some(&slot) {
            self.ahead.remove(&key);
            self.spare.push(slot);
        } else if self.core.slot_of(key).is_some_and(|s| self.place[s] == slot) {
            self.core.forget(key);
        }
    }

    /// Lends the experts of the request that are there and were not given yet; their indices in the request.
    fn lend(&mut self) -> Few<usize> {
        let Some(asked) = &mut self.asked else { return Few::new() };
        let mut indices = Few::new();
        for (i, &expert) in asked.experts.iter().enumerate().filter(|(i, _)| !asked.given[*i]) {
            let Some(slot) = self.core.slot_of(Key { layer: asked.layer, expert }) else { continue };
            let slot = self.place[slot];
            let awaited = self.unsent.iter().any(|&(_, other)| other == slot);
            if !awaited && matches!(self.slots.state(slot), SlotState::Ready { .. }) {
                self.wave.push(self.slots.lease(slot));
                indices.push(i);
            }
        }
        indices.iter().for_each(|&i| asked.given[i] = true);
        indices
    }

    /// The bytes of the lent experts, part by part.
    fn parts(&self, layer: u32, experts: &[u32]) -> Result<(usize, Parts<'_>), ExpertError> {
        let (mut per_expert, mut parts) = (0, Parts::new());
        for (lent, &expert) in self.wave.iter().zip(experts) {
            let segments = self.layout.segments(&self.gguf, layer as usize, expert)?;
            per_expert = segments.len();
            for (segment, at, window) in laid_out(&segments) {
                parts.push(&lent[at + window.skip..][..segment.len]);
            }
        }
        Ok((per_expert, parts))
    }
}

impl Residency for Streamed {
    fn request(&mut self, batch: &RouteBatch<'_>) -> Result<(), ExpertError> {
        self.wave.clear();
        self.asked = None;
        self.collect(Wait::No)?;
        self.core.request(batch, &mut self.missing)?;
        // What was read ahead for this layer and is not wanted makes room.
        self.hinted.retain(|k| k.layer != batch.layer);
        let spare = &mut self.spare;
        self.ahead.retain(|key, slot| {
            let keep = key.layer != batch.layer || batch.experts.contains(&key.expert);
            if !keep {
                spare.push(*slot);
            }
            keep
        });
        self.asked = Some(Asked {
            layer: batch.layer,
            experts: batch.experts.into(),
            given: smallvec![false; batch.experts.len()],
            placed: 0,
        });
        self.pump()
    }

    fn next(&mut self, cancelled: &dyn Fn() -> bool) -> Result<Option<Wave<'_>>, ExpertError> {
        self.wave.clear();
        let mut wait = Wait::No;
        let indices = loop {
            if let Err(error) = self.collect(wait).and_then(|()| self.pump()) {
                self.give_up();
                return Err(error);
            }
            let indices = self.lend();
            if !indices.is_empty() {
                break indices;
            }
            let Some(asked) = self.asked.as_ref().filter(|a| a.given.contains(&false)) else {
                self.asked = None;
                return Ok(None);
            };
            if cancelled() {
                let layer = asked.layer as usize;
                self.give_up();
                return Err(ExpertError::Cancelled { layer });
            }
            wait = Wait::Until(Instant::now() + LOOK);
        };
        let Some(asked) = &self.asked else { return Ok(None) };
        let experts: Few<u32> = indices.iter().map(|&i| asked.experts[i]).collect();
        let (per_expert, parts) = self.parts(asked.layer, &experts)?;
        Ok(Some(Wave { indices, per_expert, parts }))
    }

    fn hint(&mut self, layer: usize, experts: &[u32]) {
        self.expect(layer, experts, false);
    }

    fn guess(&mut self, layer: usize, experts: &[u32]) {
        self.expect(layer, experts, true);
    }

    fn stats(&self) -> Stats {
        let (prefill, decode) =
            (self.core.counts(crate::Phase::Prefill), self.core.counts(crate::Phase::Decode));
        Stats {
            requests: prefill.requests + decode.requests,
            hits: prefill.hits + decode.hits,
            bytes_read: self.reader.bytes_read(),
        }
    }
}
