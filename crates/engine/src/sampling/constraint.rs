//! [`Constraint`]: what an answer must look like, as a mask over the vocabulary before each token.
//!
//! Invariant: a token that the mask leaves out is never chosen; where nothing is left, that is an error and no token.

use crate::EngineError;

/// A set of token ids: bit `i % 32` of word `i / 32` is token `i`. Ids past the last word are not in it.
#[derive(Debug, Clone, Copy)]
pub struct Mask<'a>(pub &'a [u32]);

impl Mask<'_> {
    /// Whether `token` is in the set.
    pub fn allows(&self, token: u32) -> bool {
        self.0.get(token as usize / 32).is_some_and(|word| word >> (token % 32) & 1 == 1)
    }

    /// Sets the logits of all other tokens to `-inf`.
    pub(super) fn apply(&self, logits: &mut [f32]) {
        for (i, chunk) in logits.chunks_mut(32).enumerate() {
            match self.0.get(i).copied().unwrap_or(0) {
                u32::MAX => {}
                0 => chunk.fill(f32::NEG_INFINITY),
                word => {
                    let forbidden = chunk.iter_mut().enumerate().filter(|(bit, _)| word >> bit & 1 == 0);
                    forbidden.for_each(|(_, logit)| *logit = f32::NEG_INFINITY);
                }
            }
        }
    }
}

/// Why a constraint can't go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the constraint on the answer can't be followed: {0}")]
pub struct ConstraintError(pub String);

/// What an answer must look like, such as a grammar. It is asked before each token and told of the one that was chosen.
pub trait Constraint: Send {
    /// Tokens that may come next, those that end the answer included where it may end here.
    ///
    /// # Errors
    /// Whatever keeps the constraint from telling: the request then fails.
    fn mask(&mut self) -> Result<Mask<'_>, ConstraintError>;

    /// Goes on by `token`, which the mask allowed. A token that ends the answer is not told.
    ///
    /// # Errors
    /// As [`Constraint::mask`].
    fn accept(&mut self, token: u32) -> Result<(), ConstraintError>;

    /// Whether the answer is whole and nothing may follow; it ends then.
    fn is_done(&self) -> bool;
}

impl std::fmt::Debug for dyn Constraint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Constraint(..)")
    }
}

/// Forbids what `constraint` does not allow next.
pub(super) fn forbid(constraint: &mut dyn Constraint, logits: &mut [f32]) -> Result<(), EngineError> {
    constraint.mask()?.apply(logits);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_leaves_exactly_its_tokens() {
        let words = [u32::MAX, 0, 0b1010, 1 << 31];
        let mask = Mask(&words);
        let mut logits = vec![1.0f32; 150];
        mask.apply(&mut logits);
        for (token, logit) in logits.iter().enumerate() {
            assert_eq!(*logit == 1.0, mask.allows(token as u32), "token {token}");
        }
        let allowed: Vec<usize> = (32..150).filter(|&t| mask.allows(t as u32)).collect();
        assert_eq!(allowed, [65, 67, 127]);
    }
}
