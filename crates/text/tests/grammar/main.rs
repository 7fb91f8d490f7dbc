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
    while !rest.is_empty() {
        let token = control.iter().position(|c| rest.starts_with(c));
        let (id, len) =
            token.map_or((u32::from(rest.as_bytes()[0]), 1), |i| (256 + i as u32, control[i].len()));
        // Text may be cut within a character, which is how bytes are fed.
        let mut bytes = rest.as_bytes();
        let n = if token.is_some() { 1 } else { rest.chars().next().map_or(1, char::len_utf8) };
        for k in 0..n {
            let id = if token.is_some() { id } else { u32::from(bytes[k]) };
            if let Err(e) = matcher.accept(id) {
                assert!(matches!(e, GrammarError::Rejected { .. }), "{e}");
                return false;
            }
        }
        let step = if token.is_some() { len } else { n };
        bytes = &bytes[step..];
        rest = std::str::from_utf8(bytes).unwrap();
    }
    matcher.is_accepting()
}

pub(crate) fn allowed(matcher: &mut Matcher) -> Vec<u32> {
    let mask = matcher.mask().unwrap();
    (0..mask.len() as u32 * 32).filter(|id| mask[*id as usize / 32] >> (id % 32) & 1 == 1).collect()
}
