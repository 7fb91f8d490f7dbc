//! Layers of a dense model that don't stay in memory: read each time they are used, in order and ahead of use.
//!
//! Layers come in turn, so what comes next is known: while one is computed with, those after it are read into the other slots,
//! past the last one the first of the next token.
//!
//! Invariant: a slot that is lent or read into is never reused, and a layer is lent only when all of it is there.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use smallvec::SmallVec;
use turbospark_format::Gguf;

use crate::read::{Finished, Reader, Segment, Wait, laid_out, parts_of, room_for};
use crate::slots::{Leased, SlotState, Slots};
use crate::{ExpertError, Stats};

/// Matrices that lie closer are read as one run with what lies between them.
const GAP: u64 = 128 << 10;
/// How often a wait for reads looks whether to go on.
const LOOK: Duration = Duration::from_millis(20);

/// Where the matrices of one layer lie.
#[derive(Debug, Clone)]
pub struct LayerRuns {
    layer: usize,
    runs: Vec<Segment>,
    /// Each matrix's index in `Gguf::tensors()` and its bytes in a slot that holds the runs.
    places: Vec<(usize, Range<usize>)>,
}

impl LayerRuns {
    /// The runs of the `tensors` (indices in `Gguf::tensors()`) that `layer` needs as they are in the file.
    pub fn new(gguf: &Gguf, layer: usize, tensors: &[usize]) -> LayerRuns {
        let mut sorted = tensors.to_vec();
        sorted.sort_by_key(|&i| (gguf.tensors()[i].shard, gguf.tensors()[i].offset));
        let mut runs: Vec<Segment> = Vec::new();
        let mut members: Vec<(usize, usize)> = Vec::new();
        for index in sorted {
            let tensor = &gguf.tensors()[index];
            let end = |run: &Segment| run.offset + run.len as u64;
            match runs.last_mut().filter(|r| r.file == tensor.shard && tensor.offset <= end(r) + GAP) {
                Some(run) => run.len = (tensor.offset + tensor.bytes - run.offset) as usize,
                None => runs.push(Segment {
                    file: tensor.shard,
                    offset: tensor.offset,
                    len: tensor.bytes as usize,
                }),
            }
            members.push((index, runs.len() - 1));
        }
        let starts: Vec<(u64, usize)> =
            laid_out(&runs).map(|(run, at, window)| (run.offset, at + window.skip)).collect();
        let place = |(index, run): (usize, usize)| {
            let (tensor, (offset, at)) = (&gguf.tensors()[index], starts[run]);
            let start = at + (tensor.offset - offset) as usize;
            (index, start..start + tensor.bytes as usize)
        };
        let places = members.into_iter().map(place).collect();
        LayerRuns { layer, runs, places }
    }

    /// Bytes of the matrices alone.
    pub fn matrix_bytes(&self) -> usize {
        self.places.iter().map(|(_, place)| place.len()).sum()
    }

    /// Bytes that are read to have the layer: the room that it takes.
    pub fn read_bytes(&self) -> usize {
        room_for(&self.runs)
    }

    /// The matrices, as indices in `Gguf::tensors()`.
    pub fn tensors(&self) -> impl Iterator<Item = usize> + '_ {
        self.places.iter().map(|(index, _)| *index)
    }

    /// What is read.
    pub fn segments(&self) -> &[Segment] {
        &self.runs
    }
}

/// A layer's matrices, lent.
pub struct HeldLayer {
    lease: Leased,
    places: Arc<LayerRuns>,
}

impl HeldLayer {
    /// The bytes of a tensor of the layer, by its index in `Gguf::tensors()`.
    pub fn bytes(&self, tensor: usize) -> Option<&[u8]> {
        let (_, range) = self.places.places.iter().find(|(index, _)| *index == tensor)?;
        self.lease.get(range.clone())
    }
}

/// The layers of a model that are read for each pass.
pub struct StreamedLayers {
    /// Ascending.
    layers: Vec<Arc<LayerRuns>>,
    slots: Arc<Slots>,
    reader: Box<dyn Reader>,
    /// What is there or on its way, in the order of use: index in `layers`, slot, and the read's id until it has ended.
    coming: VecDeque<(usize, usize, Option<u64>)>,
    /// Slots that hold nothing to come; one of them may be lent still.
    free: SmallVec<[usize; 4]>,
    /// Index of the layer to read after those.
    next: usize,
    next_id: u64,
    stats: Stats,
    finished: Finished,
}

impl StreamedLayers {
    /// Streams `layers`, which ascend, through `reader` into `slots`.
    ///
    /// # Panics
    /// Where there is no layer, no slot, or a slot too small for a layer.
    pub fn new(layers: Vec<LayerRuns>, slots: Arc<Slots>, reader: Box<dyn Reader>) -> StreamedLayers {
        let largest = layers.iter().map(LayerRuns::read_bytes).max();
        assert!(largest.is_some_and(|l| l <= slots.slot_bytes()) && !slots.is_empty(), "no room for a layer");
        StreamedLayers {
            layers: layers.into_iter().map(Arc::new).collect(),
            free: (0..slots.len()).collect(),
            slots,
            reader,
            coming: VecDeque::new(),
            next: 0,
            next_id: 0,
            stats: Stats::default(),
            finished: Vec::new(),
        }
    }

    /// Blocks until `layer` can be used and lends it; `None` where it stays in memory. Those after it are read meanwhile.
    ///
    /// # Errors
    /// Bytes that can't be read; [`ExpertError::Cancelled`] soon after `cancelled` says so. What was on its way is given up then.
    pub fn take(
        &mut self,
        layer: usize,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Option<HeldLayer>, ExpertError> {
        self.stats.requests += 1;
        let Ok(index) = self.layers.binary_search_by_key(&layer, |l| l.layer) else {
            self.stats.hits += 1;
            self.read_on();
            return Ok(None);
        };
        // A pass that was given up begins anew; what is on its way for it may still be of use.
        while self.coming.front().is_some_and(|(first, ..)| *first != index) {
            match self.coming.iter().any(|(i, ..)| *i == index) {
                true if self.coming.front().is_some_and(|(_, _, id)| id.is_none()) => {
                    self.free.extend(self.coming.pop_front().map(|(_, slot, _)| slot));
                }
                _ => self.give_up(),
            }
        }
        let mut wait = Wait::No;
        loop {
            self.collect(wait)?;
            if self.coming.is_empty() {
                self.next = index;
            }
            self.read_on();
            if let Some(&(_, slot, None)) = self.coming.front() {
                self.coming.pop_front();
                self.free.push(slot);
                let lease = self.slots.lease(slot);
                return Ok(Some(HeldLayer { lease, places: self.layers[index].clone() }));
            }
            if cancelled() {
                self.give_up();
                return Err(ExpertError::Cancelled { layer });
            }
            wait = Wait::Until(Instant::now() + LOOK);
        }
    }

    /// Reads what comes next into the slots that are free. To be called when a layer has been used.
    pub fn read_on(&mut self) {
        while self.coming.len() < self.layers.len() {
            let usable = |&slot: &usize| {
                matches!(self.slots.state(slot), SlotState::Free | SlotState::Ready { leases: 0 })
            };
            let Some(at) = self.free.iter().position(usable) else { break };
            let slot = self.free.swap_remove(at);
            self.next_id += 1;
            self.reader.submit(self.next_id, &parts_of(&self.layers[self.next].runs, slot));
            self.coming.push_back((self.next, slot, Some(self.next_id)));
            self.next = (self.next + 1) % self.layers.len();
        }
    }

    /// What happened so far: layers that were asked for, those that stay in memory as hits, and bytes read.
    pub fn stats(&self) -> Stats {
        Stats { bytes_read: self.reader.bytes_read(), ..self.stats }
    }

    fn collect(&mut self, wait: Wait) -> Result<(), ExpertError> {
        let mut finished = std::mem::take(&mut self.finished);
        self.reader.finished(wait, &mut finished);
        let mut failed = None;
        for (id, read) in finished.drain(..) {
            let Some(entry) = self.coming.iter_mut().find(|(_, _, other)| *other == Some(id)) else {
                continue;
            };
            match read {
                Ok(()) => entry.2 = None,
                Err(source) => failed = Some((self.layers[entry.0].layer, source)),
            }
        }
        self.finished = finished;
        let Some((layer, source)) = failed else { return Ok(()) };
        self.give_up();
        Err(ExpertError::ReadLayer { layer, source })
    }

    /// Drops what is there and on its way.
    fn give_up(&mut self) {
        self.reader.cancel_pending();
        self.free.extend(self.coming.drain(..).map(|(_, slot, _)| slot));
        self.next = 0;
    }
}
