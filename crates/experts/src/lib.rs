//! Residency: where the bytes of a model's experts are when a layer needs them.
//!
//! The forward pass knows one seam, [`Residency`]: it asks for the experts that a layer's rows were routed to and computes
//! with each [`Wave`] of them as it gets usable. Where the bytes came from, and in which order, can't change a result.
#![deny(unsafe_code)]

mod error;
mod layers;
mod layout;
mod mapped;
pub mod plan;
mod policy;
pub mod read;
mod routes;
mod slots;
mod streamed;
pub mod trace;

use smallvec::SmallVec;

pub use error::ExpertError;
pub use layers::{HeldLayer, LayerRuns, StreamedLayers};
pub use layout::{ExpertLayout, LayerExperts, Segments};
pub use mapped::Mapped;
pub use policy::{CacheCore, CacheShape, Counts, Policy, PolicyKind, UnknownPolicy, WINDOW};
pub use read::{IoMode, ReadError};
pub use routes::{Key, Phase, RouteBatch, RouteSink};
pub use slots::{Leased, SlotState, Slots};
pub use streamed::Streamed;

/// What gives a layer's experts to the forward pass.
pub trait Residency: Send {
    /// Asks for the experts of `batch`. Reads of those that are not there start at once. What an earlier request
    /// has not given yet is dropped.
    ///
    /// # Errors
    /// An expert that the layer has not; bytes that can't be read.
    fn request(&mut self, batch: &RouteBatch<'_>) -> Result<(), ExpertError>;

    /// Blocks until more of the requested experts can be used and gives all that can; `None` when all have been given. The wave
    /// before is done with: its bytes may leave.
    ///
    /// # Errors
    /// Bytes that can't be read; [`ExpertError::Cancelled`] soon after `cancelled` says so. The request is dropped then.
    fn next(&mut self, cancelled: &dyn Fn() -> bool) -> Result<Option<Wave<'_>>, ExpertError>;

    /// Says that `experts` of `layer` will probably be asked for next. May start reads; never changes a result or
    /// delays what was asked for.
    fn hint(&mut self, _layer: usize, _experts: &[u32]) {}

    /// Says that `experts` of `layer`, the likeliest first, may be asked for next. May start reads while nothing else is read; never
    /// changes a result.
    fn guess(&mut self, _layer: usize, _experts: &[u32]) {}

    /// What happened so far.
    fn stats(&self) -> Stats;
}

/// Counts since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Experts that were asked for, once for each request that named them.
    pub requests: u64,
    /// Of these, the ones that were there.
    pub hits: u64,
    /// Bytes read for the others.
    pub bytes_read: u64,
}

impl Stats {
    /// Counts since `before`, which were taken of the same residency.
    pub fn since(&self, before: &Stats) -> Stats {
        Stats {
            requests: self.requests - before.requests,
            hits: self.hits - before.hits,
            bytes_read: self.bytes_read - before.bytes_read,
        }
    }

    /// Share of the hits; 0 where nothing was asked for.
    pub fn hit_rate(&self) -> f64 {
        if self.requests == 0 { 0.0 } else { self.hits as f64 / self.requests as f64 }
    }
}

/// One entry for each expert of a request; those of a single row need no memory of the system.
pub(crate) type Few<T> = SmallVec<[T; 16]>;
/// The parts of such experts.
pub(crate) type Parts<'a> = SmallVec<[&'a [u8]; 48]>;

/// Experts of a request that can be used now.
pub struct Wave<'a> {
    /// Each one's index in the request, ascending.
    indices: Few<usize>,
    /// Parts of one expert.
    per_expert: usize,
    /// `[experts, parts]`.
    parts: Parts<'a>,
}

impl<'a> Wave<'a> {
    /// Indices in the request, ascending.
    pub fn indices(&self) -> &[usize] {
        &self.indices
    }

    /// Bytes of part `part` (in the layout's order of tensors) of the `i`-th expert of the wave.
    ///
    /// # Panics
    /// Where the wave has fewer experts, or an expert has fewer parts.
    pub fn part(&self, i: usize, part: usize) -> &'a [u8] {
        assert!(part < self.per_expert, "an expert has fewer parts");
        self.parts[i * self.per_expert + part]
    }
}
