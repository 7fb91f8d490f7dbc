//! Why a request is not answered, before an API puts it into its own form.

use std::time::Duration;

/// Why a request is not answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A field that is wrong or can't take effect.
    #[error("{message}")]
    Bad {
        /// The field, as the client wrote it: `tools[0].function.parameters`.
        field: Option<String>,
        /// What is wrong and what would be right.
        message: String,
    },
    /// No key, or a wrong one.
    #[error("this server asks for an API key, and {0}")]
    Key(&'static str),
    /// A request that may be another site's doing.
    #[error("{0}")]
    Forbidden(String),
    /// There is no such model or stored response.
    #[error("{0}")]
    NotFound(String),
    /// A body, prompt or schema that is larger than may be.
    #[error("{0}")]
    TooLarge(String),
    /// As many requests wait as may.
    #[error("the queue is full: try again in {} s", retry_after.as_secs().max(1))]
    Busy {
        /// When there will be a place.
        retry_after: Duration,
    },
    /// The server ends, or the model is not loaded yet.
    #[error("{0}")]
    Unavailable(String),
    /// A fault of ours.
    #[error("{0}")]
    Internal(String),
}

impl Refusal {
    /// A field that is wrong.
    pub fn bad(field: impl Into<String>, message: impl Into<String>) -> Refusal {
        Refusal::Bad { field: Some(field.into()), message: message.into() }
    }

    /// The HTTP status that all APIs give it.
    pub fn status(&self) -> u16 {
        match self {
            Refusal::Bad { .. } => 400,
            Refusal::Key(_) => 401,
            Refusal::Forbidden(_) => 403,
            Refusal::NotFound(_) => 404,
            Refusal::TooLarge(_) => 413,
            Refusal::Busy { .. } => 429,
            Refusal::Internal(_) => 500,
            Refusal::Unavailable(_) => 503,
        }
    }
}
