//! [`Generation`]: a session's answer, one step at a time, and what is asked of it.
//!
//! Invariant: each step feeds the token before and chooses one; after the last piece [`Generation::finish_reason`] says why it ended.

use std::sync::Arc;
use std::time::{Duration, Instant};

use turbospark_experts::Stats;

use crate::answer::Answer;
use crate::session::State;
use crate::{CancelFlag, Constraint, Engine, EngineError, SamplingParams, TokenLogprob};

/// What to generate and when to stop.
#[derive(Debug, Default)]
pub struct GenerateOptions {
    /// How tokens are chosen.
    pub sampling: SamplingParams,
    /// Most tokens to generate; `None`: until the context is full.
    pub max_tokens: Option<usize>,
    /// Texts that end the answer; they are not part of it.
    pub stop: Vec<String>,
    /// Goes on after the tokens that the file says end a turn.
    pub ignore_stop_tokens: bool,
    /// Shows control tokens in the text as the file spells them, and the token that ended the answer as a last piece: for
    /// who takes the answer apart by them.
    pub show_special: bool,
    /// Tells each token's log-probability, and those of this many of the likeliest.
    pub logprobs: Option<usize>,
    /// What the answer must look like.
    pub constraint: Option<Box<dyn Constraint>>,
    /// Stops the prompt between chunks and the answer between tokens.
    pub cancel: CancelFlag,
    /// Told how much of the prompt has been fed.
    pub progress: PromptProgress,
}

/// How far a prompt has been fed.
#[derive(Debug, Clone, Copy)]
pub struct PromptStep {
    /// Tokens fed; layers that are done of a chunk count as their share of its tokens.
    pub fed: usize,
    /// Tokens to feed: those that the cache did not hold already.
    pub of: usize,
    /// Counts of the experts' cache since the engine was opened.
    pub experts: Stats,
}

type Report = dyn Fn(&PromptStep) + Send + Sync;

/// A function that is called after each layer of a prompt. The default calls nothing.
#[derive(Clone, Default)]
pub struct PromptProgress(Option<Arc<Report>>);

impl PromptProgress {
    /// Calls `report` for each step. It must not call the engine.
    pub fn new(report: impl Fn(&PromptStep) + Send + Sync + 'static) -> Self {
        PromptProgress(Some(Arc::new(report)))
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn report(&self, step: &PromptStep) {
        if let Some(report) = &self.0 {
            report(step);
        }
    }
}

impl std::fmt::Debug for PromptProgress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "PromptProgress(..)" } else { "PromptProgress(none)" })
    }
}

/// Why a generation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinishReason {
    /// The model ended its turn with this token.
    StopToken(u32),
    /// This stop string appeared.
    StopString(String),
    /// `max_tokens` were generated, or the context is full.
    Length,
    /// The answer is whole: its constraint lets nothing follow.
    Constraint,
    /// The cancel flag was raised.
    Cancelled,
}

/// One step of a generation.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// The token generated; `None` in a last piece that only carries text held back before.
    pub token: Option<u32>,
    /// Text that is certain now; empty while a character or a possible stop string is incomplete.
    pub text: String,
    /// The token's, where they are asked for.
    pub logprob: Option<TokenLogprob>,
}

/// Counts and times of a generation.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct GenerationStats {
    /// Prompt tokens that were fed; those kept from before are not among them.
    pub prefill_tokens: usize,
    /// Time to feed them.
    pub prefill: Duration,
    /// Tokens generated, a stop token included.
    pub decode_tokens: usize,
    /// Time from the first token to the last, without the caller's own between steps. The first is not in it: it needs
    /// no pass beyond the prompt's.
    pub decode: Duration,
    /// From the start of the call to the first token; zero before it.
    pub time_to_first_token: Duration,
    /// What the prompt's rows did to the experts' cache.
    pub prefill_experts: Stats,
    /// What the generated tokens' rows did to it. Other sequences of the engine count as well.
    pub decode_experts: Stats,
}

impl GenerationStats {
    /// Prompt tokens per second; 0 if there were none.
    pub fn prefill_rate(&self) -> f64 {
        rate(self.prefill_tokens, self.prefill)
    }

    /// Tokens per second after the first; 0 if there were none.
    pub fn decode_rate(&self) -> f64 {
        rate(self.decode_tokens.saturating_sub(1), self.decode)
    }
}

fn rate(tokens: usize, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { tokens as f64 / time.as_secs_f64() }
}

/// A running generation: an iterator over its pieces.
pub struct Generation<'s> {
    engine: &'s Engine,
    state: &'s mut State,
    answer: Answer<'s>,
    cancel: CancelFlag,
    /// Sampled and not fed: that is done when another token is asked for.
    unfed: Option<u32>,
    failed: bool,
    started: Instant,
    stats: GenerationStats,
    /// Counts of the experts' cache when the prompt had been fed.
    experts_before: Stats,
}

impl<'s> Generation<'s> {
    pub(crate) fn start(
        engine: &'s Engine,
        state: &'s mut State,
        prompt: &[u32],
        options: GenerateOptions,
    ) -> Result<Self, EngineError> {
        let started = Instant::now();
        let experts_at_start = engine.expert_stats();
        let (cancel, progress) = (options.cancel.clone(), options.progress.clone());
        let mut answer = Answer::new(engine.tokenizer()?, engine.spec().n_vocab, prompt, options)?;
        let prefill_tokens = match state.prompt(engine, prompt, &cancel, &progress) {
            Ok(fed) => fed,
            Err(EngineError::Cancelled { fed, .. }) => {
                answer.end(FinishReason::Cancelled);
                fed
            }
            Err(e) => return Err(e),
        };
        Ok(Generation {
            engine,
            state,
            answer,
            cancel,
            unfed: None,
            failed: false,
            started,
            stats: GenerationStats {
                prefill_tokens,
                prefill: started.elapsed(),
                prefill_experts: engine.expert_stats().since(&experts_at_start),
                ..Default::default()
            },
            experts_before: engine.expert_stats(),
        })
    }

    /// Why it ended; `None` while it runs, and after an error.
    pub fn finish_reason(&self) -> Option<&FinishReason> {
        self.answer.finish_reason()
    }

    /// Counts and times so far.
    pub fn stats(&self) -> GenerationStats {
        let decode_experts = self.engine.expert_stats().since(&self.experts_before);
        GenerationStats { decode_experts, ..self.stats }
    }

    /// Feeds the token before, chooses the next.
    fn step(&mut self) -> Result<Option<Piece>, EngineError> {
        if self.cancel.is_cancelled() {
            return Ok(self.answer.end(FinishReason::Cancelled));
        }
        let step = Instant::now();
        if let Some(token) = self.unfed.take() {
            match self.state.feed(self.engine, &[token], &self.cancel, &PromptProgress::default()) {
                Err(EngineError::Cancelled { .. }) => return Ok(self.answer.end(FinishReason::Cancelled)),
                fed => fed?,
            }
        }
        let room = self.state.tokens.len() < self.engine.context();
        let (token, piece) = self.answer.next(&mut self.state.logits, room)?;
        self.unfed = Some(token);
        self.stats.decode_tokens = self.answer.generated();
        if self.stats.decode_tokens == 1 {
            self.stats.time_to_first_token = self.started.elapsed();
        } else {
            self.stats.decode += step.elapsed();
        }
        Ok(piece)
    }
}

impl Iterator for Generation<'_> {
    type Item = Result<Piece, EngineError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.answer.finish_reason().is_some() || self.failed {
            return None;
        }
        let step = self.step();
        self.failed = step.is_err();
        step.transpose()
    }
}
