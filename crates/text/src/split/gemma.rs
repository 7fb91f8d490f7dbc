//! Calls as Gemma 4 writes them: `call:name{key:<|"|>text<|"|>,other:[1,{a:true}]}`, keys bare, strings between markers. The
//! function-calling Gemma 3 writes the same with `<escape>` for the quotes.
//!
//! Invariant: a call ends with the brace that closes its arguments, and braces between quotes close nothing. Each argument
//! goes out when it is complete.

use super::{
    call::{CallParser, MAX_NAME, Step},
    events::Sink,
    marker::{Context, Held},
    values,
};

const QUOTES: [&str; 2] = ["<|\"|>", "<escape>"];
const MAX_DEPTH: usize = 64;

/// Stands for a quote in collected arguments, where the quotes' own spelling could be text.
const QUOTE: char = '\u{0}';

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Expecting `call:`; characters of it that have come.
    Word(usize),
    Name,
    Key,
    Value,
    Over,
}

/// Reads one call.
#[derive(Debug)]
pub(super) struct BraceCall {
    state: State,
    held: Held,
    name: String,
    key: String,
    value: String,
    depth: usize,
    in_quotes: bool,
    arguments: usize,
}

impl BraceCall {
    pub(super) fn new() -> BraceCall {
        BraceCall {
            state: State::Word(0),
            held: Held::default(),
            name: String::new(),
            key: String::new(),
            value: String::new(),
            depth: 0,
            in_quotes: false,
            arguments: 0,
        }
    }

    fn argument(&mut self, sink: &mut Sink) -> Result<(), &'static str> {
        let comma = if self.arguments == 0 { "{" } else { "," };
        let json = literal(&self.value)?;
        let key = self.key.replace(QUOTE, "");
        sink.arguments(&format!("{comma}{}:{json}", values::quoted(key.trim())));
        self.arguments += 1;
        self.key.clear();
        self.value.clear();
        Ok(())
    }

    fn step(&mut self, c: char, sink: &mut Sink) -> Result<Step, &'static str> {
        match self.state {
            State::Word(n) => {
                const WORD: &[u8] = b"call:";
                if n == 0 && c.is_whitespace() {
                    return Ok(Step::More);
                }
                if WORD[n] as char != c {
                    return Err("a call doesn't begin with its name");
                }
                self.state = if n + 1 == WORD.len() { State::Name } else { State::Word(n + 1) };
            }
            State::Name if c == '{' => {
                if self.name.trim().is_empty() {
                    return Err("a call has no name");
                }
                sink.start(None, self.name.trim());
                self.state = State::Key;
            }
            State::Name => {
                if self.name.len() > MAX_NAME || c == QUOTE || c == '<' {
                    return Err("a call's name is too long");
                }
                self.name.push(c);
            }
            State::Key => match c {
                ':' => self.state = State::Value,
                '}' if self.key.trim().is_empty() => return Ok(self.end(sink)),
                ',' if self.key.trim().is_empty() => {}
                _ if self.key.len() > MAX_NAME => return Err("a parameter's name is too long"),
                _ => self.key.push(c),
            },
            State::Value => {
                if c == QUOTE {
                    self.in_quotes = !self.in_quotes;
                } else if !self.in_quotes {
                    match c {
                        ',' | '}' if self.depth == 0 => {
                            self.argument(sink)?;
                            self.state = State::Key;
                            return Ok(if c == '}' { self.end(sink) } else { Step::More });
                        }
                        '{' | '[' => self.depth += 1,
                        '}' | ']' => {
                            let depth = self.depth.checked_sub(1);
                            self.depth = depth.ok_or("brackets in the arguments don't match")?;
                        }
                        _ => {}
                    }
                }
                self.value.push(c);
            }
            State::Over => return Ok(Step::DoneBefore),
        }
        Ok(Step::More)
    }

    fn end(&mut self, sink: &mut Sink) -> Step {
        sink.arguments(if self.arguments == 0 { "{}" } else { "}" });
        sink.end();
        self.state = State::Over;
        Step::Done
    }
}

impl CallParser for BraceCall {
    fn feed(&mut self, c: char, cx: &Context, sink: &mut Sink) -> Step {
        if self.state == State::Over {
            return Step::DoneBefore;
        }
        let mut chars = Vec::new();
        // A character 0 in a text would be taken for a quote.
        let found = self.held.feed(c, cx, &QUOTES, |c| chars.push(if c == QUOTE { ' ' } else { c }));
        chars.extend(found.map(|_| QUOTE));
        for c in chars {
            match self.step(c, sink) {
                Ok(Step::More) => {}
                Ok(step) => return step,
                Err(reason) => return Step::Fail(reason),
            }
        }
        Step::More
    }

    fn finish(&mut self, _: &Context, _: &mut Sink) -> Step {
        if self.state == State::Over { Step::Done } else { Step::Fail("the call was cut off") }
    }
}

fn literal(text: &str) -> Result<String, &'static str> {
    let mut reader = Reader { rest: text, out: String::new() };
    reader.value(0)?;
    reader.skip();
    if reader.rest.is_empty() { Ok(reader.out) } else { Err("an argument has more than one value") }
}

struct Reader<'a> {
    rest: &'a str,
    out: String,
}

impl Reader<'_> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, c: char) -> bool {
        self.skip();
        let Some(rest) = self.rest.strip_prefix(c) else { return false };
        self.rest = rest;
        true
    }

    fn value(&mut self, depth: usize) -> Result<(), &'static str> {
        if depth > MAX_DEPTH {
            return Err("an argument is nested too deeply");
        }
        if self.eat(QUOTE) {
            let (text, rest) = self.rest.split_once(QUOTE).ok_or("a string in the arguments doesn't end")?;
            self.rest = rest;
            self.out.push_str(&values::quoted(text));
            return Ok(());
        }
        let (close, is_map) = match self.rest.chars().next() {
            Some('{') => ('}', true),
            Some('[') => (']', false),
            _ => return self.word(),
        };
        self.rest = &self.rest[1..];
        self.out.push(if is_map { '{' } else { '[' });
        let mut first = true;
        while !self.eat(close) {
            if !first {
                self.out.push(',');
            }
            first = false;
            if is_map {
                let (key, rest) = self.rest.split_once(':').ok_or("a key in the arguments has no value")?;
                self.out.push_str(&values::quoted(key.replace([QUOTE, '"'], "").trim()));
                self.out.push(':');
                self.rest = rest;
            }
            self.value(depth + 1)?;
            if !self.eat(',') && !self.rest.starts_with(close) {
                return Err("a list in the arguments doesn't end");
            }
        }
        self.out.push(close);
        Ok(())
    }

    /// A number, a word of JSON, or a string without quotes.
    fn word(&mut self) -> Result<(), &'static str> {
        let end = self.rest.find([',', ']', '}']).unwrap_or(self.rest.len());
        let word = self.rest[..end].trim();
        self.rest = &self.rest[end..];
        match serde_json::from_str::<serde_json::Value>(word) {
            _ if word.is_empty() => return Err("an argument has no value"),
            Ok(_) => self.out.push_str(word),
            Err(_) => self.out.push_str(&values::quoted(word)),
        }
        Ok(())
    }
}
