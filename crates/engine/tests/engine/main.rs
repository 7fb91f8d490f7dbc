//! The engine over the oracle's fixtures: tiny models with logits of an independent implementation.

mod fixtures;
mod invariance;
mod memory;
mod oracle;
mod refusals;
mod sessions;
