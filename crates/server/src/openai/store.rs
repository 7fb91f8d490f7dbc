//! [`Stored`]: conversations that later responses go on from.
//!
//! Invariant: as many and as large as the bounds allow; the oldest leave first.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use turbospark_text::Message;

/// Responses that are kept.
const MOST: usize = 1000;
/// Bytes of all of them, about.
const MOST_BYTES: usize = 64 << 20;

/// A response and the conversation up to its end.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) messages: Vec<Message>,
    pub(crate) response: Value,
}

#[derive(Debug, Default)]
struct Shelf {
    kept: VecDeque<(String, usize, Kept)>,
    bytes: usize,
}

/// Responses by id.
#[derive(Debug, Default)]
pub(crate) struct Stored(Mutex<Shelf>);

impl Stored {
    pub(crate) fn put(&self, id: String, kept: Kept) {
        let bytes = size(&kept);
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.bytes += bytes;
        shelf.kept.push_back((id, bytes, kept));
        while shelf.kept.len() > MOST || shelf.bytes > MOST_BYTES {
            let Some((_, bytes, _)) = shelf.kept.pop_front() else { break };
            shelf.bytes -= bytes;
        }
    }

    pub(crate) fn get(&self, id: &str) -> Option<Kept> {
        let shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.kept.iter().find(|(kept, _, _)| kept == id).map(|(_, _, kept)| kept.clone())
    }

    /// Says whether there was one.
    pub(crate) fn remove(&self, id: &str) -> bool {
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(at) = shelf.kept.iter().position(|(kept, _, _)| kept == id) else { return false };
        let bytes = shelf.kept.remove(at).map_or(0, |(_, bytes, _)| bytes);
        shelf.bytes -= bytes;
        true
    }
}

fn size(kept: &Kept) -> usize {
    let messages = serde_json::to_string(&kept.messages).map_or(0, |t| t.len());
    messages + serde_json::to_string(&kept.response).map_or(0, |t| t.len())
}
