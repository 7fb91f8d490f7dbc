//! Residency: where the bytes of a model's experts are when a layer needs them.
//!
//! The forward pass knows one seam, [`Residency`]: it asks for the experts that a layer's rows were routed to and computes
//! from the [`Lease`] it gets. Where the bytes came from can't change a result.
#![forbid(unsafe_code)]

mod error;
mod layout;
mod mapped;
mod policy;
mod routes;
pub mod trace;

pub use error::ExpertError;
pub use layout::{ExpertLayout, LayerExperts};
pub use mapped::Mapped;
pub use policy::{CacheCore, CacheShape, Counts, Policy, PolicyKind, UnknownPolicy, WINDOW};
pub use routes::{Key, Phase, RouteBatch, RouteSink};

/// What gives a layer's experts to the forward pass.
pub trait Residency: Send {
    /// Blocks until all of `experts` of `layer` can be read. Their bytes stay in place as long as the lease lives.
    ///
    /// # Errors
    /// An expert that the layer has not; bytes that can't be read.
    fn make_resident(&mut self, layer: usize, experts: &[u32]) -> Result<Lease<'_>, ExpertError>;

    /// Says that `experts` of `layer` will probably be needed. May start reads; never changes a result, evicts what is in
    /// use or delays what was asked for.
    fn hint(&mut self, _layer: usize, _experts: &[u32]) {}

    /// What happened so far.
    fn stats(&self) -> Stats;
}

/// Counts since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Experts that were asked for, once for each call that named them.
    pub requests: u64,
    /// Of these, the ones that were there.
    pub hits: u64,
    /// Bytes read for the others.
    pub bytes_read: u64,
}

/// The bytes of the experts of one request, in the order in which they were asked for.
pub struct Lease<'a> {
    /// Parts of one expert.
    per_expert: usize,
    /// `[experts, parts]`.
    parts: Vec<&'a [u8]>,
}

impl<'a> Lease<'a> {
    /// Bytes of part `part` (in the layout's order of tensors) of the `index`-th expert of the request.
    ///
    /// # Panics
    /// Where the request had fewer experts, or an expert has fewer parts.
    pub fn part(&self, index: usize, part: usize) -> &'a [u8] {
        assert!(part < self.per_expert, "an expert has fewer parts");
        self.parts[index * self.per_expert + part]
    }
}
