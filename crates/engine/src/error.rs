//! What can go wrong between opening a file and reading text: what, where, and what to do.

use turbospark_experts::ExpertError;
use turbospark_format::FormatError;
use turbospark_model::ModelError;
use turbospark_text::TextError;

/// An engine's error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The file can't be read.
    #[error(transparent)]
    Format(#[from] FormatError),

    /// The file is no model that can be run.
    #[error(transparent)]
    Model(#[from] ModelError),

    /// The tokenizer can't be built or used.
    #[error(transparent)]
    Text(#[from] TextError),

    /// An expert's weights can't be had.
    #[error(transparent)]
    Expert(#[from] ExpertError),

    /// The model doesn't fit the memory it may take.
    #[error(transparent)]
    Plan(#[from] turbospark_experts::plan::PlanError),

    /// The file can't be read as experts are.
    #[error(transparent)]
    Read(#[from] turbospark_experts::ReadError),

    /// A router's logits are not numbers, so no expert can be chosen.
    #[error(
        "layer {layer}, position {position}: the router's logit of expert {expert} is NaN or infinite: the model's weights are damaged, or this file's format is misread"
    )]
    BadRouting {
        /// Index of the layer.
        layer: usize,
        /// Position of the row in its sequence.
        position: usize,
        /// First expert with such a logit.
        expert: usize,
    },

    /// Nothing to start from.
    #[error("the prompt is empty: give at least one token (a BOS token counts)")]
    EmptyPrompt,

    /// More tokens than the context has room for.
    #[error(
        "{tokens} tokens don't fit the context of {context}: shorten the prompt or open the engine with a larger context"
    )]
    ContextFull {
        /// Positions that would be used.
        tokens: usize,
        /// Positions there are.
        context: usize,
    },

    /// A context of no positions, or beyond what positions can count.
    #[error("a context of {context} positions can't be used: choose 1 to {limit}")]
    BadContext {
        /// What was asked.
        context: usize,
        /// The greatest that works.
        limit: usize,
    },

    /// A token id beyond the vocabulary.
    #[error("token {token} is outside the model's vocabulary of {n_vocab}")]
    TokenOutOfRange {
        /// The id.
        token: u32,
        /// Size of the vocabulary.
        n_vocab: usize,
    },

    /// A row's logits are not numbers: the file's weights are damaged, or the arithmetic is.
    #[error(
        "the logit of token {token} is {value}: the model's weights are damaged, or this file's format is misread"
    )]
    NonFiniteLogit {
        /// First token with such a logit.
        token: usize,
        /// NaN or an infinity.
        value: f32,
    },

    /// Logit biases and the constraint forbid every token.
    #[error("no token can be sampled: the logit biases and the constraint forbid all of them")]
    NothingToSample,

    /// The constraint on an answer can't go on.
    #[error(transparent)]
    Constraint(#[from] crate::ConstraintError),

    /// A sampling parameter out of its range.
    #[error("sampling parameter {field} is {value}: expected {expected}")]
    BadSampling {
        /// The field of `SamplingParams`.
        field: &'static str,
        /// Its value.
        value: String,
        /// What would be valid.
        expected: &'static str,
    },

    /// A tensor whose bytes don't make the values its shape says.
    #[error(
        "tensor `{name}` can't be used as {block_type} of shape {shape:?}: its rows are not whole blocks"
    )]
    BadTensor {
        /// The tensor.
        name: String,
        /// Its shape, innermost first.
        shape: Vec<usize>,
        /// Its block type.
        block_type: &'static str,
    },

    /// The system gives no thread to a scheduler.
    #[error("no thread for the scheduler can be started")]
    Thread(#[source] std::io::Error),

    /// The thread that builds the tokenizer ended without a result.
    #[error("the tokenizer of this file could not be built: {0}")]
    Tokenizer(String),

    /// A cancel flag was raised while a prompt was fed; what was fed before stays.
    #[error("cancelled after {fed} of {tokens} prompt tokens")]
    Cancelled {
        /// Tokens fed.
        fed: usize,
        /// Tokens asked for.
        tokens: usize,
    },
}

impl EngineError {
    /// Whether somebody asked for the end of the pass.
    pub(crate) fn is_cancel(&self) -> bool {
        matches!(self, EngineError::Cancelled { .. } | EngineError::Expert(ExpertError::Cancelled { .. }))
    }
}
