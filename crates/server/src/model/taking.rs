//! [`Taking`]: from the engine's pieces to parts: text, reasoning, calls, stop strings, log-probabilities.
//!
//! Invariant: parts don't depend on where tokens end, but for how text is cut into deltas; nothing follows a stop string or,
//! where one call is asked for, the first call.

use std::collections::VecDeque;
use std::sync::Arc;

use turbospark_engine::{FinishReason, Piece, TokenLogprob};
use turbospark_text::{Event, Splitter, StopStrings};

use super::Model;
use crate::{Finish, Part, TokenInfo, ids};

/// Takes one answer apart.
pub(crate) struct Taking {
    pub(super) model: Arc<Model>,
    /// `None`: the text is the answer as it stands.
    pub(super) splitter: Option<Splitter>,
    pub(super) stops: StopStrings,
    pub(super) stop: Vec<String>,
    /// Whether the answer may have several calls.
    pub(super) parallel: bool,
    pub(super) in_reasoning: bool,
    pub(super) reasoning_tokens: usize,
    pub(super) calls_ended: usize,
    /// The call that has begun.
    pub(super) open: Option<usize>,
    pub(super) tokens: TextTokens,
}

/// Tokens whose text has not been shown, by where it begins.
#[derive(Default)]
pub(super) struct TextTokens {
    waiting: VecDeque<(usize, TokenInfo)>,
    taken: usize,
    shown: usize,
}

impl TextTokens {
    fn push(&mut self, info: TokenInfo) {
        let start = self.taken;
        self.taken += info.bytes.len();
        self.waiting.push_back((start, info));
    }

    /// Tokens that begin in the next `bytes` of shown text.
    fn show(&mut self, bytes: usize) -> Vec<TokenInfo> {
        self.shown += bytes;
        let n = self.waiting.iter().take_while(|(start, _)| *start < self.shown).count();
        self.waiting.drain(..n).map(|(_, info)| info).collect()
    }

    /// Forgets all but the last tokens, which hold `bytes` of text that was not shown: the others are markers.
    fn keep(&mut self, bytes: usize) {
        let mut held = 0;
        let n = self.waiting.iter().rev().take_while(|(_, info)| {
            let more = held < bytes;
            held += info.bytes.len();
            more
        });
        let drop = self.waiting.len() - n.count();
        if drop > 0 {
            self.waiting.drain(..drop);
            if let Some((start, _)) = self.waiting.front() {
                self.shown = *start;
            }
        }
    }

    fn clear(&mut self) {
        self.waiting.clear();
        self.shown = self.taken;
    }
}

impl Taking {
    pub(crate) fn reasoning_tokens(&self) -> usize {
        self.reasoning_tokens
    }

    /// Takes a piece; says why the answer ends with it, if it ends here.
    pub(crate) fn piece(&mut self, piece: Piece, parts: &mut VecDeque<Part>) -> Option<Finish> {
        if let (Some(id), Some(logprob)) = (piece.token, piece.logprob) {
            let info = self.info(id, logprob);
            self.tokens.push(info);
        }
        let Some(splitter) = &mut self.splitter else {
            if !piece.text.is_empty() {
                let tokens = self.tokens.show(piece.text.len());
                parts.push_back(Part::Text { text: piece.text, tokens });
            }
            return None;
        };
        let events = match piece.token {
            Some(id) => splitter.push(id, &piece.text),
            None => splitter.push_text(&piece.text),
        };
        if piece.token.is_some() {
            let reasons = events.iter().any(|e| matches!(e, Event::Reasoning(_)));
            self.reasoning_tokens += usize::from(reasons || (events.is_empty() && self.in_reasoning));
        }
        if let Some(last) = events.last() {
            self.in_reasoning = matches!(last, Event::Reasoning(_));
        }
        self.events(events, parts)
    }

    /// Takes what is left when the engine has ended.
    pub(crate) fn finish(&mut self, reason: FinishReason, parts: &mut VecDeque<Part>) -> Finish {
        if let Some(splitter) = &mut self.splitter {
            let events = splitter.finish();
            if let Some(finish) = self.events(events, parts) {
                return finish;
            }
            let text = self.stops.finish();
            self.show(text, parts);
        }
        match reason {
            FinishReason::StopString(stop) => Finish::StopString(stop),
            FinishReason::Length => Finish::Length,
            FinishReason::Cancelled => Finish::Cancelled,
            _ if self.calls_ended > 0 => Finish::Calls,
            _ => Finish::Stop,
        }
    }

    fn events(&mut self, events: Vec<Event>, parts: &mut VecDeque<Part>) -> Option<Finish> {
        for event in events {
            match event {
                Event::Text(text) => {
                    self.tokens.keep(text.len());
                    let outcome = self.stops.push(&text);
                    self.show(outcome.text, parts);
                    if let Some(stop) = outcome.matched.and_then(|i| self.stop.get(i)) {
                        return Some(Finish::StopString(stop.clone()));
                    }
                }
                Event::Reasoning(text) => {
                    self.tokens.clear();
                    parts.push_back(Part::Reasoning(text));
                }
                Event::ToolCallStart { index, id, name } => {
                    self.tokens.clear();
                    // Text that waits for a stop string to complete comes before the call.
                    let text = self.stops.finish();
                    self.show(text, parts);
                    self.open = Some(index);
                    parts.push_back(Part::CallStart {
                        index,
                        id: id.unwrap_or_else(|| ids::new("call_")),
                        name,
                    });
                }
                Event::ToolCallArguments { index, delta } => {
                    self.tokens.clear();
                    parts.push_back(Part::CallArguments { index, delta });
                }
                Event::ToolCallEnd { index } => {
                    self.open = None;
                    self.calls_ended += 1;
                    parts.push_back(Part::CallEnd { index });
                    if !self.parallel {
                        return Some(Finish::Calls);
                    }
                }
                Event::ToolCallFailed { raw, .. } => {
                    // What has been told of a call can't be taken back; one that was not told is text.
                    if self.open.take().is_none() {
                        let text = self.stops.push(&raw).text;
                        self.show(text, parts);
                    }
                }
            }
        }
        None
    }

    fn show(&mut self, text: String, parts: &mut VecDeque<Part>) {
        if !text.is_empty() {
            let tokens = self.tokens.show(text.len());
            parts.push_back(Part::Text { text, tokens });
        }
    }

    fn info(&self, id: u32, logprob: TokenLogprob) -> TokenInfo {
        let tokenizer = self.model.tokenizer();
        let bytes = |id: u32| tokenizer.token_bytes(id).unwrap_or_default().to_vec();
        TokenInfo {
            bytes: bytes(id),
            logprob: logprob.logprob,
            top: logprob.top.into_iter().map(|(id, p)| (bytes(id), p)).collect(),
        }
    }
}
