//! What can go wrong with a grammar: before the first token, or at one.

/// Why a constraint can't be made or went wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GrammarError {
    /// A JSON schema can't be followed, or nothing satisfies it.
    #[error("the JSON schema can't be used, at {place}: {reason}")]
    Schema {
        /// JSON pointer to the part that is at fault; `#` is the whole.
        place: String,
        /// Why.
        reason: String,
    },

    /// A regular expression or Lark grammar can't be compiled.
    #[error("the {kind} can't be used: {reason}")]
    Syntax {
        /// `regular expression` or `grammar`.
        kind: &'static str,
        /// Why.
        reason: String,
    },

    /// A schema or grammar is larger than what is compiled for a stranger.
    #[error("{what} at {place} is over the limit of {limit}; make it smaller")]
    TooLarge {
        /// What was counted.
        what: &'static str,
        /// Where: a JSON pointer, or `#`.
        place: String,
        /// The most that is accepted.
        limit: usize,
    },

    /// The dialect, or this part of a tool's schema in it, can't be constrained.
    #[error("tool calls of the {dialect} dialect can't be constrained: {what}")]
    Unsupported {
        /// The dialect's name.
        dialect: &'static str,
        /// What can't be done.
        what: String,
    },

    /// The choice names a tool that is not among the tools, or there are none.
    #[error("no tool is named {name:?}; the choice must name one of the request's tools")]
    UnknownTool {
        /// The name.
        name: String,
    },

    /// A token was accepted that the constraint forbids here.
    #[error("token {token} is not allowed by the constraint at this place")]
    Rejected {
        /// The token.
        token: u32,
    },

    /// The constraint ran out of the work it may do for a token.
    #[error("the constraint can't go on: {reason}")]
    Stuck {
        /// Why.
        reason: String,
    },
}
