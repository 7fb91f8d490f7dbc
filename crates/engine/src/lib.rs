//! The engine: opens a GGUF model and generates text with it.
//!
//! [`Engine::open`] maps the file and reads its [`ModelSpec`](turbospark_model::ModelSpec); a [`Session`] feeds prompts and
//! generates:
//!
//! ```no_run
//! use turbospark_engine::{Engine, EngineOptions, GenerateOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = Engine::open("model.gguf", EngineOptions::default())?;
//! let prompt = engine.encode("Once upon a time")?;
//! let mut session = engine.session();
//! for piece in session.generate(&prompt, GenerateOptions::default())? {
//!     print!("{}", piece?.text);
//! }
//! # Ok(()) }
//! ```
//!
//! A second `generate` on the same session feeds only what its prompt adds to what the cache holds. Below sessions are
//! [`Sequence`]s: [`Engine::forward`] feeds tokens of several in one batch and hands out logits row by row.
//!
//! Many requests at once go through a [`scheduler::Scheduler`], which makes one batch of them each step.
//!
//! **Batch invariance.** On the CPU a row's logits are the same bits whatever the prompt's chunks, the number of threads
//! and the other rows of the batch.
//!
//! **Memory.** Weights stay mapped as the file stores them. Besides, an engine takes activations for one chunk of rows, and
//! each sequence its KV cache, in pages as positions are used.
#![forbid(unsafe_code)]

mod answer;
pub mod device;
mod embed;
mod engine;
mod error;
pub mod eval;
mod forward;
mod generate;
mod opening;
mod plan;
mod sampling;
pub mod scheduler;
mod session;
mod tokenizer;

pub use embed::Pooling;
pub use engine::{Engine, EngineOptions, Part, Sequence, Wanted};
pub use error::EngineError;
pub use forward::Row;
pub use generate::{
    FinishReason, GenerateOptions, Generation, GenerationStats, Piece, PromptProgress, PromptStep,
};
pub use opening::plan_memory;
pub use plan::needs;
pub use sampling::{
    Constraint, ConstraintError, Mask, Sampler, SamplingParams, SplitMix64, TokenLogprob, argmax,
    check_finite,
};
pub use session::{CancelFlag, Session};
pub use turbospark_experts::read::{Engine as ReadEngine, IoChoice, Method as ReadMethod};
pub use turbospark_experts::{IoMode, Stats};
pub use turbospark_kernels::KvKind;
