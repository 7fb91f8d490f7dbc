//! [`Answer`]: from logits to tokens and text, one step at a time, until something ends it. Sessions and the scheduler share it.
//!
//! Invariant: the pieces' texts together are the answer, without half characters, stop tokens and anything from a stop
//! string on; after the last piece the reason is there.

use turbospark_text::{DecodeStream, StopOutcome, StopStrings, Tokenizer};

use crate::sampling::Chooser;
use crate::{EngineError, FinishReason, GenerateOptions, Piece};

/// What has been answered so far.
pub(crate) struct Answer<'t> {
    chooser: Chooser,
    stream: DecodeStream<'t>,
    stops: StopStrings,
    stop_strings: Vec<String>,
    stop_tokens: &'t [u32],
    max_tokens: usize,
    generated: usize,
    finished: Option<FinishReason>,
    show_special: bool,
}

impl<'t> Answer<'t> {
    /// An answer to `prompt`.
    ///
    /// # Errors
    /// Sampling parameters out of range.
    pub(crate) fn new(
        tokenizer: &'t Tokenizer,
        n_vocab: usize,
        prompt: &[u32],
        options: GenerateOptions,
    ) -> Result<Self, EngineError> {
        let max_tokens = options.max_tokens.unwrap_or(usize::MAX);
        Ok(Answer {
            stream: tokenizer.stream_continuation().show_special(options.show_special),
            show_special: options.show_special,
            stops: StopStrings::new(&options.stop),
            stop_tokens: if options.ignore_stop_tokens { &[] } else { tokenizer.stop_tokens() },
            max_tokens,
            generated: 0,
            finished: (max_tokens == 0).then_some(FinishReason::Length),
            chooser: Chooser::new(options.sampling, options.constraint, options.logprobs, prompt, n_vocab)?,
            stop_strings: options.stop,
        })
    }

    /// Tokens chosen, one that ended the answer included.
    pub(crate) fn generated(&self) -> usize {
        self.generated
    }

    /// Why it ended; `None` while it goes on.
    pub(crate) fn finish_reason(&self) -> Option<&FinishReason> {
        self.finished.as_ref()
    }

    /// Chooses the next token from its logits `[n_vocab]`, which are changed. `room` says whether the context has a place for it.
    ///
    /// # Errors
    /// As [`Sampler::sample`](crate::Sampler::sample), and those of a constraint.
    pub(crate) fn next(
        &mut self,
        logits: &mut [f32],
        room: bool,
    ) -> Result<(u32, Option<Piece>), EngineError> {
        let (token, logprob) = self.chooser.choose(logits)?;
        self.generated += 1;
        if self.stop_tokens.binary_search(&token).is_ok() {
            if !self.show_special {
                return Ok((token, self.end(FinishReason::StopToken(token))));
            }
            let mut text = self.show(|stream| stream.push(token));
            if self.finished.is_none() {
                text += &self.rest(FinishReason::StopToken(token));
            }
            return Ok((token, Some(Piece { token: Some(token), text, logprob: None })));
        }
        let whole = self.chooser.accept(token)?;
        let mut text = self.show(|stream| stream.push(token));
        if self.finished.is_none() {
            if whole {
                text += &self.rest(FinishReason::Constraint);
            } else if self.generated >= self.max_tokens || !room {
                text += &self.rest(FinishReason::Length);
            }
        }
        Ok((token, Some(Piece { token: Some(token), text, logprob })))
    }

    /// Ends for `reason`; gives what was held back, if anything was.
    pub(crate) fn end(&mut self, reason: FinishReason) -> Option<Piece> {
        let text = self.rest(reason);
        (!text.is_empty()).then_some(Piece { token: None, text, logprob: None })
    }

    /// Text that is certain after the stream's next; a stop string that completes in it ends the answer.
    fn show(&mut self, next: impl for<'a> FnOnce(&'a mut DecodeStream<'t>) -> &'a str) -> String {
        let StopOutcome { text, matched } = self.stops.push(next(&mut self.stream));
        if let Some(stop) = matched.and_then(|i| self.stop_strings.get(i)) {
            self.finished = Some(FinishReason::StopString(stop.clone()));
        }
        text
    }

    /// Ends for `reason` with the text that was held back; a stop string that completes only now wins.
    fn rest(&mut self, reason: FinishReason) -> String {
        let mut text = self.show(DecodeStream::finish);
        if self.finished.is_none() {
            text += &self.stops.finish();
            self.finished = Some(reason);
        }
        text
    }
}
