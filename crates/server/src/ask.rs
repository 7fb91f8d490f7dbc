//! A request and its answer as all APIs have them.
//!
//! Invariant: nothing in here is any API's own: what one API has and another not is optional, and what can't take effect was refused
//! before.

use serde_json::{Map, Value};
use turbospark_engine::SamplingParams;
use turbospark_text::Message;

use crate::Refusal;

/// What to answer.
#[derive(Debug, Clone)]
pub struct Ask {
    /// What comes before the answer.
    pub prompt: Prompt,
    /// How tokens are chosen.
    pub sampling: SamplingParams,
    /// Most tokens of the answer, reasoning included; `None`: as many as the context has room for.
    pub max_tokens: Option<usize>,
    /// Texts that end the answer and are not part of it; looked for in the answer's text, not in reasoning or calls.
    pub stop: Vec<String>,
    /// How many of the likeliest tokens to tell with each token; `None` tells nothing.
    pub logprobs: Option<usize>,
    /// What the answer's text must look like.
    pub format: Format,
}

/// What comes before an answer.
#[derive(Debug, Clone)]
pub enum Prompt {
    /// A conversation, by the model's chat template.
    Chat {
        /// Its messages, fields as templates know them.
        messages: Vec<Message>,
        /// Tools in OpenAI's form: `{"type": "function", "function": {"name", "description", "parameters", "strict"}}`.
        tools: Vec<Value>,
        /// Which of them the answer uses.
        tool_use: ToolUse,
        /// Whether it may call several.
        parallel: bool,
        /// What else the template is told: `reasoning_effort`, `enable_thinking`, …
        extras: Map<String, Value>,
    },
    /// Text as it stands.
    Text(String),
    /// Tokens as they stand.
    Tokens(Vec<u32>),
}

/// Which tools an answer uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolUse {
    /// None, also where there are some.
    None,
    /// As the model likes.
    Auto,
    /// At least one.
    Required,
    /// This one.
    Named(String),
}

/// What an answer's text must look like.
#[derive(Debug, Clone, PartialEq)]
pub enum Format {
    /// Anything.
    Text,
    /// A JSON object.
    JsonObject,
    /// JSON of this schema.
    JsonSchema(Value),
    /// A regular expression.
    Regex(String),
    /// A grammar in Lark's notation.
    Lark(String),
}

/// A part of an answer, in the order in which they come. The last two end it.
#[derive(Debug, Clone)]
pub enum Part {
    /// The request has left the queue.
    Started {
        /// Tokens of the prompt.
        prompt_tokens: usize,
        /// Those of them that were known.
        cached_tokens: usize,
    },
    /// Text for the reader, and the tokens that it came with where log-probabilities were asked for.
    Text {
        /// The text, never half a character.
        text: String,
        /// Its tokens.
        tokens: Vec<TokenInfo>,
    },
    /// The model's reasoning.
    Reasoning(String),
    /// A tool call begins.
    CallStart {
        /// Its place among the calls, from 0.
        index: usize,
        /// Unique to the call.
        id: String,
        /// The tool.
        name: String,
    },
    /// More of the JSON text of a call's arguments.
    CallArguments {
        /// The call.
        index: usize,
        /// JSON text.
        delta: String,
    },
    /// A call is complete and its arguments are JSON.
    CallEnd {
        /// The call.
        index: usize,
    },
    /// The answer ended.
    Finished {
        /// Why.
        finish: Finish,
        /// Counts.
        usage: Usage,
    },
    /// The answer can't be finished.
    Failed(Refusal),
}

/// A token and the likeliest ones in its place.
#[derive(Debug, Clone)]
pub struct TokenInfo {
    /// The token's bytes, which may be part of a character.
    pub bytes: Vec<u8>,
    /// Natural logarithm of its probability.
    pub logprob: f32,
    /// The likeliest: bytes and log-probability.
    pub top: Vec<(Vec<u8>, f32)>,
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finish {
    /// The model ended its turn, or its format is complete.
    Stop,
    /// This stop string appeared.
    StopString(String),
    /// `max_tokens`, or the context is full.
    Length,
    /// It ended with tool calls.
    Calls,
    /// The client or the server ended it.
    Cancelled,
}

/// Counts of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Those of them that were known and not computed again.
    pub cached_tokens: usize,
    /// Tokens of the answer, reasoning and the token that ended it included.
    pub completion_tokens: usize,
    /// Those of them that are reasoning.
    pub reasoning_tokens: usize,
    /// Seconds in the queue.
    pub queued: f64,
    /// Seconds from the request to the first token.
    pub first_token: f64,
    /// Seconds from the request to the end.
    pub total: f64,
}
