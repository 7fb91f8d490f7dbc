//! Metadata keys of one architecture, with its prefix added and values checked.
//!
//! Invariant: a key of the wrong type or an impossible value is an error, never the default.

use std::fmt::Display;

use turbospark_format::{Metadata, Value};

use crate::ModelError;

/// Above every real count, and low enough that products of two, which are tensor shapes, fit.
const LARGEST_COUNT: usize = 1 << 28;

/// A count of each layer.
pub(crate) enum PerLayer {
    /// The same in all.
    Same(usize),
    /// One a block.
    Each(Vec<usize>),
}

impl PerLayer {
    /// Of block `layer`, which has to be one of the file's.
    pub(crate) fn at(&self, layer: usize) -> usize {
        match self {
            PerLayer::Same(n) => *n,
            PerLayer::Each(each) => each[layer],
        }
    }

    /// The different values, with repetitions.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        match self {
            PerLayer::Same(n) => std::slice::from_ref(n).iter().copied(),
            PerLayer::Each(each) => each.iter().copied(),
        }
    }
}

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
        self.usize(key)?.map(|n| self.checked(key, n)).transpose()
    }

    /// A count that has to be there and above zero.
    pub(crate) fn require_count(&self, key: &str) -> Result<usize, ModelError> {
        self.count(key)?.ok_or_else(|| ModelError::MissingKey { key: self.full(key) })
    }

    /// A count of something that a model may lack: absent and 0 both mean none.
    pub(crate) fn some_count(&self, key: &str) -> Result<Option<usize>, ModelError> {
        match self.usize(key)? {
            Some(0) => Ok(None),
            _ => self.count(key),
        }
    }

    /// A count that may differ between layers: one number, or an array of one for each of `n` blocks.
    pub(crate) fn per_layer(&self, key: &str, n: usize) -> Result<Option<PerLayer>, ModelError> {
        if !matches!(self.metadata.get(&self.full(key)), Some(Value::Array(_))) {
            return Ok(self.count(key)?.map(PerLayer::Same));
        }
        let Some(each) = self.metadata.i64s(&self.full(key))? else { return Ok(None) };
        self.check_length(key, each.len(), n)?;
        let checked = |x: i64| match usize::try_from(x) {
            Ok(x) => self.checked(key, x),
            Err(_) => Err(self.bad(key, format!("an array with {x}"), "counts of at least 1")),
        };
        Ok(Some(PerLayer::Each(each.into_iter().map(checked).collect::<Result<_, _>>()?)))
    }

    /// A count that has to be there and the same in each of `n` blocks.
    pub(crate) fn require_uniform(&self, key: &str, n: usize) -> Result<usize, ModelError> {
        let found = self.per_layer(key, n)?.ok_or_else(|| ModelError::MissingKey { key: self.full(key) })?;
        let first = found.at(0);
        match found.iter().find(|&x| x != first) {
            None => Ok(first),
            Some(x) => {
                Err(self.bad(key, format!("{first} in one layer and {x} in another"), "one number for all"))
            }
        }
    }

    /// A flag for each of `n` blocks.
    pub(crate) fn flags(&self, key: &str, n: usize) -> Result<Option<Vec<bool>>, ModelError> {
        let Some(each) = self.metadata.i64s(&self.full(key))? else { return Ok(None) };
        self.check_length(key, each.len(), n)?;
        Ok(Some(each.into_iter().map(|x| x != 0).collect()))
    }

    fn check_length(&self, key: &str, found: usize, n: usize) -> Result<(), ModelError> {
        match found == n {
            true => Ok(()),
            false => {
                let expected = format!("{n}, one for each block");
                Err(self.bad(key, format!("an array of {found}"), expected))
            }
        }
    }

    fn checked(&self, key: &str, n: usize) -> Result<usize, ModelError> {
        match n {
            0 => Err(self.bad(key, 0, "at least 1")),
            1..=LARGEST_COUNT => Ok(n),
            _ => Err(self.bad(key, n, format!("at most {LARGEST_COUNT}"))),
        }
    }

    /// A finite number above zero that may be absent.
    pub(crate) fn positive(&self, key: &str) -> Result<Option<f32>, ModelError> {
        match self.metadata.f32(&self.full(key))? {
            Some(x) if x.is_normal() && x > 0.0 => Ok(Some(x)),
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

    /// A number of any type, for those whose value is only looked at to refuse it.
    pub(crate) fn number(&self, key: &str) -> Result<Option<f64>, ModelError> {
        match self.metadata.get(&self.full(key)) {
            Some(Value::F32(_) | Value::F64(_)) => Ok(self.metadata.f32(&self.full(key))?.map(f64::from)),
            _ => Ok(self.usize(key)?.map(|n| n as f64)),
        }
    }

    pub(crate) fn bool(&self, key: &str) -> Result<Option<bool>, ModelError> {
        Ok(self.metadata.bool(&self.full(key))?)
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
