//! Calls that are tags around plain text: Qwen 3 Coder, MiniMax, GLM and DeepSeek 3.2.
//!
//! Invariant: a parameter that can only be a string goes out as it comes, escaped; others wait for their end, where the
//! schema decides what the text means. The object is written as it grows, so it is valid JSON exactly when the call ends.

use super::{
    call::{CallParser, MAX_NAME, Step},
    events::Sink,
    marker::{Context, Held},
    tool::Types,
    values,
};

/// The tags of a dialect.
#[derive(Debug)]
pub(super) struct Tags {
    /// Before a name; empty where the name stands bare.
    pub(super) name: &'static str,
    /// Each of these ends a name.
    pub(super) name_end: &'static [&'static str],
    pub(super) key: &'static str,
    /// Each of these ends a key; the flag says that the value is a string, or that it isn't, whatever the schema says.
    pub(super) key_end: &'static [(&'static str, Option<bool>)],
    /// Between the end of a key and its value, where there is such a tag.
    pub(super) value: Option<&'static str>,
    pub(super) value_end: &'static str,
    /// Ends a call.
    pub(super) end: &'static str,
    /// Ends all calls; empty where the end of a call does.
    pub(super) close: &'static str,
    /// One line break on each side of a value belongs to the tags.
    pub(super) trim_lines: bool,
}

pub(super) static QWEN: Tags = Tags {
    name: "<function=",
    name_end: &[">"],
    key: "<parameter=",
    key_end: &[(">", None)],
    value: None,
    value_end: "</parameter>",
    end: "</function>",
    close: "</tool_call>",
    trim_lines: true,
};

pub(super) static MINIMAX: Tags = Tags {
    name: "<invoke name=\"",
    name_end: &["\">"],
    key: "<parameter name=\"",
    key_end: &[("\">", None)],
    value: None,
    value_end: "</parameter>",
    end: "</invoke>",
    close: "</minimax:tool_call>",
    trim_lines: true,
};

pub(super) static GLM: Tags = Tags {
    name: "",
    name_end: &["\n", "<arg_key>", "</tool_call>"],
    key: "<arg_key>",
    key_end: &[("</arg_key>", None)],
    value: Some("<arg_value>"),
    value_end: "</arg_value>",
    end: "</tool_call>",
    close: "",
    trim_lines: false,
};

pub(super) static DEEPSEEK: Tags = Tags {
    name: "<｜DSML｜invoke name=\"",
    name_end: &["\">"],
    key: "<｜DSML｜parameter name=\"",
    key_end: &[("\" string=\"true\">", Some(true)), ("\" string=\"false\">", Some(false)), ("\">", None)],
    value: None,
    value_end: "</｜DSML｜parameter>",
    end: "</｜DSML｜invoke>",
    close: "</｜DSML｜function_calls>",
    trim_lines: false,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    BeforeName,
    Name,
    Body,
    Key,
    BeforeValue,
    Value,
    Over,
}

/// Reads the calls between two tags.
#[derive(Debug)]
pub(super) struct TagCalls {
    tags: &'static Tags,
    key_ends: Vec<&'static str>,
    state: State,
    held: Held,
    name: String,
    key: String,
    value: String,
    /// The value goes out as it comes.
    streams: bool,
    types: Types,
    /// Whether the value has had a character.
    begun: bool,
    /// A line break that goes out only if more of the value follows.
    line_break: bool,
    parameters: usize,
    calls: usize,
}

impl TagCalls {
    pub(super) fn new(tags: &'static Tags) -> TagCalls {
        TagCalls {
            tags,
            key_ends: tags.key_end.iter().map(|(end, _)| *end).collect(),
            state: if tags.name.is_empty() { State::Name } else { State::BeforeName },
            held: Held::default(),
            name: String::new(),
            key: String::new(),
            value: String::new(),
            streams: false,
            types: Types::default(),
            begun: false,
            line_break: false,
            parameters: 0,
            calls: 0,
        }
    }

    fn between(&mut self, c: char, cx: &Context, sink: &mut Sink) -> Step {
        let tags = self.tags;
        let all: [&'static str; 2] = match self.state {
            State::BeforeName => [tags.name, tags.close],
            State::Body => [tags.key, tags.end],
            _ => [tags.value.unwrap_or(tags.key), tags.value.unwrap_or(tags.key)],
        };
        let mut stray = false;
        let found = self.held.feed(c, cx, &all, |c| stray |= !c.is_whitespace());
        if stray {
            return Step::Fail("between a call's tags stands something that belongs to none");
        }
        match found {
            None => {}
            Some(tag) if self.state == State::BeforeName && tag == tags.close => {
                self.state = State::Over;
                return if self.calls > 0 {
                    Step::Done
                } else {
                    Step::Fail("there is no call between the tags")
                };
            }
            Some(_) if self.state == State::BeforeName => self.state = State::Name,
            Some(_) if self.state == State::BeforeValue => self.begin_value(cx, None),
            Some(tag) if tag == tags.end => return self.end_call(sink),
            Some(_) => self.state = State::Key,
        }
        Step::More
    }

    fn end_call(&mut self, sink: &mut Sink) -> Step {
        sink.arguments(if self.parameters == 0 { "{}" } else { "}" });
        sink.end();
        self.calls += 1;
        self.name.clear();
        self.parameters = 0;
        self.state = State::BeforeName;
        if self.tags.close.is_empty() {
            self.state = State::Over;
            return Step::Done;
        }
        Step::More
    }

    fn end_name(&mut self, by: &'static str, sink: &mut Sink) -> Step {
        let name = self.name.trim();
        if name.is_empty() && by == "\n" {
            return Step::More;
        }
        if name.is_empty() || name.contains(['<', '{', '"']) {
            return Step::Fail("a call has no name");
        }
        sink.start(None, name);
        self.state = State::Body;
        if by == self.tags.end {
            return self.end_call(sink);
        }
        if by == self.tags.key {
            self.state = State::Key;
        }
        Step::More
    }

    fn begin_value(&mut self, cx: &Context, is_string: Option<bool>) {
        self.types = match is_string {
            Some(true) => Types { string: true, ..Types::default() },
            Some(false) => Types { string: false, ..Types::of_parameter(None, "") },
            None => Types::of_parameter(cx.tool(self.name.trim()), &self.key),
        };
        self.streams = self.types.only_string();
        self.begun = false;
        self.line_break = false;
        self.value.clear();
        self.state = State::Value;
    }

    fn end_key(&mut self, by: &'static str, cx: &Context, sink: &mut Sink) {
        let comma = if self.parameters == 0 { "{" } else { ", " };
        let key = self.key.trim().to_owned();
        sink.arguments(&format!("{comma}{}: ", values::quoted(&key)));
        self.key = key;
        self.parameters += 1;
        if self.tags.value.is_some() {
            self.state = State::BeforeValue;
            return;
        }
        let is_string = self.tags.key_end.iter().find(|(end, _)| *end == by).and_then(|(_, is)| *is);
        self.begin_value(cx, is_string);
        if self.streams {
            sink.arguments("\"");
        }
    }

    fn value_char(&mut self, c: char, out: &mut String) {
        let first = !std::mem::replace(&mut self.begun, true);
        if self.tags.trim_lines {
            if std::mem::take(&mut self.line_break) {
                self.push_value('\n', out);
            }
            if c == '\n' {
                self.line_break = !first;
                return;
            }
        }
        self.push_value(c, out);
    }

    fn push_value(&mut self, c: char, out: &mut String) {
        if self.streams {
            values::escape(c, out);
        } else {
            self.value.push(c);
        }
    }

    fn value(&mut self, c: char, cx: &Context, sink: &mut Sink) -> Step {
        let mut held = std::mem::take(&mut self.held);
        let mut out = String::new();
        let found = held.feed(c, cx, &[self.tags.value_end], |c| self.value_char(c, &mut out));
        self.held = held;
        sink.arguments(&out);
        if found.is_some() {
            if self.streams {
                sink.arguments("\"");
            } else {
                sink.arguments(&values::typed(&self.value, self.types));
            }
            self.state = State::Body;
        }
        Step::More
    }
}

impl CallParser for TagCalls {
    fn feed(&mut self, c: char, cx: &Context, sink: &mut Sink) -> Step {
        match self.state {
            State::Over => Step::DoneBefore,
            State::Value => self.value(c, cx, sink),
            State::Name => {
                let found = self.held.feed(c, cx, self.tags.name_end, |c| self.name.push(c));
                match found {
                    Some(by) => self.end_name(by, sink),
                    None if self.name.len() > MAX_NAME => Step::Fail("a call's name is too long"),
                    None => Step::More,
                }
            }
            State::Key => {
                let found = self.held.feed(c, cx, &self.key_ends, |c| self.key.push(c));
                match found {
                    Some(by) => {
                        self.end_key(by, cx, sink);
                        Step::More
                    }
                    None if self.key.len() > MAX_NAME => Step::Fail("a parameter's name is too long"),
                    None => Step::More,
                }
            }
            State::BeforeName | State::Body | State::BeforeValue => {
                let before = self.state;
                if before == State::Body && self.held.is_empty() {
                    self.key.clear();
                }
                let step = self.between(c, cx, sink);
                if before == State::BeforeValue && self.state == State::Value && self.streams {
                    sink.arguments("\"");
                }
                step
            }
        }
    }

    fn finish(&mut self, _: &Context, _: &mut Sink) -> Step {
        match self.state {
            State::Over => Step::Done,
            State::BeforeName if self.calls > 0 => Step::Done,
            _ => Step::Fail("the call was cut off"),
        }
    }
}
