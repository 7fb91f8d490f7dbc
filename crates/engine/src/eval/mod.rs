//! How well a model predicts: perplexity of a text, and divergence from another model.
//!
//! Invariant: memory stays bounded whatever the text's length: logits are used row by row as they are computed.

mod divergence;
mod perplexity;

pub use divergence::{Divergence, Reference, divergence};
pub use perplexity::{Perplexity, perplexity};

use turbospark_format::FormatError;

use crate::EngineError;

/// Why an evaluation can't be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvalError {
    /// A model can't be run on the tokens.
    #[error(transparent)]
    Engine(#[from] EngineError),

    /// The file of saved logits can't be read.
    #[error(transparent)]
    Format(#[from] FormatError),

    /// The text has not enough tokens.
    #[error(
        "{tokens} tokens are too few for perplexity with windows of {window}: give a text of at least {needed}, or a smaller window"
    )]
    TextTooShort {
        /// Tokens there are.
        tokens: usize,
        /// Tokens of a window.
        window: usize,
        /// Tokens needed: two windows.
        needed: usize,
    },

    /// A window in which nothing would be scored.
    #[error("a window of {window} tokens scores none of them: choose at least {least}")]
    WindowTooSmall {
        /// Tokens of a window.
        window: usize,
        /// The smallest that works.
        least: usize,
    },

    /// Rows of different vocabularies can't be compared.
    #[error(
        "the model has a vocabulary of {model} and the reference one of {reference}: they can't be compared"
    )]
    Vocabularies {
        /// The model's.
        model: usize,
        /// The reference's.
        reference: usize,
    },

    /// The saved logits are not what `eval logits` writes, or are of other tokens.
    #[error(
        "the saved logits are {found}, expected f32 of shape [{rows}, {n_vocab}]: write them with the same tokens"
    )]
    SavedLogits {
        /// What the file holds.
        found: String,
        /// Rows needed.
        rows: usize,
        /// Columns needed.
        n_vocab: usize,
    },
}

/// `log Σ exp(x)`, of finite logits.
fn log_sum_exp(logits: &[f32]) -> f64 {
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|&x| f64::from((x - top).exp())).sum();
    f64::from(top) + sum.ln()
}
