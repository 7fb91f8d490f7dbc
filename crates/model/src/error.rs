//! Why a file can't be read as a model: what was expected, what was found, and where.

use turbospark_format::FormatError;

/// A file that is well-formed GGUF but not a model that can be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The metadata has a key of another type than the format says.
    #[error(transparent)]
    Format(#[from] FormatError),

    /// No family has this architecture string.
    #[error("architecture `{found}` is not supported (key `general.architecture`); supported: {supported}")]
    UnknownArchitecture {
        /// The file's architecture string.
        found: String,
        /// The supported ones, separated by commas.
        supported: String,
    },

    /// The file asks for something the family knows of and can't do.
    #[error("not yet: {what} (shown by {shown_by})")]
    NotYet {
        /// The missing piece.
        what: String,
        /// The key or tensor that asks for it.
        shown_by: String,
    },

    /// A key without which the model can't be built.
    #[error(
        "metadata key `{key}` is missing: the file is incomplete, or was written by a converter for another architecture"
    )]
    MissingKey {
        /// The full key.
        key: String,
    },

    /// A key with a value that makes no model.
    #[error("metadata key `{key}` is {found}: expected {expected}")]
    BadKey {
        /// The full key.
        key: String,
        /// The value in the file.
        found: String,
        /// What would be valid.
        expected: String,
    },

    /// A tensor without which the model can't be built.
    #[error(
        "tensor `{name}` of shape {expected:?} is missing: the file is incomplete or not a `{architecture}` model"
    )]
    MissingTensor {
        /// The tensor's name.
        name: String,
        /// Expected shape, innermost first.
        expected: Vec<usize>,
        /// The file's architecture.
        architecture: String,
    },

    /// A tensor whose shape contradicts the metadata.
    #[error(
        "tensor `{name}` has shape {found:?}, expected {expected:?} (innermost dimension first) from the metadata"
    )]
    WrongShape {
        /// The tensor's name.
        name: String,
        /// Expected shape, innermost first.
        expected: Vec<usize>,
        /// Shape in the file.
        found: Vec<usize>,
    },

    /// Tensors that no part of the family uses.
    #[error(
        "`{architecture}` has no use for {count} tensor(s) of this file, first `{first}`: running without them would compute another model"
    )]
    UnusedTensors {
        /// The file's architecture.
        architecture: String,
        /// The first of them in file order.
        first: String,
        /// How many.
        count: usize,
    },
}
