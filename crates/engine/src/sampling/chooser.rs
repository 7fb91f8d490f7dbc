//! [`Chooser`]: a sampler under a constraint, with the log-probabilities that somebody asked for.

use super::{Constraint, Sampler, SamplingParams, TokenLogprob, logprobs};
use crate::EngineError;

/// Chooses one request's tokens.
pub(crate) struct Chooser {
    sampler: Sampler,
    constraint: Option<Box<dyn Constraint>>,
    /// How many of the likeliest tokens to tell.
    top: Option<usize>,
    /// The model's own logits, where log-probabilities are asked for.
    raw: Vec<f32>,
}

impl Chooser {
    pub(crate) fn new(
        params: SamplingParams,
        constraint: Option<Box<dyn Constraint>>,
        top: Option<usize>,
        prompt: &[u32],
        n_vocab: usize,
    ) -> Result<Chooser, EngineError> {
        let mut sampler = Sampler::new(params, n_vocab)?;
        sampler.observe_prompt(prompt);
        Ok(Chooser { sampler, constraint, top, raw: Vec::new() })
    }

    /// The next token; `logits` are changed.
    pub(crate) fn choose(&mut self, logits: &mut [f32]) -> Result<(u32, Option<TokenLogprob>), EngineError> {
        if self.top.is_some() {
            self.raw.clear();
            self.raw.extend_from_slice(logits);
        }
        let token = match &mut self.constraint {
            Some(constraint) => self.sampler.sample_constrained(logits, constraint.as_mut())?,
            None => self.sampler.sample(logits)?,
        };
        Ok((token, self.top.map(|top| logprobs::logprob(&self.raw, token, top))))
    }

    /// Tells the constraint of a token that was chosen; says whether the answer is whole.
    pub(crate) fn accept(&mut self, token: u32) -> Result<bool, EngineError> {
        let Some(constraint) = &mut self.constraint else { return Ok(false) };
        constraint.accept(token)?;
        Ok(constraint.is_done())
    }
}
