//! HTTP: the OpenAI, Anthropic and Ollama APIs over one scheduler a model, metrics, and a web page.
//!
//! Each API translates its requests to an [`Ask`] and the [`Part`]s of the answer back; what is between is the same for all.
#![forbid(unsafe_code)]

mod anthropic;
mod ask;
mod fields;
mod ids;
mod ollama;
mod refusal;
mod required;

pub use ask::{Ask, Finish, Format, Part, Prompt, TokenInfo, ToolUse, Usage};
pub use refusal::Refusal;
