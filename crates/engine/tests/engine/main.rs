//! The engine over the oracle's fixtures: tiny models with logits of an independent implementation.

mod damage;
mod fixtures;
mod invariance;
mod layers;
mod memory;
mod oracle;
mod refusals;
mod reuse;
mod scheduler;
mod sensitivity;
mod sessions;
mod streaming;
mod traps;
