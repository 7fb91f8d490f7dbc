//! A trace through a cache: what a policy would have hit.
//!
//! Invariant: it makes the engine's calls of [`CacheCore`], so for a trace recorded from the cache's first request on it counts
//! what the engine counted.

use super::belady::Belady;
use super::{Trace, TraceError};
use crate::{CacheCore, Counts, Key, Phase, Policy, PolicyKind, WINDOW};

/// What a phase of a replay did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Requests and hits.
    pub counts: Counts,
    /// Bytes read for the misses.
    pub bytes: u64,
}

/// What a replay did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayResult {
    /// Name of the policy.
    pub policy: &'static str,
    /// Experts that were cached at once.
    pub slots: usize,
    /// In prompts.
    pub prefill: Replayed,
    /// In the answers.
    pub decode: Replayed,
}

impl ReplayResult {
    /// Both phases.
    pub fn total(&self) -> Replayed {
        let (a, b) = (&self.prefill, &self.decode);
        let counts =
            Counts { requests: a.counts.requests + b.counts.requests, hits: a.counts.hits + b.counts.hits };
        Replayed { counts, bytes: a.bytes + b.bytes }
    }
}

/// Replays `trace` through an empty cache of `slots` experts.
///
/// # Errors
/// No slot, or more than there can be.
pub fn replay(trace: &Trace, policy: PolicyKind, slots: usize) -> Result<ReplayResult, TraceError> {
    check(slots)?;
    Ok(with_policy(trace, policy.build(trace.header().cache(slots)), slots))
}

/// Replays `trace` with a policy that knows it.
///
/// # Errors
/// No slot, or more than there can be.
pub fn replay_optimal(trace: &Trace, slots: usize) -> Result<ReplayResult, TraceError> {
    check(slots)?;
    Ok(with_policy(trace, Box::new(Belady::new(trace, trace.header().cache(slots))), slots))
}

fn check(slots: usize) -> Result<(), TraceError> {
    // A trace has no more experts than this.
    if (1..=super::wire::MOST_KEYS as usize).contains(&slots) {
        return Ok(());
    }
    Err(TraceError::Misfit {
        what: format!("a cache of {slots} slots can't be: give 1 or more, up to all experts"),
    })
}

fn with_policy(trace: &Trace, policy: Box<dyn Policy>, slots: usize) -> ReplayResult {
    let header = trace.header();
    let name = policy.name();
    let mut cache = CacheCore::new(header.cache(slots), WINDOW, policy);
    let mut missing = Vec::new();
    let (mut prefill, mut decode) = (Replayed::default(), Replayed::default());
    for batch in trace.batches() {
        let noted = cache.request(&batch, &mut missing);
        debug_assert!(noted.is_ok(), "a trace's batches fit its header");
        for &expert in &missing {
            let placed = cache.place(Key { layer: batch.layer, expert }, &|_| false);
            debug_assert!(placed.is_some(), "nothing is in use in a replay");
        }
        let bytes = missing.len() as u64 * header.layers[batch.layer as usize].expert_bytes;
        let phase = match batch.phase {
            Phase::Prefill => &mut prefill,
            Phase::Decode => &mut decode,
        };
        phase.bytes = phase.bytes.saturating_add(bytes);
    }
    prefill.counts = cache.counts(Phase::Prefill);
    decode.counts = cache.counts(Phase::Decode);
    ReplayResult { policy: name, slots, prefill, decode }
}
