//! A grammar's matcher as the engine's constraint.
//!
//! Invariant: where reasoning comes first it is free and the grammar begins after it; no token can end the answer before the
//! grammar is satisfied.

use std::sync::Arc;

use turbospark_engine::{Constraint, ConstraintError, Mask};
use turbospark_text::Matcher;

use super::Model;

/// Markers are this long at most, with what may stand between their parts.
const TAIL: usize = 96;

/// After what a constraint begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// At once.
    Nothing,
    /// After this text.
    Marker(&'static str),
    /// After the header of harmony's final message.
    FinalChannel,
}

impl After {
    fn is_reached(self, tail: &[u8]) -> bool {
        let find = |needle: &str| tail.windows(needle.len()).rposition(|w| w == needle.as_bytes());
        match self {
            After::Nothing => true,
            After::Marker(marker) => find(marker).is_some(),
            After::FinalChannel => match (find("<|channel|>final"), find("<|message|>")) {
                (Some(channel), Some(message)) => message > channel,
                _ => false,
            },
        }
    }
}

/// A matcher, and what comes before it.
pub(super) struct Guided {
    matcher: Matcher,
    model: Arc<Model>,
    after: After,
    tail: Vec<u8>,
    /// What may come before: everything but the ends of an answer.
    free: Vec<u32>,
}

impl Guided {
    pub(super) fn new(matcher: Matcher, model: &Arc<Model>, after: After) -> Guided {
        let mut free = Vec::new();
        if after != After::Nothing {
            let n_vocab = model.engine().spec().n_vocab.max(model.tokenizer().vocab_size());
            free.resize(n_vocab.div_ceil(32), u32::MAX);
            for &id in model.tokenizer().stop_tokens() {
                if let Some(word) = free.get_mut(id as usize / 32) {
                    *word &= !(1 << (id % 32));
                }
            }
        }
        Guided { matcher, model: model.clone(), after, tail: Vec::new(), free }
    }
}

impl Constraint for Guided {
    fn mask(&mut self) -> Result<Mask<'_>, ConstraintError> {
        if self.after != After::Nothing {
            return Ok(Mask(&self.free));
        }
        self.matcher.mask().map(Mask).map_err(|e| ConstraintError(e.to_string()))
    }

    fn accept(&mut self, token: u32) -> Result<(), ConstraintError> {
        if self.after == After::Nothing {
            return self.matcher.accept(token).map_err(|e| ConstraintError(e.to_string()));
        }
        self.tail.extend_from_slice(self.model.tokenizer().token_bytes(token).unwrap_or_default());
        if self.after.is_reached(&self.tail) {
            self.after = After::Nothing;
        }
        let extra = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..extra);
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.after == After::Nothing && self.matcher.is_finished()
    }
}
