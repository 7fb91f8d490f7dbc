//! One JSON value, character by character: where it ends, and whether it is one.
//!
//! Invariant: what comes out of a scan that ends is valid JSON. White space outside of strings passes, and line breaks and
//! tabs that a model wrote raw into a string become escapes, since everything after them is usually right.

/// Nesting that is accepted; readers of JSON give up a little above.
const MAX_DEPTH: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Value,
    /// After `[`: a value or the end.
    FirstItem,
    /// After `{`: a key or the end.
    FirstKey,
    Key,
    Colon,
    /// After a value: a comma or the end of what holds it.
    After,
    String,
    Escape,
    /// Hexadecimal digits that `\u` still wants.
    Unicode(u8),
    /// Rest of `true`, `false` or `null`.
    Literal(&'static str),
    Number(Number),
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    Sign,
    Zero,
    Digits,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
}

/// What a character did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scan {
    /// The value goes on.
    More,
    /// The character ended the value.
    Done,
    /// The value had ended before the character.
    DoneBefore,
}

/// Reads one value.
#[derive(Clone, Debug)]
pub(super) struct JsonScanner {
    state: State,
    /// For each open bracket, whether it is an object's.
    open: Vec<bool>,
    /// Whether the string that is read is a key.
    in_key: bool,
}

impl JsonScanner {
    pub(super) fn new() -> JsonScanner {
        JsonScanner { state: State::Value, open: Vec::new(), in_key: false }
    }

    /// Whether nothing but white space has come.
    pub(super) fn is_fresh(&self) -> bool {
        self.state == State::Value && self.open.is_empty()
    }

    /// Takes a character and appends what it gives to `out`.
    pub(super) fn feed(&mut self, c: char, out: &mut String) -> Result<Scan, &'static str> {
        match self.state {
            State::Number(number) => match number_step(number, c) {
                Some(next) => self.state = State::Number(next),
                None if ends(number) => {
                    self.value_done();
                    if self.state == State::Done {
                        return Ok(Scan::DoneBefore);
                    }
                    return self.feed(c, out);
                }
                None => return Err("a number in the arguments is not JSON"),
            },
            State::Literal(rest) => {
                if !rest.starts_with(c) {
                    return Err("a word in the arguments is not JSON");
                }
                match &rest[c.len_utf8()..] {
                    "" => self.value_done(),
                    rest => self.state = State::Literal(rest),
                }
            }
            State::String => return self.string(c, out),
            State::Escape => {
                self.state = match c {
                    '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' => State::String,
                    'u' => State::Unicode(4),
                    _ => return Err("a string in the arguments has an escape that JSON doesn't know"),
                };
            }
            State::Unicode(left) => {
                if !c.is_ascii_hexdigit() {
                    return Err("a string in the arguments has a \\u without four digits");
                }
                self.state = if left == 1 { State::String } else { State::Unicode(left - 1) };
            }
            State::Done => return Ok(Scan::DoneBefore),
            _ if c.is_ascii_whitespace() => {
                if self.is_fresh() {
                    return Ok(Scan::More);
                }
            }
            _ => self.structure(c)?,
        }
        out.push(c);
        Ok(if self.state == State::Done { Scan::Done } else { Scan::More })
    }

    /// Ends the input: whether the value is complete.
    pub(super) fn complete(&self) -> bool {
        match self.state {
            State::Done => true,
            State::Number(n) => self.open.is_empty() && ends(n),
            _ => false,
        }
    }

    fn string(&mut self, c: char, out: &mut String) -> Result<Scan, &'static str> {
        match c {
            '"' if self.in_key => self.state = State::Colon,
            '"' => self.value_done(),
            '\\' => self.state = State::Escape,
            '\u{0}'..='\u{1f}' => {
                super::values::escape(c, out);
                return Ok(Scan::More);
            }
            _ => {}
        }
        out.push(c);
        Ok(if self.state == State::Done { Scan::Done } else { Scan::More })
    }

    fn structure(&mut self, c: char) -> Result<(), &'static str> {
        match (self.state, c) {
            (State::FirstItem, ']') | (State::FirstKey, '}') => self.close(),
            (State::FirstKey | State::Key, '"') => {
                self.in_key = true;
                self.state = State::String;
            }
            (State::Colon, ':') => self.state = State::Value,
            (State::After, ',') => {
                self.state = if self.open.last() == Some(&true) { State::Key } else { State::Value };
            }
            (State::After, '}') if self.open.last() == Some(&true) => self.close(),
            (State::After, ']') if self.open.last() == Some(&false) => self.close(),
            (State::Value | State::FirstItem, _) => self.value(c)?,
            _ => return Err("the arguments are not JSON"),
        }
        Ok(())
    }

    fn value(&mut self, c: char) -> Result<(), &'static str> {
        self.state = match c {
            '{' | '[' => {
                if self.open.len() == MAX_DEPTH {
                    return Err("the arguments are nested too deeply");
                }
                self.open.push(c == '{');
                if c == '{' { State::FirstKey } else { State::FirstItem }
            }
            '"' => {
                self.in_key = false;
                State::String
            }
            't' => State::Literal("rue"),
            'f' => State::Literal("alse"),
            'n' => State::Literal("ull"),
            '-' => State::Number(Number::Sign),
            '0' => State::Number(Number::Zero),
            '1'..='9' => State::Number(Number::Digits),
            _ => return Err("the arguments are not JSON"),
        };
        Ok(())
    }

    fn close(&mut self) {
        self.open.pop();
        self.value_done();
    }

    fn value_done(&mut self) {
        self.state = if self.open.is_empty() { State::Done } else { State::After };
    }
}

fn number_step(number: Number, c: char) -> Option<Number> {
    use Number::*;
    Some(match (number, c) {
        (Sign, '0') => Zero,
        (Sign, '1'..='9') | (Digits, '0'..='9') => Digits,
        (Zero | Digits, '.') => Point,
        (Point | Fraction, '0'..='9') => Fraction,
        (Zero | Digits | Fraction, 'e' | 'E') => Exponent,
        (Exponent, '+' | '-') => ExponentSign,
        (Exponent | ExponentSign | ExponentDigits, '0'..='9') => ExponentDigits,
        _ => return None,
    })
}

fn ends(number: Number) -> bool {
    matches!(number, Number::Zero | Number::Digits | Number::Fraction | Number::ExponentDigits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scan(text: &str) -> Result<String, &'static str> {
        let (mut scanner, mut out) = (JsonScanner::new(), String::new());
        for c in text.chars() {
            if scanner.feed(c, &mut out)? == Scan::DoneBefore && !c.is_ascii_whitespace() {
                return Err("more than one value");
            }
        }
        if scanner.complete() { Ok(out) } else { Err("cut off") }
    }

    #[test]
    fn line_breaks_in_strings_become_escapes() {
        assert_eq!(scan("{\"a\": \"x\ny\tz\"}").unwrap(), "{\"a\": \"x\\ny\\tz\"}");
    }

    #[test]
    fn nesting_without_end_is_refused() {
        assert!(scan(&"[".repeat(100_000)).unwrap_err().contains("deeply"));
    }

    proptest! {
        #[test]
        fn accepts_exactly_what_a_reader_of_json_accepts(text in "[\\[\\]{}\",:0-9truefalsn.eE+\\-\\\\ ]{0,12}") {
            let valid = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            prop_assert_eq!(scan(&text).is_ok(), valid, "{:?}", text);
        }
    }
}
