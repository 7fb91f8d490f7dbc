//! Calls whose form the first characters tell: models are trained on one form and often write another.

use super::{
    call::{CallParser, Step},
    events::Sink,
    marker::Context,
    object::ObjectCalls,
    python::PythonCalls,
    section::NamedCall,
    xml::{GLM, QWEN, TagCalls},
};

/// Where the characters come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// `<tool_call>`: JSON, tags, or a bare name with tags.
    ToolCallTag,
    /// `[TOOL_CALLS]`: JSON, or a bare name.
    ToolCalls,
    /// A token that says "code": JSON or Python.
    CodeToken,
    /// The start of an answer or of a fence: JSON or Python, calling a tool that exists.
    Nothing,
}

/// Waits for the first characters, then hands over.
#[derive(Debug)]
pub(super) struct Sniffer {
    after: After,
    list: bool,
    inner: Option<Box<dyn CallParser>>,
}

impl Sniffer {
    pub(super) fn new(after: After) -> Sniffer {
        Sniffer { after, list: false, inner: None }
    }

    fn choose(&self, c: char) -> Box<dyn CallParser> {
        let known_only = self.after == After::Nothing;
        match (self.after, c) {
            (_, '{') => Box::new(ObjectCalls::new(known_only)),
            (After::ToolCallTag | After::ToolCalls, '[') => Box::new(ObjectCalls::new(false)),
            (After::ToolCallTag, '<') => Box::new(TagCalls::new(&QWEN)),
            (After::ToolCallTag, _) => Box::new(TagCalls::new(&GLM)),
            (After::ToolCalls, _) => Box::new(NamedCall::new()),
            _ => Box::new(PythonCalls::new(known_only)),
        }
    }
}

impl CallParser for Sniffer {
    fn feed(&mut self, c: char, cx: &Context, sink: &mut Sink) -> Step {
        if let Some(inner) = &mut self.inner {
            return inner.feed(c, cx, sink);
        }
        if c.is_whitespace() {
            return Step::More;
        }
        if c == '[' && !self.list && matches!(self.after, After::CodeToken | After::Nothing) {
            self.list = true;
            return Step::More;
        }
        let mut inner = self.choose(c);
        if self.list {
            inner.feed('[', cx, sink);
        }
        let step = inner.feed(c, cx, sink);
        self.inner = Some(inner);
        step
    }

    fn finish(&mut self, cx: &Context, sink: &mut Sink) -> Step {
        match &mut self.inner {
            Some(inner) => inner.finish(cx, sink),
            None => Step::Fail("the call was cut off"),
        }
    }
}
