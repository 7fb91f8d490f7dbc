//! Calls that are Python: `[f(a=1), g(b="x")]`, as Llama and Gemma write them, and Python literals as JSON.
//!
//! Invariant: only keyword arguments with literal values are calls. Each argument goes out when it is complete.

use super::{
    call::{CallParser, MAX_NAME, Step},
    events::Sink,
    marker::Context,
    values,
};

/// Nesting of literals; below what readers of JSON accept.
const MAX_DEPTH: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before a call.
    Before,
    Name,
    /// After `(` or a comma: a key or the end of the call.
    Key,
    Value,
    /// After a call.
    After,
    Over,
}

/// Reads a list of calls, or lines of calls.
#[derive(Debug)]
pub(super) struct PythonCalls {
    state: State,
    in_list: bool,
    /// Only names of tools that exist begin a call.
    known_only: bool,
    name: String,
    key: String,
    value: String,
    /// Brackets open in the value, and the quote that it is in.
    depth: usize,
    quote: Option<char>,
    escaped: bool,
    arguments: usize,
}

impl PythonCalls {
    pub(super) fn new(known_only: bool) -> PythonCalls {
        PythonCalls {
            state: State::Before,
            in_list: false,
            known_only,
            name: String::new(),
            key: String::new(),
            value: String::new(),
            depth: 0,
            quote: None,
            escaped: false,
            arguments: 0,
        }
    }

    /// Only an argument with a name, or none, tells a call from other code.
    fn start(&self, sink: &mut Sink) {
        if self.arguments == 0 {
            sink.start(None, &self.name);
        }
    }

    fn end_call(&mut self, sink: &mut Sink) -> Step {
        sink.arguments(if self.arguments == 0 { "{}" } else { "}" });
        sink.end();
        self.name.clear();
        self.key.clear();
        self.arguments = 0;
        self.state = State::After;
        Step::More
    }

    fn value(&mut self, c: char, sink: &mut Sink) -> Result<Step, &'static str> {
        if let Some(quote) = self.quote {
            self.value.push(c);
            if self.escaped {
                self.escaped = false;
            } else if c == '\\' {
                self.escaped = true;
            } else if c == quote {
                self.quote = None;
            }
            return Ok(Step::More);
        }
        match c {
            ',' | ')' if self.depth == 0 => {
                let json = literal(self.value.trim())?;
                let comma = if self.arguments == 0 { "{" } else { ", " };
                sink.arguments(&format!("{comma}{}: {json}", values::quoted(&self.key)));
                self.arguments += 1;
                self.key.clear();
                self.value.clear();
                self.state = State::Key;
                return Ok(if c == ')' { self.end_call(sink) } else { Step::More });
            }
            '[' | '{' | '(' => self.depth += 1,
            ']' | '}' | ')' => {
                self.depth = self.depth.checked_sub(1).ok_or("brackets in the arguments don't match")?;
            }
            '"' | '\'' => self.quote = Some(c),
            _ => {}
        }
        self.value.push(c);
        Ok(Step::More)
    }

    fn step(&mut self, c: char, cx: &Context, sink: &mut Sink) -> Result<Step, &'static str> {
        match self.state {
            State::Over => return Ok(Step::DoneBefore),
            State::Before if c.is_whitespace() => {}
            State::Before if c == '[' && !self.in_list => self.in_list = true,
            State::Before => {
                self.state = State::Name;
                return self.step(c, cx, sink);
            }
            State::Name if c == '(' => {
                // Llama calls its own tools as methods: `brave_search.call(query="x")`.
                let name = self.name.strip_suffix(".call").unwrap_or(&self.name);
                if name.is_empty() || (self.known_only && cx.tool(name).is_none()) {
                    return Err("no tool has this name");
                }
                self.name.truncate(name.len());
                self.state = State::Key;
            }
            State::Name => {
                let fits = c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
                if !fits || self.name.len() > MAX_NAME {
                    return Err("this is not a call of a function");
                }
                self.name.push(c);
            }
            State::Key => match c {
                ')' if self.key.is_empty() => {
                    self.start(sink);
                    return Ok(self.end_call(sink));
                }
                '=' if !self.key.is_empty() => {
                    self.start(sink);
                    self.state = State::Value;
                }
                c if c.is_whitespace() => {}
                c if (c.is_alphanumeric() || c == '_') && self.key.len() < MAX_NAME => self.key.push(c),
                _ => return Err("an argument has no name"),
            },
            State::Value => return self.value(c, sink),
            State::After => match c {
                ']' if self.in_list => {
                    self.state = State::Over;
                    return Ok(Step::Done);
                }
                ',' | ';' => self.state = State::Before,
                '\n' if !self.in_list => self.state = State::Before,
                c if c.is_whitespace() => {}
                _ if self.in_list => return Err("between calls stands something that is none"),
                _ => {
                    self.state = State::Over;
                    return Ok(Step::DoneBefore);
                }
            },
        }
        Ok(Step::More)
    }
}

impl CallParser for PythonCalls {
    fn feed(&mut self, c: char, cx: &Context, sink: &mut Sink) -> Step {
        if self.state == State::Before && !self.in_list && sink.ended() > 0 && matches!(c, '`' | '<') {
            self.state = State::Over;
            return Step::DoneBefore;
        }
        self.step(c, cx, sink).unwrap_or_else(Step::Fail)
    }

    fn finish(&mut self, _: &Context, sink: &mut Sink) -> Step {
        match self.state {
            State::Over | State::After => Step::Done,
            State::Before if sink.ended() > 0 => Step::Done,
            _ => Step::Fail("the call was cut off"),
        }
    }
}

/// A Python literal as JSON text.
///
/// # Errors
/// What stops it from being a literal.
pub(super) fn literal(text: &str) -> Result<String, &'static str> {
    let mut reader = Reader { rest: text, out: String::new() };
    reader.value(0)?;
    reader.skip();
    if reader.rest.is_empty() { Ok(reader.out) } else { Err("an argument is not a Python literal") }
}

struct Reader<'a> {
    rest: &'a str,
    out: String,
}

impl Reader<'_> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, token: &str) -> bool {
        self.skip();
        let Some(rest) = self.rest.strip_prefix(token) else { return false };
        self.rest = rest;
        true
    }

    fn value(&mut self, depth: usize) -> Result<(), &'static str> {
        if depth > MAX_DEPTH {
            return Err("an argument is nested too deeply");
        }
        self.skip();
        match self.rest.chars().next().ok_or("an argument has no value")? {
            '[' => self.items('[', ']', depth),
            '(' => self.items('(', ')', depth),
            '{' => self.dict(depth),
            quote @ ('"' | '\'') => self.string(quote),
            _ => self.word(),
        }
    }

    fn items(&mut self, open: char, close: char, depth: usize) -> Result<(), &'static str> {
        self.eat(open.encode_utf8(&mut [0; 4]));
        self.out.push('[');
        let mut first = true;
        while !self.eat(close.encode_utf8(&mut [0; 4])) {
            if !first {
                self.out.push_str(", ");
            }
            first = false;
            self.value(depth + 1)?;
            if !self.eat(",") {
                self.skip();
                if !self.rest.starts_with(close) {
                    return Err("a list in the arguments doesn't end");
                }
            }
        }
        self.out.push(']');
        Ok(())
    }

    fn dict(&mut self, depth: usize) -> Result<(), &'static str> {
        self.eat("{");
        self.out.push('{');
        let mut first = true;
        while !self.eat("}") {
            if !first {
                self.out.push_str(", ");
            }
            first = false;
            self.skip();
            let quote = self.rest.chars().next().filter(|c| matches!(c, '"' | '\''));
            self.string(quote.ok_or("a key in the arguments is not a string")?)?;
            if !self.eat(":") {
                return Err("a key in the arguments has no value");
            }
            self.out.push_str(": ");
            self.value(depth + 1)?;
            if !self.eat(",") {
                self.skip();
                if !self.rest.starts_with('}') {
                    return Err("a dictionary in the arguments doesn't end");
                }
            }
        }
        self.out.push('}');
        Ok(())
    }

    fn string(&mut self, quote: char) -> Result<(), &'static str> {
        let mut chars = self.rest[1..].chars();
        let mut text = String::new();
        loop {
            match chars.next().ok_or("a string in the arguments doesn't end")? {
                '\\' => match chars.next().ok_or("a string in the arguments doesn't end")? {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    '\n' => {}
                    'x' => text.push(code(&mut chars, 2)?),
                    'u' => text.push(code(&mut chars, 4)?),
                    c @ ('\\' | '\'' | '"') => text.push(c),
                    c => text.extend(['\\', c]),
                },
                c if c == quote => break,
                c => text.push(c),
            }
        }
        self.rest = chars.as_str();
        self.out.push_str(&values::quoted(&text));
        Ok(())
    }

    fn word(&mut self) -> Result<(), &'static str> {
        let end = self.rest.find([',', ']', '}', ')', ':']).unwrap_or(self.rest.len());
        let word = self.rest[..end].trim();
        self.rest = &self.rest[end..];
        let json = match word {
            "True" | "true" => "true",
            "False" | "false" => "false",
            "None" | "null" => "null",
            number if serde_json::from_str::<serde_json::Number>(number).is_ok() => number,
            _ => return Err("an argument is not a Python literal"),
        };
        self.out.push_str(json);
        Ok(())
    }
}

fn code(chars: &mut std::str::Chars<'_>, digits: usize) -> Result<char, &'static str> {
    let mut n = 0;
    for _ in 0..digits {
        let digit = chars.next().and_then(|c| c.to_digit(16));
        n = n * 16 + digit.ok_or("a string in the arguments has an escape without its digits")?;
    }
    Ok(char::from_u32(n).unwrap_or(char::REPLACEMENT_CHARACTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_become_json() {
        for (python, json) in [
            ("'it\\'s'", "\"it's\""),
            ("[1, -2.5, (True, None),]", "[1, -2.5, [true, null]]"),
            ("{'a': \"b\\n\", \"c\": {}}", "{\"a\": \"b\\n\", \"c\": {}}"),
            ("'\\u00e9\\x41'", "\"éA\""),
        ] {
            assert_eq!(literal(python).unwrap(), json);
        }
        for wrong in ["f(1)", "[1", "'a", "{1: 2}", "1 + 1", "", "é", "[,]", "'\\u12'"] {
            assert!(literal(wrong).is_err(), "{wrong}");
        }
        assert!(literal(&"[".repeat(100_000)).is_err());
    }
}
