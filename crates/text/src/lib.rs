//! Tokenizer, chat templates and the split of a token stream into text.
//!
//! - [`Tokenizer`]: text to ids and back, out of a GGUF file's metadata or a `tokenizer.json`.
//! - [`DecodeStream`]: ids to text as they come, never half a character.
//! - [`StopStrings`]: stop strings found across the edges of tokens.
//! - [`Splitter`]: a model's raw output taken apart into text, reasoning and tool calls.
//! - [`Grammar`], [`Constraints`], [`Matcher`]: which tokens a JSON schema, a grammar or a tool call allows next.
//! - [`ChatTemplate`]: the model's own Jinja template, from a conversation to a prompt.
//!   [`ChatTemplate::prepared`] gives past calls the form that the template prints.
#![forbid(unsafe_code)]

mod added;
mod alphabet;
mod clock;
mod error;
mod gguf;
mod grammar;
mod json;
mod merge;
mod messages;
mod pretokenize;
mod pymethods;
mod pyvalue;
mod split;
mod stop_strings;
mod stop_tokens;
mod stream;
mod template;
mod tokenizer;
mod vocab;

pub use error::TextError;
pub use grammar::{CallOptions, Constraints, Grammar, GrammarError, Matcher, ToolChoice};
pub use split::{Dialect, Event, OutputFormat, Splitter, Tool};
pub use stop_strings::{StopOutcome, StopStrings};
pub use stream::DecodeStream;
pub use template::{ChatTemplate, Message};
pub use tokenizer::{Specials, Tokenizer};
pub use vocab::TokenKind;
