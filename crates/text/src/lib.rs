//! Tokenizer, chat templates and the split of a token stream into text.
//!
//! - [`Tokenizer`]: text to ids and back, out of a GGUF file's metadata or a `tokenizer.json`.
//! - [`DecodeStream`]: ids to text as they come, never half a character.
//! - [`StopStrings`]: stop strings found across the edges of tokens.
//! - [`ChatTemplate`]: the model's own Jinja template, from a conversation to a prompt.
#![forbid(unsafe_code)]

mod added;
mod alphabet;
mod error;
mod gguf;
mod json;
mod merge;
mod pretokenize;
mod stop_tokens;
mod stream;
mod tokenizer;
mod vocab;

pub use error::TextError;
pub use stream::DecodeStream;
pub use tokenizer::{Specials, Tokenizer};
pub use vocab::TokenKind;
