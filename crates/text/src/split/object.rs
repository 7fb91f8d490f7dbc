//! Calls that are JSON objects with a name and arguments, alone or in a list: Hermes, Llama 3, Mistral's older form.
//!
//! Invariant: arguments go out as they come once the name is known; if the model writes them before the name, they wait.
//! The keys `parameters` and `args` mean `arguments`; arguments may be an object, an object written as a string, or null.

use super::{
    call::{CallParser, MAX_NAME, Step},
    events::Sink,
    json::{JsonScanner, Scan},
    marker::Context,
};

/// Bytes of arguments that wait for a name.
const MAX_WAITING: usize = 1 << 16;

const NOT_A_CALL: &str = "this is not an object with a name and arguments";

#[derive(Debug)]
enum State {
    /// Before an object.
    Before,
    /// In an object, before a key or its end.
    Key,
    /// In a key, or after it and before the colon.
    InKey(JsonScanner, String),
    Colon(Field),
    Value(Field, JsonScanner, String),
    Arguments(JsonScanner),
    /// After a value.
    Comma,
    /// In a list, after an object.
    Between,
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Name,
    Arguments,
    Id,
    Other,
}

/// Reads one object or one list of objects.
#[derive(Debug)]
pub(super) struct ObjectCalls {
    state: State,
    in_list: bool,
    /// Only names of tools that exist begin a call.
    known_only: bool,
    id: Option<String>,
    name: Option<String>,
    /// Arguments that wait for the name, and whether they are complete.
    waiting: String,
    has_arguments: bool,
    started: bool,
}

impl ObjectCalls {
    pub(super) fn new(known_only: bool) -> ObjectCalls {
        ObjectCalls {
            state: State::Before,
            in_list: false,
            known_only,
            id: None,
            name: None,
            waiting: String::new(),
            has_arguments: false,
            started: false,
        }
    }

    fn start_if_named(&mut self, sink: &mut Sink) {
        if let Some(name) = self.name.as_ref().filter(|_| !self.started) {
            sink.start(self.id.take(), name);
            self.started = true;
            sink.arguments(&std::mem::take(&mut self.waiting));
        }
    }

    fn arguments(&mut self, text: &str, sink: &mut Sink) -> Result<(), &'static str> {
        if self.started {
            sink.arguments(text);
        } else if self.waiting.len() + text.len() > MAX_WAITING {
            return Err("the arguments come before the name and are too long to wait for it");
        } else {
            self.waiting.push_str(text);
        }
        Ok(())
    }

    /// A field other than streamed arguments is complete; `json` is its value.
    fn field(&mut self, field: Field, json: &str, cx: &Context, sink: &mut Sink) -> Result<(), &'static str> {
        let value: serde_json::Value = serde_json::from_str(json).map_err(|_| NOT_A_CALL)?;
        match (field, value) {
            (Field::Other, _) => {}
            (Field::Id, value) => self.id = value.as_str().map(str::to_owned),
            (Field::Name, serde_json::Value::String(name)) => {
                if self.known_only && cx.tool(&name).is_none() {
                    return Err("no tool has this name");
                }
                self.name = Some(name);
                self.start_if_named(sink);
            }
            (Field::Arguments, serde_json::Value::Null) => {}
            (Field::Arguments, serde_json::Value::String(inner)) => {
                let object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&inner);
                if object.is_err() {
                    return Err("the arguments are a string that holds no JSON object");
                }
                self.has_arguments = true;
                self.arguments(&inner, sink)?;
            }
            _ => return Err(NOT_A_CALL),
        }
        Ok(())
    }

    fn close_object(&mut self, sink: &mut Sink) -> Step {
        if !self.started {
            return Step::Fail("a call has no name");
        }
        if !self.has_arguments {
            sink.arguments("{}");
        }
        sink.end();
        self.id = None;
        self.name = None;
        self.has_arguments = false;
        self.started = false;
        self.state = if self.in_list { State::Between } else { State::Over };
        if self.in_list { Step::More } else { Step::Done }
    }

    fn step(&mut self, c: char, cx: &Context, sink: &mut Sink) -> Result<Step, &'static str> {
        match &mut self.state {
            State::InKey(scanner, text) => {
                if scanner.feed(c, text)? == Scan::Done {
                    let key: String = serde_json::from_str(text).map_err(|_| NOT_A_CALL)?;
                    self.state = State::Colon(match key.as_str() {
                        "name" => Field::Name,
                        "arguments" | "parameters" | "args" if !self.has_arguments => Field::Arguments,
                        "id" => Field::Id,
                        _ => Field::Other,
                    });
                } else if text.len() > MAX_NAME {
                    return Err(NOT_A_CALL);
                }
            }
            State::Arguments(scanner) => {
                let mut text = String::new();
                if scanner.feed(c, &mut text)? == Scan::Done {
                    self.state = State::Comma;
                }
                self.arguments(&text, sink)?;
            }
            State::Value(field, scanner, text) => {
                let field = *field;
                if field == Field::Arguments && scanner.is_fresh() && c == '{' {
                    self.has_arguments = true;
                    self.state = State::Arguments(JsonScanner::new());
                    return self.step(c, cx, sink);
                }
                let scan = scanner.feed(c, text)?;
                if scan == Scan::More {
                    let short = matches!(field, Field::Name | Field::Id);
                    let too_long = text.len() > if short { MAX_NAME } else { MAX_WAITING };
                    return if too_long { Err(NOT_A_CALL) } else { Ok(Step::More) };
                }
                let text = std::mem::take(text);
                self.state = State::Comma;
                self.field(field, &text, cx, sink)?;
                if scan == Scan::DoneBefore {
                    return self.step(c, cx, sink);
                }
            }
            State::Over => return Ok(Step::DoneBefore),
            _ if c.is_whitespace() => {}
            State::Before | State::Between => match c {
                '{' => self.state = State::Key,
                '[' if !self.in_list => self.in_list = true,
                ',' if matches!(self.state, State::Between) => self.state = State::Before,
                ']' if self.in_list => {
                    self.state = State::Over;
                    return Ok(Step::Done);
                }
                _ => return Err(NOT_A_CALL),
            },
            State::Key => match c {
                '"' => {
                    let (mut scanner, mut text) = (JsonScanner::new(), String::new());
                    scanner.feed(c, &mut text)?;
                    self.state = State::InKey(scanner, text);
                }
                '}' => return Ok(self.close_object(sink)),
                _ => return Err(NOT_A_CALL),
            },
            State::Colon(field) => match c {
                ':' => self.state = State::Value(*field, JsonScanner::new(), String::new()),
                _ => return Err(NOT_A_CALL),
            },
            State::Comma => match c {
                ',' => self.state = State::Key,
                '}' => return Ok(self.close_object(sink)),
                _ => return Err(NOT_A_CALL),
            },
        }
        Ok(Step::More)
    }
}

impl CallParser for ObjectCalls {
    fn feed(&mut self, c: char, cx: &Context, sink: &mut Sink) -> Step {
        self.step(c, cx, sink).unwrap_or_else(Step::Fail)
    }

    fn finish(&mut self, _: &Context, sink: &mut Sink) -> Step {
        match self.state {
            State::Over => Step::Done,
            State::Between if sink.ended() > 0 => Step::Done,
            _ => Step::Fail("the call was cut off"),
        }
    }
}
