//! Choosing a token from logits.
//!
//! Invariants: the vocabulary is never sorted; logits that are not finite are an error and never a choice; the
//! same logits, parameters and seed give the same token on every platform, because probabilities are integers
//! (exact sums in any order) made with arithmetic that IEEE 754 fixes.
//!
//! The order of steps: logit bias and penalties; the constraint's mask; then the greatest logit where `temperature` is 0; otherwise
//! temperature, `top_k`, `min_p`, and `top_p` over what those left.

mod chooser;
mod constraint;
mod logprobs;
mod params;
mod random;
mod select;

pub(crate) use chooser::Chooser;
pub use constraint::{Constraint, ConstraintError, Mask};
pub use logprobs::TokenLogprob;
pub use params::SamplingParams;
pub use random::SplitMix64;

use std::collections::HashMap;

use crate::EngineError;

/// Logits that are compared or summed side by side.
const LANES: usize = 16;
/// Logits searched at once for the greatest.
const BLOCK: usize = 1024;

/// How often a token has been seen.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    in_prompt: bool,
    generated: u32,
}

/// One sequence's sampler: parameters, random state and the tokens that penalties look at.
#[derive(Debug, Clone)]
pub struct Sampler {
    params: SamplingParams,
    random: SplitMix64,
    seen: HashMap<u32, Seen>,
    scratch: select::Scratch,
}

impl Sampler {
    /// A sampler for a vocabulary of `n_vocab` tokens.
    ///
    /// # Errors
    /// Parameters out of their range, or a bias for a token outside the vocabulary.
    pub fn new(params: SamplingParams, n_vocab: usize) -> Result<Sampler, EngineError> {
        params.check(n_vocab)?;
        let random = SplitMix64::new(params.seed);
        Ok(Sampler { params, random, seen: HashMap::new(), scratch: select::Scratch::default() })
    }

    /// Notes the tokens of the prompt: the repetition penalty counts them.
    pub fn observe_prompt(&mut self, tokens: &[u32]) {
        if self.params.has_penalties() {
            for &token in tokens {
                self.seen.entry(token).or_default().in_prompt = true;
            }
        }
    }

    /// Chooses a token and notes it as generated. `logits` `[n_vocab]` are changed in place by bias and penalties.
    ///
    /// # Errors
    /// A logit that is not finite; biases that forbid every token.
    pub fn sample(&mut self, logits: &mut [f32]) -> Result<u32, EngineError> {
        check_finite(logits)?;
        self.adjust(logits);
        self.pick(logits)
    }

    /// As [`Sampler::sample`], of the tokens that `constraint` allows next.
    ///
    /// # Errors
    /// Also those of the constraint.
    pub fn sample_constrained(
        &mut self,
        logits: &mut [f32],
        constraint: &mut dyn Constraint,
    ) -> Result<u32, EngineError> {
        check_finite(logits)?;
        self.adjust(logits);
        constraint::forbid(constraint, logits)?;
        self.pick(logits)
    }

    /// Chooses from logits that are finite, or `-inf` where a token is forbidden.
    fn pick(&mut self, logits: &[f32]) -> Result<u32, EngineError> {
        let best = argmax(logits);
        let Some(&top) = logits.get(best) else { return Err(EngineError::NothingToSample) };
        // Only a bias or a mask can have made it so: the file's logits have been checked.
        if top == f32::NEG_INFINITY {
            return Err(EngineError::NothingToSample);
        }
        let token = if self.params.temperature == 0.0 {
            best as u32
        } else {
            select::draw(&self.params, logits, top, &mut self.random, &mut self.scratch)
        };
        if self.params.has_penalties() {
            self.seen.entry(token).or_default().generated += 1;
        }
        Ok(token)
    }

    fn adjust(&self, logits: &mut [f32]) {
        let p = &self.params;
        // Repetition: Keskar et al. 2019, CTRL, section 4.1. Presence and frequency: of generated tokens only.
        for (&token, seen) in &self.seen {
            let Some(x) = logits.get_mut(token as usize) else { continue };
            *x = if *x > 0.0 { *x / p.repetition_penalty } else { *x * p.repetition_penalty };
            if seen.generated > 0 {
                *x -= p.presence_penalty + p.frequency_penalty * seen.generated as f32;
            }
            // Extreme penalties overflow: an infinity has no place in a distribution.
            *x = x.clamp(f32::MIN, f32::MAX);
        }
        for &(token, bias) in &p.logit_bias {
            if let Some(x) = logits.get_mut(token as usize) {
                *x = (*x + bias).min(f32::MAX);
            }
        }
    }
}

/// Index of the greatest logit, the first of equals; 0 for none.
///
/// A NaN is never chosen while anything else is there.
pub fn argmax(logits: &[f32]) -> usize {
    // One pass over blocks for the greatest, then a search in its block alone.
    let mut top = f32::NEG_INFINITY;
    let mut start = 0;
    for (block, first) in logits.chunks(BLOCK).zip((0..).step_by(BLOCK)) {
        let (chunks, rest) = block.as_chunks::<LANES>();
        let mut lanes = [f32::NEG_INFINITY; LANES];
        for chunk in chunks {
            for (lane, &x) in lanes.iter_mut().zip(chunk) {
                // Not `max`: a comparison that is false for NaN is one vector instruction.
                *lane = if x > *lane { x } else { *lane };
            }
        }
        let greatest = lanes.iter().chain(rest).copied().fold(f32::NEG_INFINITY, f32::max);
        if greatest > top {
            (top, start) = (greatest, first);
        }
    }
    let within = logits[start..].iter().position(|&x| x == top);
    within.map_or_else(|| logits.iter().position(|x| !x.is_nan()).unwrap_or(0), |i| start + i)
}

/// An error that names the first logit that is NaN or infinite.
///
/// # Errors
/// [`EngineError::NonFiniteLogit`].
pub fn check_finite(logits: &[f32]) -> Result<(), EngineError> {
    // A finite x gives 0·x = 0, anything else NaN, which no addition removes.
    let (chunks, rest) = logits.as_chunks::<LANES>();
    let mut lanes = [0.0f32; LANES];
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane += x * 0.0;
        }
    }
    if lanes.iter().all(|x| *x == 0.0) && rest.iter().all(|x| x.is_finite()) {
        return Ok(());
    }
    let token = logits.iter().position(|x| !x.is_finite()).unwrap_or_default();
    Err(EngineError::NonFiniteLogit { token, value: logits[token] })
}

#[cfg(test)]
mod tests;
