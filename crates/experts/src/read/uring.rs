//! Reading by io_uring: one thread keeps so many reads at once in flight.
//!
//! The ring has a thread of its own so that reads go on while the caller computes. The pool is not registered with the ring:
//! that would take and pin all of it at once, which most users' limits forbid, for a few percent (docs/findings.md, "the
//! memory that is read into").
//!
//! Invariant: a piece leaves [`Flying`] only when its completion has come. Should the thread fail before, what is in
//! flight is leaked with its memory, for the kernel still writes there.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::thread;

use io_uring::{IoUring, opcode, squeue, types};
use rustix::event::{EventfdFlags, eventfd};

use super::ReadError;
use super::queue::{Piece, Queue};
use super::threads::{advance, again};

/// Most reads at once.
const MAX_DEPTH: usize = 256;
/// `user_data` of the poll that tells of new work; pieces have their index in [`Flying`].
const BELL: u64 = u64::MAX;
/// `POLLIN`.
const READABLE: u32 = 1;
/// Starts the ring's thread on `queue`; the result is called when the queue has new work.
pub(super) fn start(queue: &Arc<Queue>, depth: usize) -> Result<impl Fn() + Send + use<>, ReadError> {
    let refused = |error: io::Error| ReadError::Unavailable { what: "io_uring", reason: error.to_string() };
    let depth = depth.clamp(1, MAX_DEPTH);
    let ring = ring(depth).map_err(refused)?;
    let bell =
        Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).map_err(|e| refused(e.into()))?);
    let fds = queue.files.handles();
    let fixed_files = ring.submitter().register_files(&fds).is_ok();
    let flying = Flying { pieces: (0..depth).map(|_| None).collect(), free: (0..depth).collect() };
    let driver = Driver { ring, flying, fds, fixed_files, bell: Arc::clone(&bell) };
    let of_thread = Arc::clone(queue);
    thread::Builder::new()
        .name("read-ring".to_owned())
        .spawn(move || driver.run(&of_thread))
        .map_err(refused)?;
    Ok(move || {
        // A full counter has rung enough.
        let _ = rustix::io::write(&*bell, &1_u64.to_ne_bytes());
    })
}

/// A ring that works: some sandboxes give one and refuse its use.
fn ring(depth: usize) -> io::Result<IoUring> {
    let mut ring = IoUring::new(depth as u32 + 1)?;
    // SAFETY: the operation touches no memory.
    unsafe { ring.submission().push(&opcode::Nop::new().build()) }.map_err(io::Error::other)?;
    ring.submit_and_wait(1)?;
    let done = ring.completion().next().map(|done| done.result());
    match done {
        Some(0) => Ok(ring),
        Some(error) => Err(io::Error::from_raw_os_error(-error)),
        None => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Pieces whose reads the kernel has.
struct Flying {
    pieces: Vec<Option<Piece>>,
    free: Vec<usize>,
}

impl Flying {
    fn is_empty(&self) -> bool {
        self.free.len() == self.pieces.len()
    }
}

impl Drop for Flying {
    fn drop(&mut self) {
        self.pieces.drain(..).flatten().for_each(std::mem::forget);
    }
}

struct Driver {
    ring: IoUring,
    flying: Flying,
    fds: Vec<RawFd>,
    fixed_files: bool,
    bell: Arc<OwnedFd>,
}

impl Driver {
    fn run(mut self, queue: &Queue) {
        self.arm_bell();
        loop {
            while let Some(&at) = self.flying.free.last() {
                let Some(piece) = queue.next(!self.flying.is_empty()) else { break };
                self.flying.free.pop();
                self.push(&piece, at);
                self.flying.pieces[at] = Some(piece);
            }
            if self.flying.is_empty() && queue.closing() {
                return;
            }
            match self.ring.submit_and_wait(1) {
                Ok(_) => {}
                Err(error) if again(&error) => {}
                // The kernel is short of something until completions are taken.
                Err(_) => thread::sleep(std::time::Duration::from_millis(1)),
            }
            self.reap(queue);
        }
    }

    fn reap(&mut self, queue: &Queue) {
        while let Some(done) = { self.ring.completion().next() } {
            if done.user_data() == BELL {
                let _ = rustix::io::read(&*self.bell, &mut [0; 8]);
                self.arm_bell();
                continue;
            }
            let at = done.user_data() as usize;
            let Some(mut piece) = self.flying.pieces[at].take() else { continue };
            let (_, offset, _) = piece.rest();
            let result = match done.result() {
                error if error < 0 => Err(io::Error::from_raw_os_error(-error)),
                more => Ok(more as usize),
            };
            let result = match queue.files.meddle(offset, result) {
                Ok(more) => advance(&queue.files, &mut piece, more),
                Err(error) if again(&error) => Ok(()),
                Err(error) => {
                    Err(queue.files.explain(piece.file, offset, piece.need - piece.got, Some(error)))
                }
            };
            if result.is_ok() && piece.got < piece.need {
                self.push(&piece, at);
                self.flying.pieces[at] = Some(piece);
            } else {
                self.flying.free.push(at);
                queue.ended(piece, result);
            }
        }
    }

    /// Puts the rest of `piece`, which the caller keeps in `flying` at `at`, into the submission queue.
    fn push(&mut self, piece: &Piece, at: usize) {
        let (place, offset, room) = piece.rest();
        let room = room as u32;
        let read = if self.fixed_files {
            opcode::Read::new(types::Fixed(piece.file as u32), place, room)
        } else {
            opcode::Read::new(types::Fd(self.fds[piece.file]), place, room)
        };
        let read = read.offset(offset).build();
        self.enqueue(&read.user_data(at as u64));
    }

    fn arm_bell(&mut self) {
        let poll = opcode::PollAdd::new(types::Fd(self.bell.as_raw_fd()), READABLE).build();
        self.enqueue(&poll.user_data(BELL));
    }

    fn enqueue(&mut self, entry: &squeue::Entry) {
        // SAFETY: a read's memory is a place of its piece, which stays in `flying` until the completion has come, and is
        // leaked should that be torn down before. The poll touches no memory, and the driver keeps its descriptor open.
        let pushed = unsafe { self.ring.submission().push(entry) };
        assert!(pushed.is_ok(), "the queue has a place for each read and the bell");
    }
}
