//! The memory that experts are read into: one pool of slots of one size.
//!
//! Invariant: a slot's bytes are lent only while nothing reads into it, and nothing begins to read into a slot that is
//! lent or already read into. Each slot's state keeps that at run time; whoever holds a [`Leased`] or a read in flight
//! also holds the pool, so its memory outlives both.
#![allow(unsafe_code)]

use std::fmt;
use std::io;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use memmap2::MmapMut;

use crate::ExpertError;
use crate::read::BLOCK;

/// Bytes of a large page on the usual machines.
const LARGE_PAGE: usize = 2 << 20;

/// Nothing in the slot is worth keeping.
const FREE: u32 = 0;
/// The slot holds what was read into it; each lease adds one.
const READY: u32 = 1;
/// Something writes into the slot.
const READING: u32 = u32::MAX;

/// What a slot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotState {
    /// Nothing: it was never read into, or its last read failed or was cancelled.
    Free,
    /// A read is in flight, which may also be one that was given up.
    Reading,
    /// What the last read brought, lent to so many leases.
    Ready {
        /// Leases that are alive.
        leases: u32,
    },
}

/// A pool of slots, each of which begins at a whole number of [`BLOCK`]s.
///
/// The pool is one reservation. The system gives a page at the first write to it, so a pool that has been used fully holds
/// exactly [`Slots::bytes`], and one that has not, less.
pub struct Slots {
    /// Kept for its unmapping; all access goes through `base`.
    _memory: MmapMut,
    base: NonNull<u8>,
    slot_bytes: usize,
    states: Box<[AtomicU32]>,
}

// SAFETY: the memory behind `base` belongs to `_memory`, which lives as long, and is touched by the rules of `states`.
unsafe impl Send for Slots {}
// SAFETY: as above; `states` is atomic, so the rules hold between threads.
unsafe impl Sync for Slots {}

impl Slots {
    /// `n` slots of `slot_bytes` each, rounded up to whole blocks.
    ///
    /// # Errors
    /// Memory that the system does not give.
    pub fn new(n: usize, slot_bytes: usize) -> Result<Arc<Slots>, ExpertError> {
        let refused = |source| ExpertError::NoMemory { slots: n, slot_bytes, source };
        let out_of_memory = || refused(io::ErrorKind::OutOfMemory.into());
        let slot_bytes = slot_bytes.checked_next_multiple_of(BLOCK).ok_or_else(out_of_memory)?;
        let bytes = n.checked_mul(slot_bytes).ok_or_else(out_of_memory)?;
        // What precedes the first large page is address space only.
        let spare = if bytes < LARGE_PAGE { 0 } else { LARGE_PAGE };
        let mapped = bytes.max(BLOCK).checked_add(spare).ok_or_else(out_of_memory)?;
        let mut memory = MmapMut::map_anon(mapped).map_err(refused)?;
        let begin = if spare == 0 { 0 } else { memory.as_ptr().align_offset(LARGE_PAGE) };
        // A direct read is a request of so many runs of memory, and disks bound the runs of a request: small pages make small
        // requests, and halved the rate (docs/findings.md, "the memory that is read into"). A kernel without large pages
        // reads as well. The advice ends with the pool, so that the last page is not a large one that reaches beyond.
        #[cfg(target_os = "linux")]
        let _ = memory.advise_range(memmap2::Advice::HugePage, begin, bytes);
        let base = NonNull::new(memory.as_mut_ptr().wrapping_add(begin)).ok_or_else(out_of_memory)?;
        let states = (0..n).map(|_| AtomicU32::new(FREE)).collect();
        Ok(Arc::new(Slots { _memory: memory, base, slot_bytes, states }))
    }

    /// Slots in the pool.
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Whether the pool has no slot.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Bytes of a slot.
    pub fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// Bytes that the pool holds once all of it was used.
    pub fn bytes(&self) -> usize {
        self.len() * self.slot_bytes
    }

    /// What `slot` holds now; only [`SlotState::Reading`] can change without the caller's doing.
    pub fn state(&self, slot: usize) -> SlotState {
        match self.states[slot].load(Ordering::Acquire) {
            FREE => SlotState::Free,
            READING => SlotState::Reading,
            ready => SlotState::Ready { leases: ready - READY },
        }
    }

    /// Lends the bytes of `slot`.
    ///
    /// # Panics
    /// Where the slot is not [`SlotState::Ready`].
    pub fn lease(self: &Arc<Self>, slot: usize) -> Leased {
        let lent = self.states[slot].fetch_update(Ordering::Acquire, Ordering::Relaxed, |state| {
            (state != FREE && state < READING - 1).then(|| state + 1)
        });
        assert!(lent.is_ok(), "slot {slot} has nothing to lend: {:?}", self.state(slot));
        Leased { slots: Arc::clone(self), slot }
    }

    /// Takes `slot` to read into it.
    ///
    /// # Panics
    /// Where it is lent or already read into.
    pub(crate) fn fill(self: &Arc<Self>, slot: usize) -> Filling {
        let taken = self.states[slot].fetch_update(Ordering::Acquire, Ordering::Relaxed, |state| {
            (state == FREE || state == READY).then_some(READING)
        });
        assert!(taken.is_ok(), "slot {slot} can't be read into: {:?}", self.state(slot));
        Filling { slots: Arc::clone(self), slot, settled: AtomicU32::new(READING) }
    }
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} slots of {} bytes", self.len(), self.slot_bytes)
    }
}

/// The bytes of a slot, lent; as long as it lives, nothing is read into the slot.
pub struct Leased {
    slots: Arc<Slots>,
    slot: usize,
}

impl Leased {
    /// Which slot it is.
    pub fn slot(&self) -> usize {
        self.slot
    }
}

impl Deref for Leased {
    type Target = [u8];

    /// All `slot_bytes` of the slot; those that no read wrote are zero or left from earlier reads.
    fn deref(&self) -> &[u8] {
        let slots = &*self.slots;
        // SAFETY: the slot lies within the mapping, whose bytes were zero at first, and `lease` has counted this value in
        // the slot's state, so until it is dropped no `Filling` of the slot exists to write to it.
        unsafe {
            std::slice::from_raw_parts(
                slots.base.as_ptr().add(self.slot * slots.slot_bytes),
                slots.slot_bytes,
            )
        }
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        self.slots.states[self.slot].fetch_sub(1, Ordering::Release);
    }
}

impl fmt::Debug for Leased {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slot {}", self.slot)
    }
}

/// The only right to write to a slot. When it goes without [`Filling::ready`], the slot is free.
pub(crate) struct Filling {
    slots: Arc<Slots>,
    slot: usize,
    /// `READING` until the slot's next state was set.
    settled: AtomicU32,
}

impl Filling {
    pub(crate) fn slot(&self) -> usize {
        self.slot
    }

    /// Where byte `at` of the slot is. What is done with it while this value lives is the caller's affair: two writers
    /// need places that don't overlap.
    ///
    /// # Panics
    /// Where `len` bytes from there are not all within the slot.
    pub(crate) fn place(&self, at: usize, len: usize) -> *mut u8 {
        let slot_bytes = self.slots.slot_bytes;
        assert!(at.checked_add(len).is_some_and(|end| end <= slot_bytes), "{len} bytes at {at} of a slot");
        // SAFETY: slot and place lie within the mapping.
        unsafe { self.slots.base.as_ptr().add(self.slot * slot_bytes + at) }
    }

    /// Says that everything was written, by whoever held a place: from here on the slot may be lent.
    pub(crate) fn ready(&self) {
        self.settle(READY);
    }

    fn settle(&self, state: u32) {
        if self.settled.swap(state, Ordering::AcqRel) == READING {
            self.slots.states[self.slot].store(state, Ordering::Release);
        }
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        self.settle(FREE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn filled(slots: &Arc<Slots>, slot: usize, value: u8) {
        let filling = slots.fill(slot);
        // SAFETY: the place is within the slot and `filling` is its only right to write.
        unsafe { filling.place(0, slots.slot_bytes()).write_bytes(value, slots.slot_bytes()) };
        filling.ready();
    }

    #[test]
    fn slots_are_whole_blocks_that_begin_at_blocks_and_do_not_overlap() {
        let slots = Slots::new(3, 5000).unwrap();
        assert_eq!((slots.len(), slots.slot_bytes(), slots.bytes()), (3, 8192, 3 * 8192));
        for slot in 0..3 {
            filled(&slots, slot, slot as u8 + 1);
        }
        for slot in 0..3 {
            let leased = slots.lease(slot);
            assert_eq!(leased.as_ptr() as usize % BLOCK, 0);
            assert!(leased.len() == 8192 && leased.iter().all(|&b| b == slot as u8 + 1));
        }
    }

    #[test]
    fn a_pool_larger_than_a_large_page_begins_at_one_and_has_all_its_slots() {
        let slots = Slots::new(5, (1 << 20) + 1).unwrap();
        for slot in 0..5 {
            filled(&slots, slot, slot as u8 + 1);
        }
        assert!((0..5).all(|slot| slots.lease(slot).iter().all(|&b| b == slot as u8 + 1)));
        assert_eq!(slots.lease(0).as_ptr() as usize % LARGE_PAGE, 0);
    }

    #[test]
    fn memory_that_can_not_be_had_is_refused() {
        for (n, slot_bytes) in [(usize::MAX, 4096), (1, usize::MAX), (1 << 30, 1 << 30)] {
            let error = Slots::new(n, slot_bytes).unwrap_err();
            assert!(error.to_string().contains(&format!("{n} slots of {slot_bytes} bytes")), "{error}");
        }
        assert!(Slots::new(0, 100).unwrap().is_empty());
    }

    #[test]
    fn a_slot_goes_from_free_over_reading_to_ready_and_back() {
        let slots = Slots::new(1, 1).unwrap();
        let filling = slots.fill(0);
        assert_eq!(slots.state(0), SlotState::Reading);
        drop(filling);
        assert_eq!(slots.state(0), SlotState::Free);
        filled(&slots, 0, 9);
        let (one, two) = (slots.lease(0), slots.lease(0));
        assert_eq!(slots.state(0), SlotState::Ready { leases: 2 });
        drop((one, two));
        drop(slots.fill(0));
        assert_eq!(slots.state(0), SlotState::Free);
    }

    #[test]
    fn what_is_lent_or_read_into_can_not_be_read_into_and_what_is_not_ready_can_not_be_lent() {
        let slots = Slots::new(2, 1).unwrap();
        let panics = |f: &dyn Fn()| catch_unwind(AssertUnwindSafe(f)).is_err();
        assert!(panics(&|| drop(slots.lease(0))));
        let filling = slots.fill(0);
        assert!(panics(&|| drop(slots.lease(0))) && panics(&|| drop(slots.fill(0))));
        filling.ready();
        drop(filling);
        let leased = slots.lease(0);
        assert!(panics(&|| drop(slots.fill(0))));
        drop(leased);
        drop(slots.fill(0));
    }

    #[test]
    fn a_lease_outlives_the_last_handle_of_its_pool() {
        let slots = Slots::new(1, 1).unwrap();
        filled(&slots, 0, 7);
        let leased = slots.lease(0);
        drop(slots);
        assert!(leased.iter().all(|&b| b == 7));
    }
}
