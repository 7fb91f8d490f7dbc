//! What a splitter says, and the list in which it gathers it.
//!
//! Invariant: neighbouring pieces of the same text, reasoning or arguments are one event, so a list of events never says
//! how the characters came.

/// A piece of a model's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Text for the reader.
    Text(String),
    /// The model's reasoning, which isn't part of the answer.
    Reasoning(String),
    /// A call begins.
    ToolCallStart {
        /// Place of the call in the answer, from 0.
        index: usize,
        /// The id that the model gave it; few dialects have one.
        id: Option<String>,
        /// The tool's name as the model wrote it, whether such a tool exists or not.
        name: String,
    },
    /// More of a call's arguments. All pieces together are the JSON text of an object, if the call ends.
    ToolCallArguments {
        /// The call.
        index: usize,
        /// JSON text.
        delta: String,
    },
    /// A call is complete, and its arguments are valid JSON.
    ToolCallEnd {
        /// The call.
        index: usize,
    },
    /// A call was cut off or is not of the dialect's form. It will not end; it may not even have started.
    ToolCallFailed {
        /// The call.
        index: usize,
        /// What is wrong with it.
        reason: &'static str,
        /// The call as the model wrote it, markers included.
        raw: String,
    },
}

/// Gathers events.
#[derive(Debug, Default)]
pub(super) struct Sink {
    events: Vec<Event>,
    /// Calls begun so far.
    calls: usize,
    open: bool,
    ended: usize,
}

impl Sink {
    pub(super) fn take(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    pub(super) fn text(&mut self, piece: &str) {
        match self.events.last_mut() {
            _ if piece.is_empty() => {}
            Some(Event::Text(text)) => text.push_str(piece),
            _ => self.events.push(Event::Text(piece.to_owned())),
        }
    }

    pub(super) fn reasoning(&mut self, piece: &str) {
        match self.events.last_mut() {
            _ if piece.is_empty() => {}
            Some(Event::Reasoning(text)) => text.push_str(piece),
            _ => self.events.push(Event::Reasoning(piece.to_owned())),
        }
    }

    pub(super) fn start(&mut self, id: Option<String>, name: &str) {
        self.events.push(Event::ToolCallStart { index: self.calls, id, name: name.to_owned() });
        self.calls += 1;
        self.open = true;
    }

    pub(super) fn arguments(&mut self, piece: &str) {
        let Some(open) = self.calls.checked_sub(1).filter(|_| !piece.is_empty()) else { return };
        match self.events.last_mut() {
            Some(Event::ToolCallArguments { index, delta }) if *index == open => delta.push_str(piece),
            _ => self.events.push(Event::ToolCallArguments { index: open, delta: piece.to_owned() }),
        }
    }

    pub(super) fn end(&mut self) {
        self.open = false;
        self.ended += 1;
        self.events.push(Event::ToolCallEnd { index: self.calls.saturating_sub(1) });
    }

    /// The open call, or the one that was about to begin, will not end.
    pub(super) fn fail(&mut self, reason: &'static str, raw: String) {
        if !self.open {
            self.calls += 1;
        }
        self.open = false;
        self.events.push(Event::ToolCallFailed { index: self.calls - 1, reason, raw });
    }

    /// Whether a call has begun and not ended.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// Calls that have ended.
    pub(super) fn ended(&self) -> usize {
        self.ended
    }
}
