//! Calls whose name and arguments stand between tokens of their own: DeepSeek and Kimi in a section of calls, Mistral's
//! newer form one after the other.
//!
//! Invariant: arguments are one JSON object and go out as they come.

use super::{
    call::{CallParser, MAX_NAME, Step},
    events::Sink,
    json::{JsonScanner, Scan},
    marker::{Context, Held},
};

/// The tokens of a section.
#[derive(Debug)]
pub(super) struct Tokens {
    /// Before a call.
    pub(super) call: &'static str,
    /// Between name and arguments.
    pub(super) separator: &'static str,
    pub(super) call_end: &'static str,
    /// Ends the section.
    pub(super) close: &'static str,
}

pub(super) const DEEPSEEK: Tokens = Tokens {
    call: "<｜tool▁call▁begin｜>",
    separator: "<｜tool▁sep｜>",
    call_end: "<｜tool▁call▁end｜>",
    close: "<｜tool▁calls▁end｜>",
};

pub(super) const KIMI: Tokens = Tokens {
    call: "<|tool_call_begin|>",
    separator: "<|tool_call_argument_begin|>",
    call_end: "<|tool_call_end|>",
    close: "<|tool_calls_section_end|>",
};

pub(super) const DEEPSEEK_MARKERS: [&str; 4] =
    [DEEPSEEK.call, DEEPSEEK.separator, DEEPSEEK.call_end, DEEPSEEK.close];

pub(super) const KIMI_MARKERS: [&str; 4] = [KIMI.call, KIMI.separator, KIMI.call_end, KIMI.close];

#[derive(Debug)]
enum State {
    Between,
    /// The name, or the word `function` where the name follows on the next line.
    Head,
    Name,
    /// Before the arguments: white space, or the opening of a fence.
    Fence(usize),
    Arguments(JsonScanner),
    AfterArguments,
    Over,
}

/// Reads a section of calls.
#[derive(Debug)]
pub(super) struct SectionCalls {
    tokens: &'static Tokens,
    state: State,
    held: Held,
    head: String,
    calls: usize,
}

impl SectionCalls {
    pub(super) fn new(tokens: &'static Tokens) -> SectionCalls {
        SectionCalls { tokens, state: State::Between, held: Held::default(), head: String::new(), calls: 0 }
    }

    fn start(&mut self, sink: &mut Sink) -> Result<(), &'static str> {
        let head = self.head.trim();
        // Kimi's ids say the name: `functions.get_weather:0`.
        let (id, name) = match head.strip_prefix("functions.").and_then(|rest| rest.rsplit_once(':')) {
            Some((name, number)) if number.bytes().all(|b| b.is_ascii_digit()) => {
                (Some(head.to_owned()), name)
            }
            _ => (None, head),
        };
        if name.is_empty() {
            return Err("a call has no name");
        }
        sink.start(id, name);
        self.head.clear();
        Ok(())
    }

    fn step(&mut self, c: char, cx: &Context, sink: &mut Sink) -> Result<Step, &'static str> {
        let tokens = self.tokens;
        match &mut self.state {
            State::Between => {
                let mut stray = false;
                let markers = [tokens.call, tokens.close];
                let found = self.held.feed(c, cx, &markers, |c| stray |= !c.is_whitespace());
                if stray {
                    return Err("between calls stands something that is none");
                }
                match found {
                    None => {}
                    Some(token) if token == tokens.call => self.state = State::Head,
                    Some(_) if self.calls == 0 => return Err("there is no call in the section"),
                    Some(_) => {
                        self.state = State::Over;
                        return Ok(Step::Done);
                    }
                }
            }
            State::Head => {
                let head = &mut self.head;
                let found = self.held.feed(c, cx, &[tokens.separator], |c| head.push(c));
                if found.is_some() {
                    if head.trim() == "function" {
                        head.clear();
                        self.state = State::Name;
                    } else {
                        self.start(sink)?;
                        self.state = State::Fence(0);
                    }
                } else if head.len() > MAX_NAME {
                    return Err("a call's name is too long");
                }
            }
            State::Name if c == '\n' && !self.head.trim().is_empty() => {
                self.start(sink)?;
                self.state = State::Fence(0);
            }
            State::Name => {
                if self.head.len() > MAX_NAME {
                    return Err("a call's name is too long");
                }
                self.head.push(c);
            }
            State::Fence(n) => match c {
                '{' => {
                    let (mut scanner, mut text) = (JsonScanner::new(), String::new());
                    scanner.feed(c, &mut text)?;
                    sink.arguments(&text);
                    self.state = State::Arguments(scanner);
                }
                c if c.is_whitespace() => {}
                '`' | 'j' | 's' | 'o' | 'n' if *n < 7 => *n += 1,
                _ => return Err("a call's arguments are not a JSON object"),
            },
            State::Arguments(scanner) => {
                let mut text = String::new();
                let scan = scanner.feed(c, &mut text)?;
                sink.arguments(&text);
                if scan == Scan::Done {
                    sink.end();
                    self.calls += 1;
                    self.state = State::AfterArguments;
                }
            }
            State::AfterArguments => {
                let mut stray = false;
                let markers = [tokens.call_end, tokens.close];
                let found = self.held.feed(c, cx, &markers, |c| stray |= !(c.is_whitespace() || c == '`'));
                if stray {
                    self.state = State::Over;
                    return Ok(Step::DoneBefore);
                }
                match found {
                    None => {}
                    Some(token) if token == tokens.close => {
                        self.state = State::Over;
                        return Ok(Step::Done);
                    }
                    Some(_) => self.state = State::Between,
                }
            }
            State::Over => return Ok(Step::DoneBefore),
        }
        Ok(Step::More)
    }
}

impl CallParser for SectionCalls {
    fn feed(&mut self, c: char, cx: &Context, sink: &mut Sink) -> Step {
        self.step(c, cx, sink).unwrap_or_else(Step::Fail)
    }

    fn finish(&mut self, _: &Context, _: &mut Sink) -> Step {
        match self.state {
            State::Over | State::AfterArguments => Step::Done,
            State::Between if self.calls > 0 => Step::Done,
            _ => Step::Fail("the call was cut off"),
        }
    }
}

#[derive(Debug)]
enum Named {
    Name,
    Id,
    Arguments(JsonScanner),
    Over,
}

/// Reads `name[ARGS]{…}`, with `[CALL_ID]id` before the arguments where the model gives one.
#[derive(Debug)]
pub(super) struct NamedCall {
    state: Named,
    held: Held,
    name: String,
    id: String,
}

impl NamedCall {
    pub(super) fn new() -> NamedCall {
        NamedCall { state: Named::Name, held: Held::default(), name: String::new(), id: String::new() }
    }

    fn step(&mut self, c: char, cx: &Context, sink: &mut Sink) -> Result<Step, &'static str> {
        match &mut self.state {
            Named::Over => return Ok(Step::DoneBefore),
            Named::Arguments(scanner) => {
                if scanner.is_fresh() && !c.is_whitespace() && c != '{' {
                    return Err("a call's arguments are not a JSON object");
                }
                let mut text = String::new();
                let scan = scanner.feed(c, &mut text)?;
                sink.arguments(&text);
                if scan == Scan::Done {
                    sink.end();
                    self.state = Named::Over;
                    return Ok(Step::Done);
                }
            }
            Named::Name | Named::Id => {
                let in_name = matches!(self.state, Named::Name);
                let text = if in_name { &mut self.name } else { &mut self.id };
                let found = self.held.feed(c, cx, &["[ARGS]", "[CALL_ID]", "{"], |c| text.push(c));
                if text.len() > MAX_NAME || text.trim_start().contains(char::is_whitespace) {
                    return Err("a call has no name");
                }
                match found {
                    None => {}
                    Some("[CALL_ID]") if in_name => self.state = Named::Id,
                    Some("[CALL_ID]") => return Err("a call has two ids"),
                    Some(by) => {
                        if self.name.trim().is_empty() {
                            return Err("a call has no name");
                        }
                        let id = Some(self.id.trim().to_owned()).filter(|id| !id.is_empty());
                        sink.start(id, self.name.trim());
                        self.state = Named::Arguments(JsonScanner::new());
                        if by == "{" {
                            return self.step(c, cx, sink);
                        }
                    }
                }
            }
        }
        Ok(Step::More)
    }
}

impl CallParser for NamedCall {
    fn feed(&mut self, c: char, cx: &Context, sink: &mut Sink) -> Step {
        self.step(c, cx, sink).unwrap_or_else(Step::Fail)
    }

    fn finish(&mut self, _: &Context, _: &mut Sink) -> Step {
        if matches!(self.state, Named::Over) { Step::Done } else { Step::Fail("the call was cut off") }
    }
}
