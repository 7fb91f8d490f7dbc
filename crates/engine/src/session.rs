//! [`Session`]: one sequence with the tokens that its cache holds.
//!
//! Invariant: `tokens` are exactly what the cache holds, also after an error or a cancelled prompt, so the next prompt can
//! keep their common prefix.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use turbospark_experts::Stats;

use crate::engine::{Part, Sequence, Wanted};
use crate::generate::{GenerateOptions, Generation, PromptProgress, PromptStep};
use crate::{Engine, EngineError};

/// Stops prompts and generations from another thread. Clones share the flag.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// A flag that is not raised.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks whoever holds the flag to stop at the next token or prompt chunk.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Lowers the flag for the next run.
    pub fn reset(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether the flag is raised.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A conversation: a KV cache, the tokens in it, and the logits that follow them.
pub struct Session {
    engine: Engine,
    state: State,
}

/// What changes in a session, apart from the engine that a running generation borrows beside it.
pub(crate) struct State {
    sequence: Sequence,
    pub(crate) tokens: Vec<u32>,
    /// `[n_vocab]` after the token fed last; the sampler may have changed them.
    pub(crate) logits: Vec<f32>,
}

impl Session {
    pub(crate) fn new(engine: Engine) -> Session {
        let state = State { sequence: engine.sequence(), tokens: Vec::new(), logits: Vec::new() };
        Session { engine, state }
    }

    /// The engine that the session runs on.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Tokens in the cache.
    pub fn tokens(&self) -> &[u32] {
        &self.state.tokens
    }

    /// Logits `[n_vocab]` of what follows the tokens fed last; empty before the first. A generation leaves them with
    /// its biases and penalties applied.
    pub fn logits(&self) -> &[f32] {
        &self.state.logits
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        self.state.truncate(0);
        self.state.logits.clear();
    }

    /// Appends `tokens`.
    ///
    /// # Errors
    /// As [`Engine::forward`].
    pub fn feed(&mut self, tokens: &[u32]) -> Result<(), EngineError> {
        self.state.feed(&self.engine, tokens, &CancelFlag::new(), &PromptProgress::default())
    }

    /// Makes `tokens` the session's contents: what the cache has in common with them stays, the rest is replaced. Layers that keep
    /// only their last state go back to the end of an earlier prompt, if that is what is common.
    /// Returns how many tokens were fed, at least the last.
    ///
    /// # Errors
    /// As [`Engine::forward`]; the session then stays as it was.
    pub fn prompt(&mut self, tokens: &[u32]) -> Result<usize, EngineError> {
        self.state.prompt(&self.engine, tokens, &CancelFlag::new(), &PromptProgress::default())
    }

    /// Starts to generate after `prompt`, which replaces the session's contents as [`Session::prompt`] does.
    ///
    /// The prompt is fed before this returns; each step of the iterator then generates one token.
    ///
    /// # Errors
    /// As [`Engine::forward`] and [`Engine::tokenizer`]; sampling parameters out of range.
    pub fn generate(
        &mut self,
        prompt: &[u32],
        options: GenerateOptions,
    ) -> Result<Generation<'_>, EngineError> {
        Generation::start(&self.engine, &mut self.state, prompt, options)
    }
}

impl State {
    /// As [`Session::prompt`], with a flag that is looked at between chunks; what was fed before it was raised stays.
    pub(crate) fn prompt(
        &mut self,
        engine: &Engine,
        tokens: &[u32],
        cancel: &CancelFlag,
        progress: &PromptProgress,
    ) -> Result<usize, EngineError> {
        let common = self.tokens.iter().zip(tokens).take_while(|(a, b)| a == b).count();
        // The last token has to be fed in any case: its logits are wanted.
        let kept = common.min(tokens.len().saturating_sub(1));
        engine.check(kept, &tokens[kept..])?;
        let kept = self.truncate(kept);
        // What generation adds may be replaced by the next prompt: the way back leads to the end of this one. Before its last
        // token, which is fed again in any case.
        let end = tokens.len() - usize::from(self.sequence.is_recurrent());
        if kept < end {
            let wanted = if end == tokens.len() { Wanted::Last } else { Wanted::Nothing };
            self.feed_wanted(engine, &tokens[kept..end], wanted, cancel, progress)?;
        }
        self.sequence.save();
        if end < tokens.len() {
            self.feed(engine, &tokens[end..], cancel, progress)?;
        }
        Ok(tokens.len() - kept)
    }

    pub(crate) fn feed(
        &mut self,
        engine: &Engine,
        tokens: &[u32],
        cancel: &CancelFlag,
        progress: &PromptProgress,
    ) -> Result<(), EngineError> {
        self.feed_wanted(engine, tokens, Wanted::Last, cancel, progress)
    }

    /// `end` says whether the last token's logits are wanted; no other's are.
    fn feed_wanted(
        &mut self,
        engine: &Engine,
        tokens: &[u32],
        end: Wanted,
        cancel: &CancelFlag,
        progress: &PromptProgress,
    ) -> Result<(), EngineError> {
        engine.check(self.tokens.len(), tokens)?;
        let mut fed = 0;
        for chunk in tokens.chunks(engine.prefill_chunk()) {
            if cancel.is_cancelled() {
                return Err(EngineError::Cancelled { fed, tokens: tokens.len() });
            }
            let last = fed + chunk.len() == tokens.len();
            let wanted = if last { end } else { Wanted::Nothing };
            let part = Part { sequence: &mut self.sequence, tokens: chunk, wanted };
            let n_layers = engine.spec().layers.len();
            // A long chunk through all layers takes long: its share of layers counts as its share of tokens.
            let of = tokens.len();
            let mut layers_done = |layers: usize, experts: Stats| {
                progress.report(&PromptStep { fed: fed + chunk.len() * layers / n_layers, of, experts });
            };
            let result = engine.forward_watched(&mut [part], cancel, &mut layers_done, |_, _, logits| {
                self.logits.clear();
                self.logits.extend_from_slice(logits);
            });
            if let Err(error) = result {
                self.tokens.truncate(self.sequence.len());
                return Err(if error.is_cancel() {
                    EngineError::Cancelled { fed, tokens: tokens.len() }
                } else {
                    error
                });
            }
            fed += chunk.len();
            self.tokens.extend_from_slice(chunk);
            progress.report(&PromptStep { fed, of, experts: engine.expert_stats() });
        }
        Ok(())
    }

    fn truncate(&mut self, len: usize) -> usize {
        let left = self.sequence.truncate(len);
        self.tokens.truncate(left);
        left
    }
}
