//! Reading by threads, each of which performs one positional read after the other.
//!
//! Invariant: a thread gives its piece back, or drops it, only when the system call has returned.
#![allow(unsafe_code)]

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::queue::{Piece, Queue};
use super::{Files, ReadError};

/// Starts `n` threads on `queue`.
pub(super) fn start(queue: &Arc<Queue>, n: usize) -> Result<(), ReadError> {
    for i in 0..n.max(1) {
        let of_thread = Arc::clone(queue);
        let started = thread::Builder::new().name(format!("read-{i}")).spawn(move || work(&of_thread));
        if let Err(error) = started {
            queue.close();
            return Err(ReadError::Unavailable { what: "a thread for reading", reason: error.to_string() });
        }
    }
    Ok(())
}

fn work(queue: &Queue) {
    while let Some(mut piece) = queue.next(false) {
        let result = read(&queue.files, &mut piece);
        queue.ended(piece, result);
    }
}

fn read(files: &Files, piece: &mut Piece) -> Result<(), ReadError> {
    while piece.got < piece.need {
        let (place, offset, room) = piece.rest();
        // SAFETY: the place has that room within a slot; the piece is the only one to write there and keeps the slot from
        // being lent. A slot's memory was zero at first, so it is initialised.
        let into = unsafe { std::slice::from_raw_parts_mut(place, room) };
        let more = match files.read_at(piece.file, into, offset) {
            Ok(more) => more,
            Err(error) if again(&error) => continue,
            Err(error) => return Err(files.explain(piece.file, offset, piece.need - piece.got, Some(error))),
        };
        advance(files, piece, more)?;
    }
    Ok(())
}

/// Whether a read only has to be tried again; where the system is short of something, after a pause.
pub(super) fn again(error: &io::Error) -> bool {
    match error.kind() {
        io::ErrorKind::Interrupted => true,
        io::ErrorKind::WouldBlock => {
            thread::sleep(Duration::from_millis(1));
            true
        }
        _ => false,
    }
}

/// Counts what came; an error where the file ends before the piece does.
pub(super) fn advance(files: &Files, piece: &mut Piece, more: usize) -> Result<(), ReadError> {
    if piece.got + more >= piece.need {
        piece.got = piece.need;
        return Ok(());
    }
    match files.progress(piece.file, piece.got, more) {
        Some(got) => piece.got = got,
        None => return Err(files.explain(piece.file, piece.offset, piece.need, None)),
    }
    Ok(())
}
