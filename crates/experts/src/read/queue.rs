//! The reads that wait, run and have ended: what every way of reading shares.
//!
//! Invariant: a [`Piece`] holds its [`Job`], a job its slots' [`Filling`]s, and those the pool. So whatever becomes of the
//! reader or of the caller's interest, the memory of a started read is neither freed nor lent before its piece is dropped,
//! which whoever performs the read does after it has ended. An id is reported at most once, and not before the last of
//! its started pieces has ended, except where the disk stalls.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use smallvec::SmallVec;

use super::{BLOCK, Files, ReadError, ReadPart, Wait, Window};
use crate::slots::{Filling, Slots};

/// How long a cancellation waits for started reads before it leaves them to end on their own.
const DRAIN: Duration = Duration::from_millis(50);

/// One read of consecutive bytes into a slot.
pub(super) struct Piece {
    job: Arc<Job>,
    pub(super) file: usize,
    pub(super) offset: u64,
    /// Room in memory, whole blocks.
    pub(super) room: usize,
    /// Bytes that the file has of them.
    pub(super) need: usize,
    /// Bytes that have come.
    pub(super) got: usize,
    /// Index in `job.slots`.
    slot: usize,
    /// Where in the slot.
    at: usize,
}

impl Piece {
    /// Where the bytes go that have not come yet, with their offset and room.
    pub(super) fn rest(&self) -> (*mut u8, u64, usize) {
        let room = self.room - self.got;
        (self.job.slots[self.slot].place(self.at + self.got, room), self.offset + self.got as u64, room)
    }
}

/// What was submitted under one id.
struct Job {
    id: u64,
    slots: SmallVec<[Filling; 1]>,
}

impl Job {
    /// This job in the memory of `spare`, if nobody else has that.
    fn placed(self, spare: Option<Arc<Job>>) -> Arc<Job> {
        let Some(mut spare) = spare else { return Arc::new(self) };
        match Arc::get_mut(&mut spare) {
            Some(place) => *place = self,
            None => return Arc::new(self),
        }
        spare
    }
}

/// A job that was not reported yet.
struct Open {
    job: Arc<Job>,
    /// Pieces that have not ended.
    left: usize,
    failed: Option<ReadError>,
}

/// A started piece, as an error names it.
struct Started {
    job: Arc<Job>,
    piece: (usize, u64, usize),
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Piece>,
    started: Vec<Started>,
    open: HashMap<u64, Open>,
    done: Vec<(u64, Result<(), ReadError>)>,
    /// Reported jobs, whose memory serves others.
    spare: Vec<Arc<Job>>,
    bytes_read: u64,
    /// For how long no piece has ended, as far as somebody looked.
    silence: Duration,
    /// Up to when `silence` counts.
    looked: Option<Instant>,
    closing: bool,
}

impl State {
    /// A piece has ended, or the first one has come after none.
    fn heard(&mut self) {
        self.silence = Duration::ZERO;
        self.looked = Some(Instant::now());
    }

    /// Counts the time since the last look, at most `limit`: a process that was stopped for a while does not know whether
    /// the disk was silent.
    fn look(&mut self, limit: Duration) {
        let now = Instant::now();
        self.silence += self.looked.map_or(Duration::ZERO, |at| (now - at).min(limit));
        self.looked = Some(now);
    }
}

/// The queue between a reader and the threads that read for it.
pub(super) struct Queue {
    pub(super) files: Arc<Files>,
    slots: Arc<Slots>,
    /// Largest piece, whole blocks.
    piece_bytes: usize,
    stall_after: Duration,
    state: Mutex<State>,
    /// There is something to read, or the queue closes.
    work: Condvar,
    /// A piece has ended.
    news: Condvar,
}

impl Queue {
    pub(super) fn new(
        files: Arc<Files>,
        slots: Arc<Slots>,
        piece_bytes: usize,
        stall_after: Duration,
    ) -> Queue {
        Queue {
            files,
            slots,
            piece_bytes: piece_bytes.next_multiple_of(BLOCK).max(BLOCK),
            stall_after,
            state: Mutex::default(),
            work: Condvar::new(),
            news: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn submit(&self, id: u64, parts: &[ReadPart]) {
        assert!(!parts.is_empty(), "a read of nothing");
        let admitted = parts.iter().try_for_each(|part| self.files.admit(part.file, part.offset, part.len));
        let pieces = self.cut(id, parts, admitted.is_ok());
        if let Err(error) = admitted {
            self.state().done.push((id, Err(error)));
            return;
        }
        let mut state = self.state();
        if state.open.is_empty() {
            state.heard();
        }
        assert!(!state.open.contains_key(&id), "read {id} is in flight already");
        let open = Open { job: Arc::clone(&pieces[0].job), left: pieces.len(), failed: None };
        state.open.insert(id, open);
        state.waiting.extend(pieces);
        drop(state);
        self.work.notify_all();
    }

    /// Takes the slots and, for parts that can be read, cuts their windows into pieces of about one size each.
    fn cut(&self, id: u64, parts: &[ReadPart], readable: bool) -> SmallVec<[Piece; 12]> {
        let mut slots: SmallVec<[Filling; 1]> = SmallVec::new();
        for part in parts {
            if !slots.iter().any(|filling| filling.slot() == part.slot) {
                slots.push(self.slots.fill(part.slot));
            }
        }
        let job = Job { id, slots }.placed(self.state().spare.pop());
        let mut pieces = SmallVec::new();
        for part in parts.iter().filter(|_| readable) {
            let window = Window::of(part.offset, part.len);
            assert!(part.len > 0 && part.at.is_multiple_of(BLOCK), "{part:?} does not begin at a block");
            let slot = job.slots.iter().position(|filling| filling.slot() == part.slot).unwrap_or(0);
            job.slots[slot].place(part.at, window.len);
            let step = window.len.div_ceil(window.len.div_ceil(self.piece_bytes)).next_multiple_of(BLOCK);
            for from in (0..window.len).step_by(step) {
                let offset = window.start + from as u64;
                let room = step.min(window.len - from);
                let need = (self.files.size(part.file) - offset).min(room as u64) as usize;
                let job = Arc::clone(&job);
                pieces.push(Piece {
                    job,
                    file: part.file,
                    offset,
                    room,
                    need,
                    got: 0,
                    slot,
                    at: part.at + from,
                });
            }
        }
        pieces
    }

    /// The next piece to read; waits for one unless `now`. `None` where there is none, or the queue closes.
    pub(super) fn next(&self, now: bool) -> Option<Piece> {
        let mut state = self.state();
        loop {
            if let Some(piece) = state.waiting.pop_front() {
                let named = (piece.file, piece.offset, piece.need);
                state.started.push(Started { job: Arc::clone(&piece.job), piece: named });
                return Some(piece);
            }
            if now || state.closing {
                return None;
            }
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether nothing more will come.
    #[cfg(target_os = "linux")]
    pub(super) fn closing(&self) -> bool {
        self.state().closing
    }

    /// Gives back a piece of [`Queue::next`] whose read has ended.
    pub(super) fn ended(&self, piece: Piece, result: Result<(), ReadError>) {
        let mut state = self.state();
        let State { waiting, started, open, .. } = &mut *state;
        let named = (piece.file, piece.offset, piece.need);
        if let Some(at) = started.iter().position(|s| s.piece == named && Arc::ptr_eq(&s.job, &piece.job)) {
            started.remove(at);
        }
        let mut reported = None;
        // A job that was given up is not open any more, though another may be under its id.
        if let Some(job) = open.get_mut(&piece.job.id).filter(|open| Arc::ptr_eq(&open.job, &piece.job)) {
            job.left -= 1;
            if let Err(error) = result {
                let before = waiting.len();
                waiting.retain(|other| !Arc::ptr_eq(&other.job, &piece.job));
                job.left -= before - waiting.len();
                job.failed.get_or_insert(error);
            }
            if job.left == 0 {
                reported = open.remove(&piece.job.id);
            }
        }
        state.bytes_read += piece.got as u64;
        state.heard();
        let id = piece.job.id;
        // Whoever sees the report must find the slots settled, so the last holders of a failed job go first.
        if let Some(open) = &reported
            && open.failed.is_none()
        {
            open.job.slots.iter().for_each(Filling::ready);
        }
        drop(piece);
        if let Some(Open { mut job, failed, .. }) = reported {
            if let Some(settled) = Arc::get_mut(&mut job) {
                settled.slots.clear();
                state.spare.push(job);
            } else {
                drop(job);
            }
            state.done.push((id, failed.map_or(Ok(()), Err)));
        }
        drop(state);
        self.news.notify_all();
    }

    pub(super) fn finished(&self, wait: Wait, into: &mut Vec<(u64, Result<(), ReadError>)>) {
        let mut state = self.state();
        loop {
            let look_every = self.stall_after / 8;
            state.look(look_every);
            if state.silence >= self.stall_after {
                self.give_up(&mut state);
            }
            if !state.done.is_empty() || state.open.is_empty() {
                into.append(&mut state.done);
                return;
            }
            let now = Instant::now();
            let timeout = match wait {
                Wait::No => return,
                Wait::Until(deadline) if deadline <= now => return,
                Wait::Until(deadline) => look_every.min(deadline - now),
                Wait::Forever => look_every,
            };
            state = self.news.wait_timeout(state, timeout).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Reports all that is open as waiting for a disk that does not answer.
    fn give_up(&self, state: &mut State) {
        let oldest = match (state.started.first(), state.waiting.front()) {
            (Some(started), _) => started.piece,
            (None, Some(piece)) => (piece.file, piece.offset, piece.need),
            (None, None) => return,
        };
        state.waiting.clear();
        for (id, _) in state.open.drain() {
            let (file, offset, len) = oldest;
            state.done.push((id, Err(self.files.stalled(file, offset, len, self.stall_after))));
        }
    }

    pub(super) fn in_flight(&self) -> usize {
        let state = self.state();
        state.open.len() + state.done.len()
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.state().bytes_read
    }

    fn forget(state: &mut State) {
        state.waiting.clear();
        state.open.clear();
        state.done.clear();
    }

    pub(super) fn cancel(&self) {
        let mut state = self.state();
        Self::forget(&mut state);
        let waiting = |state: &mut State| !state.started.is_empty();
        drop(self.news.wait_timeout_while(state, DRAIN, waiting));
    }

    /// Ends the threads that read, each after what it has started.
    pub(super) fn close(&self) {
        let mut state = self.state();
        Self::forget(&mut state);
        state.closing = true;
        drop(state);
        self.work.notify_all();
    }
}
