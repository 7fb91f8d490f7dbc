//! Embeddings: one vector for a text, from the hidden values before the head.

use crate::{Engine, EngineError, Wanted};

/// How the rows of a text become one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// Their mean.
    Mean,
    /// The last row.
    Last,
}

impl Engine {
    /// The hidden values `[hidden]` of `tokens` after the model's last norm, pooled. They are not normalised to length 1.
    ///
    /// # Errors
    /// As [`Engine::forward`].
    pub fn embed(&self, tokens: &[u32], pooling: Pooling) -> Result<Vec<f32>, EngineError> {
        // Sums of many rows in f32 would lose digits.
        let mut sum = vec![0.0f64; self.spec().hidden];
        let last = tokens.len().saturating_sub(1);
        self.feed(&mut self.sequence(), tokens, None, Wanted::Hidden, |row, hidden| {
            if pooling == Pooling::Mean || row == last {
                sum.iter_mut().zip(hidden).for_each(|(sum, x)| *sum += f64::from(*x));
            }
        })?;
        let rows = if pooling == Pooling::Mean { tokens.len() as f64 } else { 1.0 };
        Ok(sum.into_iter().map(|x| (x / rows) as f32).collect())
    }
}
