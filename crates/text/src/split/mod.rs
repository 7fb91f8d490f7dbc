//! From a model's raw output to events: text, reasoning and tool calls, as they come.
//!
//! Each model family writes reasoning and calls in a dialect of its own. [`Dialect::detect`] finds it, an [`OutputFormat`]
//! joins it with the model's vocabulary, and a [`Splitter`] takes one answer apart. Invariant: all parsers read character by
//! character, so what comes out never depends on where tokens begin and end; nothing that the model wrote is lost.

mod call;
mod dialect;
mod events;
mod gemma;
mod harmony;
mod json;
mod marker;
mod object;
mod outline;
mod python;
mod section;
mod sniff;
mod tagged;
mod tool;
mod values;
mod xml;

use std::{collections::HashMap, sync::Arc};

pub use dialect::Dialect;
pub use events::Event;
pub use tool::Tool;
pub(crate) use tool::Types;

use crate::{TokenKind, Tokenizer};
use events::Sink;
use harmony::Harmony;
use marker::Context;
use tagged::Tagged;

/// A dialect and the control tokens of a vocabulary, made once a model.
#[derive(Clone, Debug)]
pub struct OutputFormat {
    dialect: Dialect,
    control: Arc<HashMap<u32, String>>,
    strict: Vec<&'static str>,
}

impl OutputFormat {
    /// Joins a dialect with the vocabulary of the model that speaks it.
    pub fn new(dialect: Dialect, tokenizer: &Tokenizer) -> OutputFormat {
        let mut control = HashMap::new();
        for id in 0..tokenizer.vocab_size() as u32 {
            if tokenizer.kind(id) == Some(TokenKind::Control)
                && let Some(text) = tokenizer.token_text(id)
            {
                control.insert(id, text.into_owned());
            }
        }
        let is_control = |marker: &str| {
            tokenizer.id_of(marker).is_some_and(|id| control.get(&id).is_some_and(|t| t == marker))
        };
        let strict = dialect.markers().into_iter().filter(|m| is_control(m)).collect();
        OutputFormat { dialect, control: Arc::new(control), strict }
    }

    /// The dialect.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// A splitter for one answer. Without tools, markers of calls are text. In harmony, whose headers must be read in any
    /// case, a call is an event whether tools are given or not.
    ///
    /// Its text must come from a [`DecodeStream`](crate::DecodeStream) that shows special tokens. Push the token that ends
    /// the answer too: `<|call|>` tells a call without arguments from one that was cut off.
    pub fn splitter(&self, tools: &[Tool]) -> Splitter {
        let mut splitter = Splitter::new(self.dialect, tools);
        splitter.context.strict.clone_from(&self.strict);
        splitter.control = Arc::clone(&self.control);
        splitter
    }
}

#[derive(Debug)]
enum Parser {
    Harmony(Box<Harmony>),
    Tagged(Box<Tagged>),
}

/// Takes one answer apart.
#[derive(Debug)]
pub struct Splitter {
    dialect: Dialect,
    context: Context,
    control: Arc<HashMap<u32, String>>,
    parser: Parser,
    sink: Sink,
}

impl Splitter {
    /// A splitter that knows no vocabulary: markers are known by their text alone. See [`OutputFormat::splitter`].
    pub fn new(dialect: Dialect, tools: &[Tool]) -> Splitter {
        let parser = match outline::of(dialect) {
            None => Parser::Harmony(Box::new(Harmony::new())),
            Some(outline) => Parser::Tagged(Box::new(Tagged::new(outline, !tools.is_empty()))),
        };
        let context = Context { tools: tools.to_vec(), ..Context::default() };
        Splitter { dialect, context, control: Arc::default(), parser, sink: Sink::default() }
    }

    /// Tells where the answer goes on: templates often end a prompt within the reasoning (`<think>`), after it, or in a
    /// message's header.
    #[must_use]
    pub fn after_prompt(mut self, prompt: &str) -> Splitter {
        match &mut self.parser {
            Parser::Harmony(parser) => {
                let last = prompt.rsplit("<|start|>").next().unwrap_or_default();
                if let Some(rest) = last.strip_prefix("assistant").filter(|_| last.len() < prompt.len()) {
                    self.context.in_control = true;
                    rest.chars().for_each(|c| parser.feed(c, &self.context, &mut self.sink));
                    self.context.in_control = false;
                    self.sink = Sink::default();
                }
            }
            Parser::Tagged(parser) => {
                let think = outline::of(self.dialect).and_then(|outline| outline.think);
                if let Some((_, close)) = think
                    && prompt.trim_end().ends_with(close)
                {
                    parser.after_reasoning();
                }
                if self.dialect.opens_reasoning(prompt) {
                    parser.open_reasoning();
                }
            }
        }
        self
    }

    /// The answer begins within the reasoning, whatever the prompt's text says. Harmony has no such state: its answers
    /// always begin with a header.
    #[must_use]
    pub fn reasoning_open(mut self) -> Splitter {
        if let Parser::Tagged(parser) = &mut self.parser {
            parser.open_reasoning();
        }
        self
    }

    /// Takes a token and the text that it completed, often none or that of earlier tokens too.
    pub fn push(&mut self, id: u32, text: &str) -> Vec<Event> {
        let Some(token) = self.control.get(&id).cloned() else { return self.push_text(text) };
        let before = text.strip_suffix(token.as_str());
        self.feed(before.unwrap_or(text), false);
        // Control tokens that mean nothing in the dialect are not for readers.
        if before.is_some() && self.dialect.markers().iter().any(|m| m.starts_with(token.as_str())) {
            self.feed(&token, true);
        }
        self.sink.take()
    }

    /// Takes text.
    pub fn push_text(&mut self, text: &str) -> Vec<Event> {
        self.feed(text, false);
        self.sink.take()
    }

    /// Ends the answer.
    pub fn finish(&mut self) -> Vec<Event> {
        match &mut self.parser {
            Parser::Harmony(parser) => parser.finish(&mut self.sink),
            Parser::Tagged(parser) => parser.finish(&self.context, &mut self.sink),
        }
        self.sink.take()
    }

    fn feed(&mut self, text: &str, in_control: bool) {
        self.context.in_control = in_control;
        for c in text.chars() {
            match &mut self.parser {
                Parser::Harmony(parser) => parser.feed(c, &self.context, &mut self.sink),
                Parser::Tagged(parser) => parser.feed(c, &mut self.context, &mut self.sink),
            }
        }
        self.context.in_control = false;
    }
}

impl Dialect {
    /// Whether a rendered prompt ends within reasoning, so that the answer begins there.
    pub fn opens_reasoning(self, prompt: &str) -> bool {
        let think = outline::of(self).and_then(|outline| outline.think);
        think.is_some_and(|(open, _)| prompt.trim_end().ends_with(open))
    }

    /// The markers that open and close reasoning; `None` where it is not written between two.
    pub fn reasoning_markers(self) -> Option<(&'static str, &'static str)> {
        outline::of(self).and_then(|outline| outline.think)
    }

    /// Every marker that the dialect's parsers know, quotes and tags within calls included.
    pub(crate) fn markers(self) -> Vec<&'static str> {
        let Some(outline) = outline::of(self) else { return harmony::MARKERS.to_vec() };
        let inner: &[&'static str] = match self {
            Dialect::Mistral => &["[ARGS]", "[CALL_ID]"],
            Dialect::Gemma4 => &["<|\"|>", "<escape>"],
            Dialect::DeepSeek => &section::DEEPSEEK_MARKERS,
            Dialect::Kimi => &section::KIMI_MARKERS,
            _ => &[],
        };
        Tagged::markers(outline).chain(inner.iter().copied()).collect()
    }
}
