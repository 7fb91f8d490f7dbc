//! Harmony, the format of gpt-oss: an answer is several messages, each with a header that names its channel and, for
//! calls, a recipient.
//!
//! ```text
//! <|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{…}<|call|>
//! ```
//!
//! Invariant: headers are never shown. The recipient may stand in the role or in the channel, before or after the word for
//! the content's type; the analysis channel is reasoning, everything else without a recipient is text.

use super::{
    call::MAX_NAME,
    events::Sink,
    json::{JsonScanner, Scan},
    marker::{Context, Held},
};

const START: &str = "<|start|>";
const CHANNEL: &str = "<|channel|>";
const CONSTRAIN: &str = "<|constrain|>";
const MESSAGE: &str = "<|message|>";

pub(super) const MARKERS: [&str; 7] =
    [START, CHANNEL, CONSTRAIN, MESSAGE, "<|end|>", "<|call|>", "<|return|>"];

/// How a header begins before its channel: the role, or the recipient.
const ROLES: [&str; 3] = ["assistant", "to=", "functions."];

#[derive(Debug)]
enum State {
    Header,
    Text,
    Reasoning,
    Call { name: String, scanner: JsonScanner, started: bool },
    Broken(&'static str),
}

#[derive(Debug)]
pub(super) struct Harmony {
    state: State,
    held: Held,
    role: String,
    channel: Option<String>,
    /// The message so far, header included, for a call that fails.
    raw: String,
}

impl Harmony {
    pub(super) fn new() -> Harmony {
        Harmony {
            state: State::Header,
            held: Held::default(),
            role: String::new(),
            channel: None,
            raw: String::new(),
        }
    }

    pub(super) fn feed(&mut self, c: char, cx: &Context, sink: &mut Sink) {
        let mut held = std::mem::take(&mut self.held);
        let found = held.feed(c, cx, &MARKERS, |c| self.character(c, sink));
        self.held = held;
        if let Some(marker) = found {
            self.marker(marker, sink);
        }
    }

    fn character(&mut self, c: char, sink: &mut Sink) {
        match &mut self.state {
            State::Header => {
                self.raw.push(c);
                let text = self.channel.as_mut().unwrap_or(&mut self.role);
                text.push(c);
                let too_long = text.len() > MAX_NAME;
                let role = self.role.trim_start();
                let stranger = self.channel.is_none()
                    && !ROLES.iter().any(|r| r.starts_with(role) || role.starts_with(r));
                if too_long || stranger {
                    // The model has left the format: what it says is still said.
                    sink.text(&std::mem::take(&mut self.raw));
                    self.state = State::Text;
                }
            }
            State::Text => sink.text(c.encode_utf8(&mut [0; 4])),
            State::Reasoning => sink.reasoning(c.encode_utf8(&mut [0; 4])),
            State::Broken(_) => self.raw.push(c),
            State::Call { .. } => self.call_character(c, sink),
        }
    }

    fn call_character(&mut self, c: char, sink: &mut Sink) {
        let State::Call { name, scanner, started } = &mut self.state else { return };
        self.raw.push(c);
        if !*started {
            if c.is_whitespace() {
                return;
            }
            if c != '{' {
                // Code for a tool of the model's own, not a call of a function.
                self.state = self.prose();
                let body = self.raw.rsplit(MESSAGE).next().unwrap_or_default().to_owned();
                body.chars().for_each(|c| self.character(c, sink));
                return;
            }
            sink.start(None, name);
            *started = true;
        }
        let mut text = String::new();
        match scanner.feed(c, &mut text) {
            Ok(Scan::More | Scan::Done) => sink.arguments(&text),
            Ok(Scan::DoneBefore) if c.is_whitespace() => {}
            Ok(Scan::DoneBefore) => {
                self.state = State::Broken("the arguments are followed by something else");
            }
            Err(reason) => self.state = State::Broken(reason),
        }
    }

    fn marker(&mut self, marker: &'static str, sink: &mut Sink) {
        if matches!(self.state, State::Header) {
            self.raw.push_str(marker);
            match marker {
                CHANNEL => self.channel = Some(String::new()),
                // The type of the content is a word of its own, also where it is written without a space.
                CONSTRAIN => self.channel.as_mut().unwrap_or(&mut self.role).push_str(" type="),
                MESSAGE => self.begin_body(),
                START => self.begin_header(marker),
                _ => self.begin_header(""),
            }
            return;
        }
        if marker == MESSAGE || marker == CONSTRAIN {
            return;
        }
        self.end_body(sink);
        self.begin_header(marker);
        if marker == CHANNEL {
            self.channel = Some(String::new());
        }
    }

    fn begin_header(&mut self, marker: &str) {
        self.state = State::Header;
        self.role.clear();
        self.channel = None;
        self.raw.clear();
        self.raw.push_str(marker);
    }

    fn recipient(&self) -> Option<String> {
        let channel = self.channel.as_deref().unwrap_or_default();
        let mut words = self.role.split_whitespace().chain(channel.split_whitespace());
        let named = words.find_map(|word| {
            let named = word.strip_prefix("to=");
            named.or_else(|| word.starts_with("functions.").then_some(word)).map(str::to_owned)
        })?;
        let name = named.strip_prefix("functions.").unwrap_or(&named);
        (!matches!(name, "" | "assistant" | "user" | "all")).then(|| name.to_owned())
    }

    fn prose(&self) -> State {
        let channel = self.channel.as_deref().unwrap_or_default();
        if channel.split_whitespace().next() == Some("analysis") { State::Reasoning } else { State::Text }
    }

    fn begin_body(&mut self) {
        self.state = match self.recipient() {
            Some(name) => State::Call { name, scanner: JsonScanner::new(), started: false },
            None => self.prose(),
        };
    }

    fn end_body(&mut self, sink: &mut Sink) {
        match &self.state {
            State::Call { name, started: false, .. } => {
                sink.start(None, name);
                sink.arguments("{}");
                sink.end();
            }
            State::Call { scanner, .. } if scanner.complete() => sink.end(),
            State::Call { .. } => sink.fail("the arguments are not complete", std::mem::take(&mut self.raw)),
            State::Broken(reason) => sink.fail(reason, std::mem::take(&mut self.raw)),
            _ => {}
        }
    }

    pub(super) fn finish(&mut self, sink: &mut Sink) {
        let mut held = std::mem::take(&mut self.held);
        // Half a marker is text in a message, and nothing in a header.
        if matches!(self.state, State::Header) {
            held.release(|c| self.raw.push(c));
        } else {
            held.release(|c| self.character(c, sink));
        }
        match &self.state {
            State::Header if self.raw.contains("to=") || self.recipient().is_some() => {
                sink.fail("the call was cut off", std::mem::take(&mut self.raw));
            }
            State::Call { started: false, .. } => {
                sink.fail("the call was cut off", std::mem::take(&mut self.raw));
            }
            State::Call { scanner, .. } if !scanner.complete() => {
                sink.fail("the call was cut off", std::mem::take(&mut self.raw));
            }
            State::Header => {}
            _ => self.end_body(sink),
        }
        self.begin_header("");
    }
}
