//! Reading experts from files into slots: many reads at once, each of which may fail without harm to the others.
//!
//! Invariant: whatever way of reading is chosen, the same bytes come to the same places; ways differ in speed only.

mod error;
mod files;
mod probe;
mod queue;
#[cfg(test)]
mod tests;
mod threads;
#[cfg(target_os = "linux")]
mod uring;
mod window;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use error::ReadError;
pub use files::{Files, IoMode};
pub use probe::{IoChoice, Segment, choose, choose_among, measure};
pub use window::{BLOCK, Window};
pub(crate) use window::{laid_out, parts_of, room_for};

use crate::Slots;
use queue::Queue;

/// How long a disk may be silent before what it was asked for is given up.
pub const STALL_AFTER: Duration = Duration::from_secs(30);

/// Bytes that are wanted, and where they go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadPart {
    /// The file's index in [`Files`].
    pub file: usize,
    /// Offset in the file of the first wanted byte.
    pub offset: u64,
    /// Wanted bytes, at least one.
    pub len: usize,
    /// The slot they go to.
    pub slot: usize,
    /// Where in the slot their [`Window`] begins, a whole number of [`BLOCK`]s; the bytes are `skip` further.
    pub at: usize,
}

/// How long to wait for reads to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    No,
    /// Until one has ended, at most until then.
    Until(Instant),
    /// Until one has ended.
    Forever,
}

/// What became of the reads that have ended, by their ids.
pub type Finished = Vec<(u64, Result<(), ReadError>)>;

/// Reads into slots, in the order of submission as far as the disk keeps it.
///
/// Slots are [`SlotState::Ready`](crate::SlotState::Ready) once their read is reported as successful, and
/// [`SlotState::Free`](crate::SlotState::Free) once it is reported as failed. There are two exceptions, in which a slot
/// stays [`SlotState::Reading`](crate::SlotState::Reading) until the disk answers and is free then: reads that were
/// cancelled after their start, and [`ReadError::Stalled`].
///
/// Dropping a reader cancels what has not started and leaves the rest to end on its own; the slots' memory lives until then.
pub trait Reader: Send {
    /// Starts to read `parts`, such as the three of an expert, which end together as `id`.
    ///
    /// # Panics
    /// Where a slot is lent or already read into, a window exceeds its slot, or `id` is in flight.
    fn submit(&mut self, id: u64, parts: &[ReadPart]);

    /// Adds what has ended since the last call to `done`; returns at once if nothing is in flight.
    fn finished(&mut self, wait: Wait, done: &mut Finished);

    /// Ids that were submitted and neither given by `finished` nor cancelled.
    fn in_flight(&self) -> usize;

    /// Forgets all ids: what has not started never will, and what has is waited for for 50 ms at most.
    fn cancel_pending(&mut self);

    /// For people: "4 threads, direct, requests of up to 4 MB".
    fn describe(&self) -> String;

    /// Bytes that came, with those around the wanted ones.
    fn bytes_read(&self) -> u64;
}

/// What keeps reads in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// So many threads, each of which performs one read at a time.
    Threads(usize),
    /// io_uring with so many reads at once.
    Uring(usize),
}

/// A way of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method {
    /// What keeps reads in flight.
    pub engine: Engine,
    /// Most bytes of a read: larger ones are cut into even pieces.
    pub request_bytes: usize,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.engine {
            Engine::Threads(n) => write!(f, "{n} threads, requests of up to ")?,
            Engine::Uring(depth) => write!(f, "io_uring, {depth} requests of up to ")?,
        }
        match self.request_bytes {
            bytes if bytes % (1 << 20) == 0 => write!(f, "{} MB", bytes >> 20),
            bytes => write!(f, "{} KB", bytes >> 10),
        }
    }
}

impl Method {
    /// A reader of this kind that gives reads up after [`STALL_AFTER`].
    ///
    /// # Errors
    /// io_uring where the system has none; threads that it does not give.
    pub fn open(self, files: &Arc<Files>, slots: &Arc<Slots>) -> Result<Box<dyn Reader>, ReadError> {
        self.open_with(files, slots, STALL_AFTER)
    }

    /// A reader of this kind that gives reads up when none has ended for `stall_after`.
    ///
    /// # Errors
    /// As [`Method::open`].
    pub fn open_with(
        self,
        files: &Arc<Files>,
        slots: &Arc<Slots>,
        stall_after: Duration,
    ) -> Result<Box<dyn Reader>, ReadError> {
        let queue =
            Arc::new(Queue::new(Arc::clone(files), Arc::clone(slots), self.request_bytes, stall_after));
        let wake: Option<Box<dyn Fn() + Send>> = match self.engine {
            Engine::Threads(n) => {
                threads::start(&queue, n)?;
                None
            }
            #[cfg(target_os = "linux")]
            Engine::Uring(depth) => Some(Box::new(uring::start(&queue, depth)?)),
            #[cfg(not(target_os = "linux"))]
            Engine::Uring(_) => {
                let reason = "only Linux has it".to_owned();
                return Err(ReadError::Unavailable { what: "io_uring", reason });
            }
        };
        Ok(Box::new(QueueReader { queue, method: self, wake }))
    }
}

/// The caller's end of a queue.
struct QueueReader {
    queue: Arc<Queue>,
    method: Method,
    /// Tells who does not wait at the queue that there is something new.
    wake: Option<Box<dyn Fn() + Send>>,
}

impl QueueReader {
    fn wake(&self) {
        if let Some(wake) = &self.wake {
            wake();
        }
    }
}

impl Reader for QueueReader {
    fn submit(&mut self, id: u64, parts: &[ReadPart]) {
        self.queue.submit(id, parts);
        self.wake();
    }

    fn finished(&mut self, wait: Wait, done: &mut Finished) {
        self.queue.finished(wait, done);
    }

    fn in_flight(&self) -> usize {
        self.queue.in_flight()
    }

    fn cancel_pending(&mut self) {
        self.queue.cancel();
    }

    fn describe(&self) -> String {
        format!("{}, {}", self.method, self.queue.files.describe())
    }

    fn bytes_read(&self) -> u64 {
        self.queue.bytes_read()
    }
}

impl Drop for QueueReader {
    fn drop(&mut self) {
        self.queue.close();
        self.wake();
    }
}
