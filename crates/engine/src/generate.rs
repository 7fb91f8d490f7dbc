//! [`Generation`]: tokens and text, one step at a time, until something ends it.
//!
//! Invariant: the pieces' texts together are the answer, without half characters, stop tokens and anything from a stop
//! string on; after the last piece [`Generation::finish_reason`] says why it ended.

use std::sync::Arc;
use std::time::{Duration, Instant};

use turbospark_experts::Stats;
use turbospark_text::{DecodeStream, StopOutcome, StopStrings};

use crate::session::State;
use crate::{CancelFlag, Engine, EngineError, Sampler, SamplingParams};

/// What to generate and when to stop.
#[derive(Debug, Clone, Default)]
pub struct GenerateOptions {
    /// How tokens are chosen.
    pub sampling: SamplingParams,
    /// Most tokens to generate; `None`: until the context is full.
    pub max_tokens: Option<usize>,
    /// Texts that end the answer; they are not part of it.
    pub stop: Vec<String>,
    /// Goes on after the tokens that the file says end a turn.
    pub ignore_stop_tokens: bool,
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
    /// The cancel flag was raised.
    Cancelled,
}

/// One step of a generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The token generated; `None` in a last piece that only carries text held back before.
    pub token: Option<u32>,
    /// Text that is certain now; empty while a character or a possible stop string is incomplete.
    pub text: String,
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
    sampler: Sampler,
    stream: DecodeStream<'s>,
    stops: StopStrings,
    stop_strings: Vec<String>,
    stop_tokens: &'s [u32],
    max_tokens: usize,
    cancel: CancelFlag,
    /// Sampled and not fed: that is done when another token is asked for.
    unfed: Option<u32>,
    finished: Option<FinishReason>,
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
        let mut sampler = Sampler::new(options.sampling, engine.spec().n_vocab)?;
        let tokenizer = engine.tokenizer()?;
        let (prefill_tokens, finished) =
            match state.prompt(engine, prompt, &options.cancel, &options.progress) {
                Ok(fed) => (fed, None),
                Err(EngineError::Cancelled { fed, .. }) => (fed, Some(FinishReason::Cancelled)),
                Err(e) => return Err(e),
            };
        sampler.observe_prompt(prompt);
        let max_tokens = options.max_tokens.unwrap_or(usize::MAX);
        Ok(Generation {
            engine,
            state,
            sampler,
            stream: tokenizer.stream_continuation(),
            stops: StopStrings::new(&options.stop),
            stop_strings: options.stop,
            stop_tokens: if options.ignore_stop_tokens { &[] } else { tokenizer.stop_tokens() },
            max_tokens,
            cancel: options.cancel,
            unfed: None,
            finished: finished.or((max_tokens == 0).then_some(FinishReason::Length)),
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
        self.finished.as_ref()
    }

    /// Counts and times so far.
    pub fn stats(&self) -> GenerationStats {
        let decode_experts = self.engine.expert_stats().since(&self.experts_before);
        GenerationStats { decode_experts, ..self.stats }
    }

    /// The next token: feeds the one before it and samples.
    fn sample(&mut self) -> Result<u32, EngineError> {
        if let Some(token) = self.unfed.take() {
            self.state.feed(self.engine, &[token], &self.cancel, &PromptProgress::default())?;
        }
        let token = self.sampler.sample(&mut self.state.logits)?;
        self.unfed = Some(token);
        Ok(token)
    }

    fn step(&mut self) -> Result<Option<Piece>, EngineError> {
        if self.cancel.is_cancelled() {
            return Ok(self.finish(FinishReason::Cancelled, None, String::new()));
        }
        let step = Instant::now();
        let token = match self.sample() {
            Err(EngineError::Cancelled { .. }) => {
                return Ok(self.finish(FinishReason::Cancelled, None, String::new()));
            }
            token => token?,
        };
        self.stats.decode_tokens += 1;
        if self.stats.decode_tokens == 1 {
            self.stats.time_to_first_token = self.started.elapsed();
        } else {
            self.stats.decode += step.elapsed();
        }
        if self.stop_tokens.binary_search(&token).is_ok() {
            return Ok(self.finish(FinishReason::StopToken(token), None, String::new()));
        }
        let text = self.show(|stream| stream.push(token));
        if self.finished.is_none()
            && (self.stats.decode_tokens >= self.max_tokens
                || self.state.tokens.len() >= self.engine.context())
        {
            return Ok(self.finish(FinishReason::Length, Some(token), text));
        }
        Ok(Some(Piece { token: Some(token), text }))
    }

    /// Text that is certain after the stream's next; a stop string that completes in it ends the answer.
    fn show(&mut self, next: impl for<'a> FnOnce(&'a mut DecodeStream<'s>) -> &'a str) -> String {
        let StopOutcome { text, matched } = self.stops.push(next(&mut self.stream));
        if let Some(stop) = matched.and_then(|i| self.stop_strings.get(i)) {
            self.finished = Some(FinishReason::StopString(stop.clone()));
        }
        text
    }

    /// Ends for `reason` with what was held back; a stop string that completes only now wins.
    fn finish(&mut self, reason: FinishReason, token: Option<u32>, mut text: String) -> Option<Piece> {
        text += &self.show(DecodeStream::finish);
        if self.finished.is_none() {
            text += &self.stops.finish();
            self.finished = Some(reason);
        }
        (token.is_some() || !text.is_empty()).then_some(Piece { token, text })
    }
}

impl Iterator for Generation<'_> {
    type Item = Result<Piece, EngineError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.finished.is_some() || self.failed {
            return None;
        }
        let step = self.step();
        self.failed = step.is_err();
        step.transpose()
    }
}
