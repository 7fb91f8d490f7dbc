//! Added tokens: control and user-defined tokens are found in the text before anything else and are always one token.
//!
//! Invariant: user-defined tokens (`<think>`) are atomic in every text; control tokens only where the caller says that the
//! text may steer the model. Where several fit, the leftmost wins, then the longest.

use aho_corasick::{AhoCorasick, MatchKind};

use crate::{
    TextError,
    vocab::{TokenKind, Vocab},
};

/// White space around a token that belongs to it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Strip {
    pub(crate) left: bool,
    pub(crate) right: bool,
}

/// A stretch of the text.
pub(crate) enum Segment<'t> {
    Text(&'t str),
    Token(u32),
}

pub(crate) struct Added {
    user: Finder,
    all: Finder,
}

struct Finder {
    automaton: Option<AhoCorasick>,
    ids: Vec<u32>,
    strips: Vec<Strip>,
}

impl Added {
    /// `text` is what an id is written as in a text, `strip` which white space around it is its own.
    pub(crate) fn new<'v>(
        vocab: &Vocab,
        text: impl Fn(u32) -> Option<&'v [u8]>,
        strip: impl Fn(u32) -> Strip,
    ) -> Result<Added, TextError> {
        let user = Finder::new(vocab, &text, &strip, |k| k == TokenKind::UserDefined)?;
        let all = Finder::new(vocab, &text, &strip, |k| {
            matches!(k, TokenKind::UserDefined | TokenKind::Control | TokenKind::Unknown)
        })?;
        Ok(Added { user, all })
    }

    /// Cuts `text` at added tokens; `parse` also finds control tokens.
    pub(crate) fn split<'t>(
        &self,
        text: &'t str,
        parse: bool,
        mut each: impl FnMut(Segment<'t>) -> Result<(), TextError>,
    ) -> Result<(), TextError> {
        let finder = if parse { &self.all } else { &self.user };
        let mut done = 0;
        if let Some(automaton) = &finder.automaton {
            for found in automaton.find_iter(text) {
                // White space that the token before took may hold this match's start.
                if found.start() < done {
                    continue;
                }
                let index = found.pattern().as_usize();
                let strip = finder.strips[index];
                let before = &text[done..found.start()];
                let before = if strip.left { before.trim_end() } else { before };
                if !before.is_empty() {
                    each(Segment::Text(before))?;
                }
                each(Segment::Token(finder.ids[index]))?;
                let rest = &text[found.end()..];
                done = if strip.right { text.len() - rest.trim_start().len() } else { found.end() };
            }
        }
        if done < text.len() {
            each(Segment::Text(&text[done..]))?;
        }
        Ok(())
    }
}

impl Finder {
    fn new<'v>(
        vocab: &Vocab,
        text: impl Fn(u32) -> Option<&'v [u8]>,
        strip: impl Fn(u32) -> Strip,
        wanted: impl Fn(TokenKind) -> bool,
    ) -> Result<Finder, TextError> {
        let ids: Vec<u32> = (0..vocab.len() as u32)
            .filter(|&id| vocab.kind(id).is_some_and(&wanted) && text(id).is_some_and(|b| !b.is_empty()))
            .collect();
        let strips = ids.iter().map(|&id| strip(id)).collect();
        let patterns = ids.iter().map(|&id| text(id).unwrap_or_default());
        let automaton = (!ids.is_empty())
            .then(|| AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(patterns))
            .transpose()
            .map_err(|e| TextError::Pattern { pattern: "added tokens".to_owned(), reason: e.to_string() })?;
        Ok(Finder { automaton, ids, strips })
    }
}
