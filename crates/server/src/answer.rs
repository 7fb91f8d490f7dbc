//! [`Answer`]: the parts of one request's answer as they come.
//!
//! Invariant: the last part is [`Part::Finished`] or [`Part::Failed`]; dropping an answer ends its request within one step.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc::Receiver;
use turbospark_engine::scheduler::{Event, Ticket};

use crate::metrics::Metrics;
use crate::model::{InUse, Taking};
use crate::{Finish, Part, Refusal, Usage};

/// A running answer.
pub struct Answer {
    events: Receiver<(Instant, Event)>,
    taking: Taking,
    ticket: Option<Ticket>,
    parts: VecDeque<Part>,
    submitted: Instant,
    usage: Usage,
    last_token: Option<Instant>,
    ended: bool,
    metrics: Arc<Metrics>,
    /// Keeps the model loaded.
    model: InUse,
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer").field("usage", &self.usage).finish_non_exhaustive()
    }
}

impl Answer {
    pub(crate) fn new(
        events: Receiver<(Instant, Event)>,
        taking: Taking,
        ticket: Ticket,
        submitted: Instant,
        metrics: Arc<Metrics>,
        model: InUse,
    ) -> Answer {
        Answer {
            events,
            taking,
            ticket: Some(ticket),
            parts: VecDeque::new(),
            submitted,
            usage: Usage::default(),
            last_token: None,
            ended: false,
            metrics,
            model,
        }
    }

    /// The name of the model that answers.
    pub fn model(&self) -> &str {
        self.model.name()
    }

    /// The next part; `None` after the last.
    pub async fn next(&mut self) -> Option<Part> {
        loop {
            if let Some(part) = self.parts.pop_front() {
                return Some(part);
            }
            if self.ended {
                return None;
            }
            match self.events.recv().await {
                Some((at, event)) => self.take(at, event),
                None => {
                    let reason = "the answer was given up: it was not read fast enough, or the server ends";
                    self.fail(Refusal::Unavailable(reason.to_owned()));
                }
            }
        }
    }

    fn take(&mut self, at: Instant, event: Event) {
        match event {
            Event::Started { prompt_tokens, cached_tokens } => {
                self.usage.prompt_tokens = prompt_tokens;
                self.usage.cached_tokens = cached_tokens;
                self.usage.queued = (at - self.submitted).as_secs_f64();
                self.parts.push_back(Part::Started { prompt_tokens, cached_tokens });
            }
            Event::Piece(piece) => {
                if piece.token.is_some() {
                    self.count_token(at);
                }
                let finish = self.taking.piece(piece, &mut self.parts);
                self.usage.reasoning_tokens = self.taking.reasoning_tokens();
                if let Some(finish) = finish {
                    self.finish(at, finish);
                }
            }
            Event::Finished { reason, stats } => {
                // A stop token that isn't shown comes with no piece.
                self.usage.completion_tokens = stats.generated_tokens;
                self.usage.prompt_tokens = stats.prompt_tokens;
                if self.usage.first_token == 0.0 {
                    self.usage.first_token = stats.time_to_first_token.as_secs_f64();
                }
                let finish = self.taking.finish(reason, &mut self.parts);
                self.finish(at, finish);
            }
            Event::Failed(error) => self.fail(crate::model::refusal_of(&error)),
        }
    }

    fn count_token(&mut self, at: Instant) {
        self.usage.completion_tokens += 1;
        match self.last_token {
            None => {
                self.usage.first_token = (at - self.submitted).as_secs_f64();
                self.metrics.first_token.observe(self.usage.first_token);
            }
            Some(before) => self.metrics.per_token.observe((at - before).as_secs_f64()),
        }
        self.last_token = Some(at);
    }

    fn finish(&mut self, at: Instant, finish: Finish) {
        self.ended = true;
        // Ends the request where it was ended here and not by the engine.
        self.ticket = None;
        self.usage.total = (at - self.submitted).as_secs_f64();
        self.metrics.answered(&self.usage);
        tracing::info!(
            model = self.model.name(),
            finish = ?finish,
            prompt_tokens = self.usage.prompt_tokens,
            cached_tokens = self.usage.cached_tokens,
            completion_tokens = self.usage.completion_tokens,
            queued = self.usage.queued,
            first_token = self.usage.first_token,
            total = self.usage.total,
            "answered"
        );
        self.parts.push_back(Part::Finished { finish, usage: self.usage });
    }

    fn fail(&mut self, refusal: Refusal) {
        self.ended = true;
        self.ticket = None;
        tracing::warn!(model = self.model.name(), reason = %refusal, "answer failed");
        self.parts.push_back(Part::Failed(refusal));
    }
}
