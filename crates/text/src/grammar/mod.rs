//! Grammars for constrained sampling: JSON schemas, regular expressions, Lark, and tool calls in a model's dialect.
//!
//! [`Constraints`] is made once a model, [`Constraints::start`] once an answer; a [`Matcher`] says before each token which
//! are allowed and takes the one that was sampled. The work is done by `llguidance`, which walks the vocabulary as a trie
//! beside an Earley parser. Invariant: whatever a request asks for gives a constraint or an error that names the place; work
//! and memory are bounded.

mod calls;
mod error;
mod lark;
mod limits;
mod matcher;
mod parameters;

use serde_json::Value;

pub use calls::{CallOptions, ToolChoice};
pub use error::GrammarError;
pub use matcher::{Constraints, Matcher};

use crate::{Dialect, Tool};

/// What an answer must look like.
#[derive(Clone, Debug, PartialEq)]
pub struct Grammar(Source);

#[derive(Clone, Debug, PartialEq)]
enum Source {
    Schema(Value),
    Regex(String),
    Lark(String),
    /// Lark with markers in it, and the schemas of which it is made by the place that errors name.
    Calls {
        source: String,
        schemas: Vec<(String, Value)>,
    },
}

impl Grammar {
    /// A JSON value that satisfies a schema. `oneOf` is read as `anyOf`.
    ///
    /// # Errors
    /// [`GrammarError::TooLarge`] for a schema of no reasonable size, [`GrammarError::Schema`] for one that is neither an
    /// object nor a boolean. Keywords are looked at by [`Constraints::start`].
    pub fn json_schema(schema: &Value) -> Result<Grammar, GrammarError> {
        if !schema.is_object() && !schema.is_boolean() {
            let reason = "a schema is an object or a boolean".to_owned();
            return Err(GrammarError::Schema { place: "#".to_owned(), reason });
        }
        limits::check(schema)?;
        Ok(Grammar(Source::Schema(schema.clone())))
    }

    /// Any JSON object.
    pub fn json_object() -> Grammar {
        Grammar(Source::Schema(serde_json::json!({"type": "object"})))
    }

    /// A text that a regular expression matches as a whole.
    ///
    /// # Errors
    /// [`GrammarError::TooLarge`] above 64 KiB.
    pub fn regex(pattern: &str) -> Result<Grammar, GrammarError> {
        check_source("a regular expression", pattern)?;
        Ok(Grammar(Source::Regex(pattern.to_owned())))
    }

    /// A grammar in Lark's notation, as `llguidance` reads it.
    ///
    /// # Errors
    /// [`GrammarError::TooLarge`] above 64 KiB.
    pub fn lark(source: &str) -> Result<Grammar, GrammarError> {
        check_source("a grammar", source)?;
        Ok(Grammar(Source::Lark(source.to_owned())))
    }

    /// Calls of tools as the dialect writes them, with arguments that satisfy the tools' schemas.
    ///
    /// # Errors
    /// [`GrammarError::Unsupported`] where the dialect or a parameter can't be constrained, [`GrammarError::UnknownTool`],
    /// and those of [`Grammar::json_schema`].
    pub fn tool_call(
        dialect: Dialect,
        tools: &[Tool],
        choice: &ToolChoice,
        options: CallOptions,
    ) -> Result<Grammar, GrammarError> {
        calls::grammar(dialect, tools, choice, options).map(Grammar)
    }
}

fn check_source(what: &'static str, source: &str) -> Result<(), GrammarError> {
    if source.len() > limits::MAX_SOURCE {
        return Err(GrammarError::TooLarge { what, place: "#".to_owned(), limit: limits::MAX_SOURCE });
    }
    Ok(())
}
