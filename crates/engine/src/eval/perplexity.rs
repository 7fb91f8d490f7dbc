//! Perplexity by the definition that the public GGUF tools share, so that figures can be compared.
//!
//! The text's tokens are cut into windows, an incomplete last one left out; at least two are required. In each window the
//! first token is replaced by BOS if there is one, and the tokens after position `window / 2` are scored, so that each
//! prediction sees at least half a window. Perplexity is `exp` of the mean negative log-likelihood.

use super::{EvalError, log_sum_exp};
use crate::{Engine, EngineError, Wanted, check_finite};

/// The smallest window in which a token is scored.
const LEAST_WINDOW: usize = 3;

/// Sums over the tokens scored so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Perplexity {
    /// Tokens scored.
    pub tokens: usize,
    /// Sum of their negative log-likelihoods, in nats.
    pub nll: f64,
    /// Sum of the squares.
    pub nll_squared: f64,
}

impl Perplexity {
    /// `exp(mean negative log-likelihood)`; NaN before a token is scored.
    pub fn value(&self) -> f64 {
        (self.nll / self.tokens as f64).exp()
    }

    /// Standard error of [`Perplexity::value`], from the spread of the tokens' log-likelihoods.
    pub fn standard_error(&self) -> f64 {
        let n = self.tokens as f64;
        let mean = self.nll / n;
        let variance = (self.nll_squared / n - mean * mean).max(0.0);
        self.value() * (variance / (n - 1.0)).sqrt()
    }

    fn add(&mut self, logits: &[f32], token: u32) {
        let nll = log_sum_exp(logits) - f64::from(logits[token as usize]);
        self.tokens += 1;
        self.nll += nll;
        self.nll_squared += nll * nll;
    }
}

/// Perplexity of `tokens` in windows of `window`; `bos` starts each window. `progress(done, windows, so far)` is called after
/// each of them.
///
/// # Errors
/// Fewer tokens than two windows, a window under 3 tokens or over the engine's context, a token outside the vocabulary, a
/// logit that is not finite.
pub fn perplexity(
    engine: &Engine,
    tokens: &[u32],
    window: usize,
    bos: Option<u32>,
    mut progress: impl FnMut(usize, usize, &Perplexity),
) -> Result<Perplexity, EvalError> {
    if window < LEAST_WINDOW {
        return Err(EvalError::WindowTooSmall { window, least: LEAST_WINDOW });
    }
    let needed = window.saturating_mul(2);
    if tokens.len() < needed {
        return Err(EvalError::TextTooShort { tokens: tokens.len(), window, needed });
    }
    let n_vocab = engine.spec().n_vocab;
    if let Some(&token) = tokens.iter().find(|&&t| t as usize >= n_vocab) {
        return Err(EngineError::TokenOutOfRange { token, n_vocab }.into());
    }
    let (windows, first) = (tokens.len() / window, window / 2);
    let mut sum = Perplexity::default();
    let mut sequence = engine.sequence();
    let mut fed = Vec::with_capacity(window);
    for (done, text) in tokens.chunks_exact(window).enumerate() {
        fed.clear();
        fed.extend_from_slice(text);
        if let Some(bos) = bos {
            fed[0] = bos;
        }
        sequence.truncate(0);
        engine.feed(&mut sequence, &fed[..first], None, Wanted::Nothing, |_, _| {})?;
        let mut fault = None;
        // The last token is only predicted, never fed.
        engine.feed(&mut sequence, &fed[first..window - 1], None, Wanted::All, |row, logits| {
            match check_finite(logits) {
                Ok(()) => sum.add(logits, text[first + row + 1]),
                Err(e) => fault = fault.take().or(Some(e)),
            }
        })?;
        if let Some(fault) = fault {
            return Err(fault.into());
        }
        progress(done + 1, windows, &sum);
    }
    Ok(sum)
}
