//! Metadata keys of one architecture, with its prefix added and values checked.
//!
//! Invariant: a key of the wrong type or an impossible value is an error, never the default.

use std::fmt::Display;

use turbospark_format::{Metadata, Value};

use crate::ModelError;

/// The `{architecture}.*` keys of a file.
pub(crate) struct Keys<'a> {
    metadata: &'a Metadata,
    architecture: &'a str,
}

impl<'a> Keys<'a> {
    pub(crate) fn new(metadata: &'a Metadata, architecture: &'a str) -> Self {
        Keys { metadata, architecture }
    }

    pub(crate) fn full(&self, key: &str) -> String {
        format!("{}.{key}", self.architecture)
    }

    /// A count that may be absent; zero is refused.
    pub(crate) fn count(&self, key: &str) -> Result<Option<usize>, ModelError> {
        let full = self.full(key);
        match self.metadata.usize(&full)? {
            Some(0) => Err(self.bad(key, 0, "at least 1")),
            found => Ok(found),
        }
    }

    /// A count that has to be there and above zero.
    pub(crate) fn require_count(&self, key: &str) -> Result<usize, ModelError> {
        self.count(key)?.ok_or_else(|| ModelError::MissingKey { key: self.full(key) })
    }

    /// A finite number above zero that may be absent.
    pub(crate) fn positive(&self, key: &str) -> Result<Option<f32>, ModelError> {
        match self.metadata.f32(&self.full(key))? {
            Some(x) if x.is_finite() && x > 0.0 => Ok(Some(x)),
            None => Ok(None),
            Some(x) => Err(self.bad(key, x, "a finite number above 0")),
        }
    }

    /// A finite number above zero that has to be there.
    pub(crate) fn require_positive(&self, key: &str) -> Result<f32, ModelError> {
        self.positive(key)?.ok_or_else(|| ModelError::MissingKey { key: self.full(key) })
    }

    /// A scaling factor: absent and 0 both mean none, as writers use them.
    pub(crate) fn factor(&self, key: &str) -> Result<Option<f32>, ModelError> {
        match self.metadata.f32(&self.full(key))? {
            Some(0.0) => Ok(None),
            _ => self.positive(key),
        }
    }

    pub(crate) fn str(&self, key: &str) -> Result<Option<&'a str>, ModelError> {
        Ok(self.metadata.str(&self.full(key))?)
    }

    pub(crate) fn usize(&self, key: &str) -> Result<Option<usize>, ModelError> {
        Ok(self.metadata.usize(&self.full(key))?)
    }

    /// Refuses a list of tokens that is not one piece for each of `n_vocab` rows; a file may have none.
    pub(crate) fn check_vocabulary(&self, n_vocab: usize) -> Result<(), ModelError> {
        let key = "tokenizer.ggml.tokens";
        match self.metadata.get(key) {
            Some(Value::Array(tokens)) if tokens.len() != n_vocab => Err(ModelError::BadKey {
                key: key.to_owned(),
                found: format!("a list of {} tokens", tokens.len()),
                expected: format!("{n_vocab}, one for each row of the embedding"),
            }),
            _ => Ok(()),
        }
    }

    // By value, so that callers can pass literals and formatted strings alike.
    #[allow(clippy::needless_pass_by_value)]
    pub(crate) fn bad(&self, key: &str, found: impl Display, expected: impl Display) -> ModelError {
        ModelError::BadKey { key: self.full(key), found: found.to_string(), expected: expected.to_string() }
    }
}
