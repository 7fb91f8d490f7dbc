//! What a caller can ask of the sampler, and the ranges that make sense.

use crate::EngineError;

/// How tokens are chosen. The default is moderate sampling; [`SamplingParams::greedy`] takes the likeliest.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplingParams {
    /// Divides the logits; 0 always takes the greatest.
    pub temperature: f32,
    /// Keeps this many of the likeliest tokens; 0 keeps all.
    pub top_k: usize,
    /// Keeps the likeliest tokens until their probabilities reach this sum; 1 keeps all.
    pub top_p: f32,
    /// Drops tokens less likely than this share of the likeliest one; 0 drops none.
    pub min_p: f32,
    /// Divides positive and multiplies negative logits of tokens in prompt or answer; 1 does nothing.
    pub repetition_penalty: f32,
    /// Subtracted once from the logit of a token that was generated.
    pub presence_penalty: f32,
    /// Subtracted for each time that the token was generated.
    pub frequency_penalty: f32,
    /// Added to the logits of single tokens; `-inf` forbids one.
    pub logit_bias: Vec<(u32, f32)>,
    /// Starts the random sequence: the same seed repeats the same choices.
    pub seed: u64,
}

impl Default for SamplingParams {
    fn default() -> Self {
        SamplingParams {
            temperature: 0.8,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.05,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            logit_bias: Vec::new(),
            seed: 0,
        }
    }
}

impl SamplingParams {
    /// Always the token with the greatest logit.
    pub fn greedy() -> Self {
        SamplingParams { temperature: 0.0, ..Self::default() }
    }

    pub(super) fn has_penalties(&self) -> bool {
        self.repetition_penalty != 1.0 || self.presence_penalty != 0.0 || self.frequency_penalty != 0.0
    }

    pub(crate) fn check(&self, n_vocab: usize) -> Result<(), EngineError> {
        let range = |field, value: f32, fine, expected| match fine {
            true => Ok(()),
            false => Err(EngineError::BadSampling { field, value: value.to_string(), expected }),
        };
        let t = self.temperature;
        range("temperature", t, t.is_finite() && t >= 0.0, "a finite number, 0 or above")?;
        range("top_p", self.top_p, self.top_p > 0.0 && self.top_p <= 1.0, "above 0, at most 1")?;
        range("min_p", self.min_p, (0.0..=1.0).contains(&self.min_p), "from 0 to 1")?;
        let r = self.repetition_penalty;
        range("repetition_penalty", r, r.is_finite() && r > 0.0, "a finite number above 0")?;
        range(
            "presence_penalty",
            self.presence_penalty,
            self.presence_penalty.is_finite(),
            "a finite number",
        )?;
        range(
            "frequency_penalty",
            self.frequency_penalty,
            self.frequency_penalty.is_finite(),
            "a finite number",
        )?;
        for &(token, bias) in &self.logit_bias {
            range("logit_bias", bias, bias < f32::INFINITY, "a finite number, or -inf to forbid the token")?;
            if token as usize >= n_vocab {
                return Err(EngineError::TokenOutOfRange { token, n_vocab });
            }
        }
        Ok(())
    }
}
