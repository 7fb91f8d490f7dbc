//! HTTP: the OpenAI, Anthropic and Ollama APIs over one scheduler a model, metrics, and a web page.
//!
//! Each API translates its requests to an [`Ask`] and the [`Part`]s of the answer back; what is between is the same for all:
//!
//! - [`App`]: models by name, answers, counts; the state of all handlers.
//! - [`Answer`]: a stream of parts; dropping it ends the request.
//! - [`Fields`]: a request's JSON, read field by field so that nothing is ignored.
//! - [`stream`]: bodies that are written as they are read.
//! - [`Server`]: the socket, limits, keys, and a graceful end.
#![forbid(unsafe_code)]

mod answer;
mod anthropic;
mod app;
mod ask;
mod exposition;
mod fields;
mod guard;
pub mod ids;
mod metrics;
mod model;
mod models;
mod ollama;
pub mod openai;
mod openapi;
mod operation;
mod origin;
pub mod page;
mod refusal;
mod required;
mod server;
mod shape;
pub mod stream;
mod timed;

pub use answer::Answer;
pub use app::{App, Client};
pub use ask::{Ask, Finish, Format, Part, Prompt, TokenInfo, ToolUse, Usage};
pub use fields::Fields;
pub use metrics::Metrics;
pub use model::{Embedding, ModelInfo};
pub use models::ModelSource;
pub use refusal::Refusal;
pub use server::{Server, ServerError, ServerOptions};
