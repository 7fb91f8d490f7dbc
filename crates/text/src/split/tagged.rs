//! The driver of dialects in which text, reasoning and calls alternate, told apart by markers.
//!
//! It takes one character at a time, so that events never depend on how the text was cut. Invariant: every character of the
//! model is given out as text or reasoning, or is part of a call, or is a marker or white space around one. A call that fails
//! before it has begun is text, unchanged; one that fails later is an event that carries its text.

use std::collections::VecDeque;

use super::{
    call::{CallParser, Step},
    events::Sink,
    marker::{Context, Held},
    outline::{self, Outline},
};

/// A failed call is searched for another call in it up to this many characters, which bounds the work of nested failures.
const MAX_SECOND_LOOK: usize = 1024;

type Marked = (char, bool);

#[derive(Debug)]
enum State {
    Text,
    Reasoning,
    /// The opener's length in `raw`, which is the text of the call so far.
    Call {
        parser: Box<dyn CallParser>,
        opener: usize,
        raw: Vec<Marked>,
    },
    /// After a call: white space and closing markers mean nothing.
    After,
    /// After a call that failed, until a marker that ends it.
    Broken {
        reason: &'static str,
        raw: Vec<Marked>,
    },
}

#[derive(Debug)]
pub(super) struct Tagged {
    outline: &'static Outline,
    state: State,
    held: Held,
    queue: VecDeque<Marked>,
    /// White space that goes out only if text follows.
    spaces: String,
    /// White space means nothing until text comes.
    drop_spaces: bool,
    /// No text has come since the start or the last call.
    at_start: bool,
    /// Markers that end text, without and with the one that opens reasoning.
    in_text: Vec<&'static str>,
    at_text_start: Vec<&'static str>,
    after_failure: Vec<&'static str>,
}

impl Tagged {
    pub(super) fn new(outline: &'static Outline, has_tools: bool) -> Tagged {
        let openers = outline.openers.iter().filter(|_| has_tools).map(|(marker, _)| *marker);
        let in_text: Vec<_> = openers.clone().collect();
        let at_text_start: Vec<_> = openers.clone().chain(outline.think.map(|(open, _)| open)).collect();
        let after_failure = openers.chain(outline.closers.iter().copied()).collect();
        Tagged {
            outline,
            state: State::Text,
            held: Held::default(),
            queue: VecDeque::new(),
            spaces: String::new(),
            drop_spaces: false,
            at_start: true,
            in_text: if outline.think_anywhere { at_text_start.clone() } else { in_text },
            at_text_start,
            after_failure,
        }
    }

    /// All markers of the dialect.
    pub(super) fn markers(outline: &Outline) -> impl Iterator<Item = &'static str> {
        let think = outline.think.into_iter().flat_map(|(open, close)| [open, close]);
        outline.openers.iter().map(|(m, _)| *m).chain(outline.closers.iter().copied()).chain(think)
    }

    /// The prompt has opened the reasoning already.
    pub(super) fn open_reasoning(&mut self) {
        self.state = State::Reasoning;
        self.drop_spaces = true;
    }

    /// The prompt has ended the reasoning; what follows begins with text.
    pub(super) fn after_reasoning(&mut self) {
        self.drop_spaces = true;
    }

    pub(super) fn feed(&mut self, c: char, cx: &mut Context, sink: &mut Sink) {
        self.queue.push_back((c, cx.in_control));
        let control = cx.in_control;
        while let Some((c, in_control)) = self.queue.pop_front() {
            cx.in_control = in_control;
            self.step(c, cx, sink);
        }
        cx.in_control = control;
    }

    fn step(&mut self, c: char, cx: &Context, sink: &mut Sink) {
        match std::mem::replace(&mut self.state, State::After) {
            State::Text => self.text(c, cx, sink),
            State::Reasoning => self.reasoning(c, cx, sink),
            State::Call { parser, opener, raw } => self.call(c, parser, opener, raw, cx, sink),
            State::After => self.after(c, cx),
            State::Broken { reason, raw } => self.broken(c, reason, raw, cx, sink),
        }
    }

    fn text(&mut self, c: char, cx: &Context, sink: &mut Sink) {
        if self.at_start
            && self.outline.bare
            && !cx.tools.is_empty()
            && self.held.is_empty()
            && matches!(c, '{' | '[')
        {
            self.begin_call("", outline::bare());
            self.step(c, cx, sink);
            return;
        }
        self.state = State::Text;
        let mut held = std::mem::take(&mut self.held);
        // Markers are tried at the first character that may be text, which ends the start.
        let markers = std::mem::take(if self.at_start { &mut self.at_text_start } else { &mut self.in_text });
        let at_start = self.at_start;
        let found = held.feed(c, cx, &markers, |c| self.put(c, sink));
        *(if at_start { &mut self.at_text_start } else { &mut self.in_text }) = markers;
        self.held = held;
        let Some(marker) = found else { return };
        match self.outline.openers.iter().find(|(opener, _)| *opener == marker) {
            Some((opener, make)) => self.begin_call(opener, make()),
            None => {
                self.spaces.clear();
                self.open_reasoning();
            }
        }
    }

    fn begin_call(&mut self, opener: &'static str, parser: Box<dyn CallParser>) {
        let raw: Vec<Marked> = opener.chars().map(|c| (c, true)).collect();
        self.state = State::Call { parser, opener: raw.len(), raw };
    }

    fn reasoning(&mut self, c: char, cx: &Context, sink: &mut Sink) {
        self.state = State::Reasoning;
        let close = self.outline.think.map_or("", |(_, close)| close);
        let mut held = std::mem::take(&mut self.held);
        let found = held.feed(c, cx, &[close], |c| self.put_reasoning(c, sink));
        self.held = held;
        if found.is_some() {
            self.spaces.clear();
            self.drop_spaces = true;
            self.at_start = true;
            self.state = State::Text;
        }
    }

    fn put(&mut self, c: char, sink: &mut Sink) {
        if c.is_whitespace() {
            if !self.drop_spaces {
                self.spaces.push(c);
            }
            return;
        }
        sink.text(&std::mem::take(&mut self.spaces));
        sink.text(c.encode_utf8(&mut [0; 4]));
        self.drop_spaces = false;
        self.at_start = false;
    }

    fn put_reasoning(&mut self, c: char, sink: &mut Sink) {
        if c.is_whitespace() {
            if !self.drop_spaces {
                self.spaces.push(c);
            }
            return;
        }
        sink.reasoning(&std::mem::take(&mut self.spaces));
        sink.reasoning(c.encode_utf8(&mut [0; 4]));
        self.drop_spaces = false;
    }

    fn call(
        &mut self,
        c: char,
        mut parser: Box<dyn CallParser>,
        opener: usize,
        mut raw: Vec<Marked>,
        cx: &Context,
        sink: &mut Sink,
    ) {
        let ended = sink.ended();
        let step = parser.feed(c, cx, sink);
        if step != Step::DoneBefore {
            raw.push((c, cx.in_control));
        }
        let mut opener = opener;
        if sink.ended() > ended {
            raw.clear();
            opener = 0;
            self.spaces.clear();
            self.drop_spaces = true;
        }
        match step {
            Step::More => self.state = State::Call { parser, opener, raw },
            Step::Done => self.calls_over(),
            Step::DoneBefore => {
                self.calls_over();
                self.queue.push_front((c, cx.in_control));
            }
            Step::Fail(reason) if sink.is_open() => {
                self.calls_over();
                self.state = State::Broken { reason, raw };
            }
            Step::Fail(_) => {
                self.state = State::Text;
                let second_look = raw.len() <= MAX_SECOND_LOOK;
                let rest = if opener == 0 && second_look { 1.min(raw.len()) } else { opener };
                let rest = if second_look { rest } else { raw.len() };
                // The end of a call that came before: what follows is not its text.
                raw[..rest].iter().for_each(|&(c, _)| self.put(c, sink));
                raw[rest..].iter().rev().for_each(|&marked| self.queue.push_front(marked));
            }
        }
    }

    fn calls_over(&mut self) {
        self.state = State::After;
        self.spaces.clear();
        self.drop_spaces = true;
        self.at_start = true;
    }

    fn after(&mut self, c: char, cx: &Context) {
        self.state = State::After;
        let mut rest = Vec::new();
        let found = self.held.feed(c, cx, self.outline.closers, |c| rest.push((c, cx.in_control)));
        let ignored = |c: char| c.is_whitespace() || (self.outline.bare && c == ';');
        if found.is_some() || rest.iter().all(|&(c, _)| ignored(c)) {
            return;
        }
        self.state = State::Text;
        // What the search still holds comes after what it gave up.
        self.held.release(|c| rest.push((c, cx.in_control)));
        rest.into_iter().rev().for_each(|marked| self.queue.push_front(marked));
    }

    fn broken(&mut self, c: char, reason: &'static str, mut raw: Vec<Marked>, cx: &Context, sink: &mut Sink) {
        raw.push((c, cx.in_control));
        let Some(marker) = self.held.feed(c, cx, &self.after_failure, |_| {}) else {
            self.state = State::Broken { reason, raw };
            return;
        };
        match self.outline.openers.iter().find(|(opener, _)| *opener == marker) {
            Some((opener, make)) => {
                raw.truncate(raw.len() - opener.chars().count());
                sink.fail(reason, string(&raw));
                self.begin_call(opener, make());
            }
            None => {
                sink.fail(reason, string(&raw));
                self.state = State::After;
            }
        }
    }

    pub(super) fn finish(&mut self, cx: &Context, sink: &mut Sink) {
        let mut held = std::mem::take(&mut self.held);
        match std::mem::replace(&mut self.state, State::After) {
            State::Text => {
                held.release(|c| self.put(c, sink));
                sink.text(&std::mem::take(&mut self.spaces));
            }
            State::Reasoning => held.release(|c| self.put_reasoning(c, sink)),
            State::Call { mut parser, raw, .. } => match parser.finish(cx, sink) {
                Step::Fail(reason) if sink.is_open() => sink.fail(reason, string(&raw)),
                Step::Fail(_) => {
                    raw.iter().for_each(|&(c, _)| self.put(c, sink));
                    sink.text(&std::mem::take(&mut self.spaces));
                }
                _ => {}
            },
            State::After => {}
            State::Broken { reason, raw } => sink.fail(reason, string(&raw)),
        }
    }
}

fn string(raw: &[Marked]) -> String {
    raw.iter().map(|(c, _)| c).collect()
}
