//! Which cached expert leaves when another one needs its slot.
//!
//! Invariant: a policy sees requests, arrivals and departures in the same order in the engine and in a replay, and nothing else
//! (no clock, no random source), so both choose alike.

mod arc;
mod cache;
mod decayed;
mod least_stale;
mod lfu;
mod lru;
mod lru_k;
mod ranks;
mod s3_fifo;
mod tiny_lfu;
mod two_q;

use std::str::FromStr;

use crate::{Key, RouteBatch};

pub use cache::{CacheCore, Counts, WINDOW};
pub(crate) use ranks::Ranks;

/// Chooses the expert that leaves.
pub trait Policy: Send {
    /// As [`PolicyKind`] calls it.
    fn name(&self) -> &'static str;

    /// A layer asks for experts, some of which may be cached. Comes before what is missing is placed.
    fn requested(&mut self, batch: &RouteBatch<'_>);

    /// An expert was given a slot.
    fn placed(&mut self, key: Key);

    /// An expert lost its slot.
    fn removed(&mut self, key: Key);

    /// The one to leave of those placed for which `may_leave` holds; `None` only if it holds for none.
    /// [`Policy::removed`] follows.
    fn victim(&mut self, may_leave: &dyn Fn(Key) -> bool) -> Option<Key>;
}

/// What a cache is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheShape {
    /// Layers of the model, also those without experts.
    pub layers: usize,
    /// The most experts of any layer.
    pub experts: usize,
    /// Experts that are cached at once.
    pub slots: usize,
}

/// The policies that need no knowledge of the future.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PolicyKind {
    /// Frequency of use, older uses counting less, and the order of layers. Counts survive eviction.
    #[default]
    Decayed,
    /// The least recently used leaves.
    Lru,
    /// The least often used since it came leaves.
    Lfu,
    /// The one whose last use but one is longest ago leaves (O'Neil, O'Neil and Weikum 1993).
    LruK,
    /// A first-in-first-out queue for newcomers, LRU for those that come back (Johnson and Shasha 1994).
    TwoQ,
    /// Recency and frequency in adaptive shares (Megiddo and Modha 2003).
    Arc,
    /// Three first-in-first-out queues (Yang et al. 2023).
    S3Fifo,
    /// A small LRU window before a segmented LRU that admits by frequency (Einziger, Friedman and Manes 2017).
    TinyLfu,
    /// What the pass before left goes first, then the layer whose turn is furthest (Hoang et al. 2026).
    LeastStale,
}

impl PolicyKind {
    /// All of them, the default first.
    pub const ALL: [PolicyKind; 9] = [
        PolicyKind::Decayed,
        PolicyKind::Lru,
        PolicyKind::Lfu,
        PolicyKind::LruK,
        PolicyKind::TwoQ,
        PolicyKind::Arc,
        PolicyKind::S3Fifo,
        PolicyKind::TinyLfu,
        PolicyKind::LeastStale,
    ];

    /// The name by which users ask for it.
    pub fn name(self) -> &'static str {
        match self {
            PolicyKind::Decayed => "decayed",
            PolicyKind::Lru => "lru",
            PolicyKind::Lfu => "lfu",
            PolicyKind::LruK => "lru-2",
            PolicyKind::TwoQ => "2q",
            PolicyKind::Arc => "arc",
            PolicyKind::S3Fifo => "s3-fifo",
            PolicyKind::TinyLfu => "w-tinylfu",
            PolicyKind::LeastStale => "least-stale",
        }
    }

    /// The policy for a cache of `shape`, with nothing cached yet.
    pub fn build(self, shape: CacheShape) -> Box<dyn Policy> {
        match self {
            PolicyKind::Decayed => Box::new(decayed::Decayed::new(shape)),
            PolicyKind::Lru => Box::new(lru::Lru::new(shape)),
            PolicyKind::Lfu => Box::new(lfu::Lfu::new(shape)),
            PolicyKind::LruK => Box::new(lru_k::LruK::new(shape)),
            PolicyKind::TwoQ => Box::new(two_q::TwoQ::new(shape)),
            PolicyKind::Arc => Box::new(arc::Arc::new(shape)),
            PolicyKind::S3Fifo => Box::new(s3_fifo::S3Fifo::new(shape)),
            PolicyKind::TinyLfu => Box::new(tiny_lfu::TinyLfu::new(shape)),
            PolicyKind::LeastStale => Box::new(least_stale::LeastStale::new(shape)),
        }
    }
}

/// A policy that isn't there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no cache policy `{name}`: choose one of {}", PolicyKind::ALL.map(PolicyKind::name).join(", "))]
pub struct UnknownPolicy {
    /// What was asked for.
    pub name: String,
}

impl FromStr for PolicyKind {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<PolicyKind, UnknownPolicy> {
        let found = PolicyKind::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| UnknownPolicy { name: name.to_owned() })
    }
}
