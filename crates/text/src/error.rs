//! The errors of this crate: each says what is wrong, where, and what to do about it.

use std::path::PathBuf;

use turbospark_format::FormatError;

/// What can go wrong with tokenizers and chat templates.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// A metadata key has the wrong type or can't be read.
    #[error(transparent)]
    Format(#[from] FormatError),

    /// A key that the tokenizer can't do without is absent.
    #[error("the file has no {key}; {hint}")]
    MissingKey {
        /// The metadata key.
        key: &'static str,
        /// What to do about it.
        hint: &'static str,
    },

    /// An array has not one entry for each token.
    #[error("{key} has {found} entries for {expected} tokens; the file is damaged, convert it again")]
    WrongLength {
        /// The metadata key.
        key: &'static str,
        /// Entries in the array.
        found: usize,
        /// Tokens in the vocabulary.
        expected: usize,
    },

    /// The vocabulary has no tokens at all, or more than ids can name.
    #[error(
        "a vocabulary of {tokens} tokens ({bytes} bytes) can't be used; the file is damaged, convert it again"
    )]
    VocabSize {
        /// Tokens in the vocabulary.
        tokens: usize,
        /// Bytes of all pieces together.
        bytes: usize,
    },

    /// A token id lies outside of the vocabulary.
    #[error(
        "{key} is {id}, outside of the vocabulary of {size} tokens; correct the key or convert the file again"
    )]
    BadTokenId {
        /// The metadata key.
        key: &'static str,
        /// The id found.
        id: u64,
        /// Tokens in the vocabulary.
        size: usize,
    },

    /// A merge is not two pieces, or names a piece that the vocabulary lacks.
    #[error("merge {index} ({merge:?}) {problem}; the file is damaged, convert it again")]
    BadMerge {
        /// Position in the list of merges.
        index: usize,
        /// The merge as the file has it.
        merge: String,
        /// What is wrong with it.
        problem: &'static str,
    },

    /// The kind of tokenizer is not supported.
    #[error(
        "tokenizer.ggml.model is {model:?}, which is not supported; supported are gpt2, llama and gemma4"
    )]
    UnknownModel {
        /// The model as the file names it.
        model: String,
    },

    /// The pre-tokenizer is not known.
    #[error(
        "tokenizer.ggml.pre is {pre:?}, which is not known; text would be split differently from training, \
         so the file is refused"
    )]
    UnknownPre {
        /// The pre-tokenizer as the file names it.
        pre: String,
    },

    /// A text has bytes for which the vocabulary has neither pieces, byte tokens nor an unknown token.
    #[error(
        "the vocabulary can't spell {text:?}: it has no piece, no byte tokens and no unknown token for it"
    )]
    NoPiece {
        /// The character.
        text: String,
    },

    /// A text is too long to be indexed.
    #[error("a text of {bytes} bytes is too long to be tokenised at once; the limit is {limit}")]
    TooLong {
        /// Bytes of the text.
        bytes: usize,
        /// The most that is accepted.
        limit: usize,
    },

    /// A file can't be read.
    #[error("can't read {path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },

    /// A `tokenizer.json` is not of the expected form, or uses a part that is not supported.
    #[error("{path}: {problem}", path = path.display())]
    TokenizerJson {
        /// The file.
        path: PathBuf,
        /// What is wrong, or not supported.
        problem: String,
    },

    /// A pattern of a pre-tokenizer can't be compiled.
    #[error("the pre-tokenizer's pattern {pattern:?} is not supported: {reason}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// Why.
        reason: String,
    },

    /// A chat template can't be parsed or rendered.
    #[error("chat template, line {line}: {reason}\n    {source_line}")]
    Template {
        /// Line of the template, from 1; 0 if it is not known.
        line: usize,
        /// The text of that line.
        source_line: String,
        /// What went wrong.
        reason: String,
    },

    /// A chat template refused the conversation through `raise_exception`.
    #[error("the chat template refuses this conversation: {message}")]
    Refused {
        /// The template's own words.
        message: String,
    },
}
