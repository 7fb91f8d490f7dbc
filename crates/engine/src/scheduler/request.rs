//! What a client asks for, and what it is told.

use std::time::{Duration, Instant};

use crate::{CancelFlag, EngineError, FinishReason, GenerateOptions, Piece};

/// Called with each [`Event`] on the scheduler's thread, so it should only hand it on; `false` ends the request.
pub type OnEvent = Box<dyn FnMut(Event) -> bool + Send>;

/// A prompt to answer.
pub struct Request {
    /// Its tokens, at least one.
    pub prompt: Vec<u32>,
    /// How to answer and when to stop; `cancel` ends the request within one step, while it waits too.
    pub options: GenerateOptions,
    /// Who asks: clients take turns, and share out the rows of a step evenly.
    pub client: u64,
    /// Who is told.
    pub on_event: OnEvent,
}

/// What happens to a request, in this order. One of the last two ends it.
#[derive(Debug)]
pub enum Event {
    /// It has left the queue.
    Started {
        /// Tokens of the prompt.
        prompt_tokens: usize,
        /// Those of them that were known and are not fed.
        cached_tokens: usize,
    },
    /// A token, or text that was held back.
    Piece(Piece),
    /// It ended.
    Finished {
        /// Why.
        reason: FinishReason,
        /// Counts and times.
        stats: RequestStats,
    },
    /// It failed, alone: other requests go on.
    Failed(EngineError),
}

/// Counts and times of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestStats {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Those of them that were not fed.
    pub cached_tokens: usize,
    /// Tokens generated, a stop token included.
    pub generated_tokens: usize,
    /// Time in the queue.
    pub queued: Duration,
    /// From submission to the first token; zero if there was none.
    pub time_to_first_token: Duration,
    /// From submission to the end.
    pub total: Duration,
}

/// Why a request was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// As many requests wait as may.
    #[error("the queue is full: try again in {} s", retry_after.as_secs())]
    QueueFull {
        /// About when there will be a place.
        retry_after: Duration,
    },
    /// The scheduler ends or has ended.
    #[error("the scheduler is shutting down")]
    Closed,
    /// A prompt that no context holds.
    #[error(
        "{tokens} prompt tokens don't fit the context of {context}: shorten the prompt or open the engine with a larger context"
    )]
    TooLong {
        /// Tokens of the prompt.
        tokens: usize,
        /// Positions of a sequence.
        context: usize,
    },
    /// Prompt and answer take more memory than all requests together may.
    #[error("the KV cache of prompt and answer takes {bytes} bytes of {limit}: ask for fewer tokens")]
    TooLarge {
        /// What they take.
        bytes: u64,
        /// What there is.
        limit: u64,
    },
    /// An empty prompt, a token outside the vocabulary, a sampling parameter out of its range.
    #[error(transparent)]
    Invalid(#[from] EngineError),
}

/// A submitted request. Dropping it ends the request within one step, unless it was [detached](Ticket::detach).
#[derive(Debug)]
pub struct Ticket {
    pub(super) id: u64,
    pub(super) dropped: CancelFlag,
    pub(super) detached: bool,
}

impl Ticket {
    /// The request's number, counted from 0.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Ends the request within one step.
    pub fn cancel(&self) {
        self.dropped.cancel();
    }

    /// Lets the request run whatever becomes of the ticket.
    pub fn detach(mut self) {
        self.detached = true;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.detached {
            self.dropped.cancel();
        }
    }
}

/// The flags that end a request.
pub(super) struct Stop {
    pub(super) cancel: CancelFlag,
    pub(super) dropped: CancelFlag,
}

impl Stop {
    pub(super) fn is_raised(&self) -> bool {
        self.cancel.is_cancelled() || self.dropped.is_cancelled()
    }
}

/// A request in the queue.
pub(super) struct Waiting {
    pub(super) request: Request,
    pub(super) stop: Stop,
    /// What its KV cache may take.
    pub(super) bytes: u64,
    pub(super) submitted: Instant,
}

impl Waiting {
    /// Tells that it ended before it began.
    pub(super) fn give_up(mut self) {
        let stats = RequestStats {
            prompt_tokens: self.request.prompt.len(),
            queued: self.submitted.elapsed(),
            total: self.submitted.elapsed(),
            ..RequestStats::default()
        };
        (self.request.on_event)(Event::Finished { reason: FinishReason::Cancelled, stats });
    }
}
