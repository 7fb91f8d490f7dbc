//! Constraints over small vocabularies: what they allow, what they refuse, and that nothing hangs or panics.

#[path = "../support/bytes.rs"]
mod bytes;
mod calls;
mod schemas;

use turbospark_text::{Constraints, Grammar, GrammarError, Matcher};

/// Feeds text and control tokens; whether all of it is allowed and the text may end there.
pub(crate) fn accepts(constraints: &Constraints, control: &[&str], grammar: &Grammar, text: &str) -> bool {
    let mut matcher = constraints.start(grammar).unwrap_or_else(|e| panic!("{e}"));
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let token = control.iter().position(|c| rest.starts_with(c));
        let n = token.map_or(c.len_utf8(), |i| control[i].len());
        let ids: Vec<u32> = match token {
            Some(i) => vec![256 + i as u32],
            None => rest.bytes().take(n).map(u32::from).collect(),
        };
        for id in ids {
            if let Err(e) = matcher.accept(id) {
                assert!(matches!(e, GrammarError::Rejected { .. }), "{e}");
                return false;
            }
        }
        rest = &rest[n..];
    }
    matcher.is_accepting()
}

pub(crate) fn allowed(matcher: &mut Matcher) -> Vec<u32> {
    let mask = matcher.mask().unwrap();
    (0..mask.len() as u32 * 32).filter(|id| mask[*id as usize / 32] >> (id % 32) & 1 == 1).collect()
}
