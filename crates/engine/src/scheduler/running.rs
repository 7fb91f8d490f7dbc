//! [`Running`]: a request that has its place in the batch.
//!
//! Invariant: `tokens` begin with what the sequence holds; what it lacks is fed next, be it the prompt, the token chosen last, or what a
//! failed pass took away.

use std::time::{Duration, Instant};

use super::request::{Event, OnEvent, RequestStats, Stop, Waiting};
use crate::answer::Answer;
use crate::{Engine, EngineError, FinishReason, Piece, PromptProgress, PromptStep, Sequence};

/// A request that runs.
pub(super) struct Running<'e> {
    pub(super) client: u64,
    /// The prompt and what was generated.
    pub(super) tokens: Vec<u32>,
    pub(super) sequence: Sequence,
    pub(super) answer: Answer<'e>,
    pub(super) stop: Stop,
    /// Lengths at which the sequence is kept for other prompts, ascending.
    pub(super) marks: Vec<usize>,
    /// What its KV cache may take.
    pub(super) bytes: u64,
    pub(super) failed: Option<EngineError>,
    progress: PromptProgress,
    on_event: OnEvent,
    /// Nobody listens any more.
    gone: bool,
    submitted: Instant,
    stats: RequestStats,
}

impl<'e> Running<'e> {
    /// Starts a request with `sequence`, which holds the beginning of its prompt; `None` where it failed, which was told.
    pub(super) fn start(engine: &'e Engine, waiting: Waiting, sequence: Sequence) -> Option<Self> {
        let Waiting { request, stop, bytes, submitted } = waiting;
        let (n_vocab, prompt) = (engine.spec().n_vocab, request.prompt);
        let (mut on_event, progress) = (request.on_event, request.options.progress.clone());
        let answer = engine.tokenizer().and_then(|t| Answer::new(t, n_vocab, &prompt, request.options));
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                on_event(Event::Failed(error));
                return None;
            }
        };
        let stats = RequestStats {
            prompt_tokens: prompt.len(),
            cached_tokens: sequence.len(),
            queued: submitted.elapsed(),
            ..RequestStats::default()
        };
        let mut running = Running {
            client: request.client,
            tokens: prompt,
            sequence,
            answer,
            stop,
            marks: Vec::new(),
            bytes,
            failed: None,
            progress,
            on_event,
            gone: false,
            submitted,
            stats,
        };
        let RequestStats { prompt_tokens, cached_tokens, .. } = stats;
        running.tell(Event::Started { prompt_tokens, cached_tokens });
        Some(running)
    }

    /// Tokens that the sequence lacks.
    pub(super) fn unfed(&self) -> usize {
        self.tokens.len() - self.sequence.len()
    }

    /// Keeps the sequence for others when it has `len` positions.
    pub(super) fn mark(&mut self, len: usize) {
        if len > self.sequence.len()
            && let Err(at) = self.marks.binary_search(&len)
        {
            self.marks.insert(at, len);
        }
    }

    /// The most rows that may be fed now: up to the next mark.
    pub(super) fn most_rows(&self) -> usize {
        let len = self.sequence.len();
        let mark = self.marks.iter().find(|&&m| m > len);
        mark.map_or(self.unfed(), |m| (m - len).min(self.unfed()))
    }

    /// Takes the mark that the sequence has reached, if it has.
    pub(super) fn take_mark(&mut self) -> bool {
        let len = self.sequence.len();
        let reached = self.marks.contains(&len);
        self.marks.retain(|&m| m > len);
        reached
    }

    /// Goes on by what was chosen.
    pub(super) fn chosen(&mut self, token: u32, piece: Option<Piece>) {
        self.tokens.push(token);
        if self.stats.generated_tokens == 0 {
            self.stats.time_to_first_token = self.submitted.elapsed();
        }
        self.stats.generated_tokens = self.answer.generated();
        if let Some(piece) = piece {
            self.tell(Event::Piece(piece));
        }
    }

    /// Says how far the prompt has been fed.
    pub(super) fn report(&self, engine: &Engine) {
        if self.progress.is_set() && self.stats.generated_tokens == 0 {
            let fed = self.sequence.len().saturating_sub(self.stats.cached_tokens);
            let of = self.stats.prompt_tokens - self.stats.cached_tokens;
            self.progress.report(&PromptStep { fed, of, experts: engine.expert_stats() });
        }
    }

    /// Time since it was submitted, without that in the queue.
    pub(super) fn age(&self) -> Duration {
        self.submitted.elapsed().saturating_sub(self.stats.queued)
    }

    /// Whether it has ended, or `all` have to.
    pub(super) fn is_over(&self, all: bool) -> bool {
        let ended = self.failed.is_some() || self.answer.finish_reason().is_some();
        all || ended || self.gone || self.stop.is_raised()
    }

    /// What is left of it, unless it failed, and what is to be told.
    pub(super) fn end(mut self) -> (Option<(Vec<u32>, Sequence)>, Farewell) {
        let last = match self.failed.take() {
            Some(error) => [None, Some(Event::Failed(error))],
            None => {
                let going = self.answer.finish_reason().is_none();
                let piece = if going { self.answer.end(FinishReason::Cancelled) } else { None };
                let reason = self.answer.finish_reason().cloned().unwrap_or(FinishReason::Cancelled);
                let stats = RequestStats { total: self.submitted.elapsed(), ..self.stats };
                [piece.map(Event::Piece), Some(Event::Finished { reason, stats })]
            }
        };
        let failed = matches!(last[1], Some(Event::Failed(_)));
        self.tokens.truncate(self.sequence.len());
        let left = (!failed).then_some((self.tokens, self.sequence));
        (left, Farewell { last, on_event: (!self.gone).then_some(self.on_event) })
    }

    fn tell(&mut self, event: Event) {
        if !self.gone {
            self.gone = !(self.on_event)(event);
        }
    }
}

/// The last events of a request that has ended.
pub(super) struct Farewell {
    last: [Option<Event>; 2],
    on_event: Option<OnEvent>,
}

impl Farewell {
    pub(super) fn tell(self) {
        if let Some(mut on_event) = self.on_event {
            let _ = self.last.into_iter().flatten().all(on_event.as_mut());
        }
    }
}
