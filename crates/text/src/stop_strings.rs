//! Stop strings in streamed text.
//!
//! Invariant: text is handed on as soon as no stop string can begin in it any more, and never a character of a stop string
//! that then completes, wherever the edges of the pushed pieces lie.

/// What a push gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopOutcome {
    /// Text that may be shown: everything up to the stop string, or to the earliest place where one may have begun.
    pub text: String,
    /// Which stop string was found, by its place in the list. The stream has ended then.
    pub matched: Option<usize>,
}

/// Looks for stop strings across the edges of tokens.
#[derive(Clone, Debug)]
pub struct StopStrings {
    stops: Vec<String>,
    held: String,
    ended: bool,
}

impl StopStrings {
    /// Empty stop strings never match.
    pub fn new(stops: impl IntoIterator<Item = impl Into<String>>) -> StopStrings {
        StopStrings { stops: stops.into_iter().map(Into::into).collect(), held: String::new(), ended: false }
    }

    /// Takes text and returns what may be shown. After a match everything is swallowed.
    pub fn push(&mut self, text: &str) -> StopOutcome {
        if self.ended {
            return StopOutcome { text: String::new(), matched: None };
        }
        self.held.push_str(text);
        // The match that ends first is the one that a character-by-character reader sees; of those, the longest.
        let found = self
            .stops
            .iter()
            .enumerate()
            .filter(|(_, stop)| !stop.is_empty())
            .filter_map(|(i, stop)| self.held.find(stop.as_str()).map(|at| (at + stop.len(), at, i)))
            .min();
        if let Some((_, at, index)) = found {
            self.ended = true;
            self.held.truncate(at);
            return StopOutcome { text: std::mem::take(&mut self.held), matched: Some(index) };
        }
        let keep = self.stops.iter().map(|stop| overlap(&self.held, stop)).max().unwrap_or(0);
        let rest = self.held.split_off(self.held.len() - keep);
        StopOutcome { text: std::mem::replace(&mut self.held, rest), matched: None }
    }

    /// Ends the stream: returns the text that was held back because a stop string might have begun in it.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

/// Bytes at the end of `text` that are a proper prefix of `stop`; the longest such.
fn overlap(text: &str, stop: &str) -> usize {
    let longest = text.len().min(stop.len().saturating_sub(1));
    (1..=longest).rev().find(|&n| stop.as_bytes()[..n] == text.as_bytes()[text.len() - n..]).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(stops: &[&str], pieces: &[&str]) -> (String, Option<usize>) {
        let mut stop = StopStrings::new(stops.iter().copied());
        let mut out = String::new();
        for piece in pieces {
            let outcome = stop.push(piece);
            out.push_str(&outcome.text);
            if outcome.matched.is_some() {
                return (out, outcome.matched);
            }
        }
        out.push_str(&stop.finish());
        (out, None)
    }

    #[test]
    fn a_stop_string_over_three_tokens_is_found_and_hidden() {
        assert_eq!(run(&["\nUser:"], &["Hi", "\nUs", "er", ": more"]), ("Hi".to_owned(), Some(0)));
    }

    #[test]
    fn text_that_only_looked_like_a_stop_comes_out() {
        assert_eq!(run(&["END"], &["E", "N", "E", "N", "X"]), ("ENENX".to_owned(), None));
        assert_eq!(run(&["END"], &["abcEN"]), ("abcEN".to_owned(), None));
    }

    #[test]
    fn an_overlapping_beginning_is_not_lost() {
        assert_eq!(run(&["aab"], &["a", "a", "a", "b"]), ("a".to_owned(), Some(0)));
    }

    #[test]
    fn held_text_never_splits_a_character() {
        assert_eq!(run(&["éa"], &["xé", "b"]), ("xéb".to_owned(), None));
        assert_eq!(run(&["é"], &["xè"]), ("xè".to_owned(), None));
    }

    #[test]
    fn empty_stop_strings_never_match() {
        assert_eq!(run(&["", "b"], &["a", "b"]), ("a".to_owned(), Some(1)));
    }

    #[test]
    fn results_do_not_depend_on_where_pieces_end() {
        let text = "one two<stop>three";
        let whole = run(&["<stop>", "two<s"], &[text]);
        for at in 0..=text.len() {
            assert_eq!(run(&["<stop>", "two<s"], &[&text[..at], &text[at..]]), whole, "split at {at}");
        }
    }
}
