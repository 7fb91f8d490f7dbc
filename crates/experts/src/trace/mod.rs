//! Traces of routing: recorded, read, made up, and replayed through a cache.

mod belady;
mod error;
mod generate;
mod plot;
mod reader;
mod recorder;
mod replay;
mod wire;

pub use error::TraceError;
#[cfg(test)]
pub(crate) use generate::SplitMix64;
pub use generate::{MadeUp, generate};
pub use plot::{Curve, heat_map, hit_rates};
pub use reader::{Trace, TraceHeader, TraceLayer};
pub use recorder::Recorder;
pub use replay::{ReplayResult, Replayed, replay, replay_optimal};
