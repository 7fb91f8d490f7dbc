//! Finding markers in characters that come one at a time.
//!
//! Invariant: a character is given on as soon as no marker can begin at it any more. A marker that the vocabulary has as a
//! control token is only that token: the same characters spelt by ordinary tokens are text.

use super::Tool;

/// What all parsers of one answer know.
#[derive(Clone, Debug, Default)]
pub(super) struct Context {
    pub(super) tools: Vec<Tool>,
    /// Markers that are control tokens.
    pub(super) strict: Vec<&'static str>,
    /// Whether the characters that come now are those of a control token.
    pub(super) in_control: bool,
}

impl Context {
    pub(super) fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|t| t.name == name)
    }
}

/// Characters that may be the start of a marker.
#[derive(Clone, Debug, Default)]
pub(super) struct Held(Vec<(char, bool)>);

impl Held {
    /// Takes a character; gives those that belong to no marker to `rest`. Returns the marker that is complete.
    pub(super) fn feed(
        &mut self,
        c: char,
        cx: &Context,
        markers: &[&'static str],
        mut rest: impl FnMut(char),
    ) -> Option<&'static str> {
        self.0.push((c, cx.in_control));
        while !self.0.is_empty() {
            let mut begun = false;
            for &marker in markers {
                if cx.strict.contains(&marker) && self.0.iter().any(|&(_, control)| !control) {
                    continue;
                }
                let mut chars = marker.chars();
                if self.0.iter().all(|&(held, _)| chars.next() == Some(held)) {
                    if chars.next().is_none() {
                        self.0.clear();
                        return Some(marker);
                    }
                    begun = true;
                }
            }
            if begun {
                break;
            }
            rest(self.0.remove(0).0);
        }
        None
    }

    /// What is held belongs to no marker.
    pub(super) fn release(&mut self, mut rest: impl FnMut(char)) {
        self.0.drain(..).for_each(|(c, _)| rest(c));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
