//! The scheduler: what a request is answered does not depend on what else runs, and each ends for its own reason.

mod batching;
mod ends;
mod forks;
mod prefixes;
mod rules;

use std::sync::mpsc::{Receiver, Sender, channel};

use turbospark_engine::scheduler::{Event, Handle, Request, RequestStats, SubmitError, Ticket};
use turbospark_engine::{Engine, EngineError, FinishReason, GenerateOptions, SamplingParams};

/// What a request was told.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) tokens: Vec<u32>,
    pub(super) text: String,
    pub(super) cached: usize,
    pub(super) end: Option<(FinishReason, RequestStats)>,
    pub(super) failed: Option<EngineError>,
}

impl Outcome {
    pub(super) fn reason(&self) -> &FinishReason {
        &self.end.as_ref().unwrap().0
    }
}

/// A submitted request.
pub(super) struct Asked {
    pub(super) ticket: Ticket,
    events: Receiver<Event>,
}

impl Asked {
    /// Waits for the end.
    pub(super) fn outcome(self) -> Outcome {
        let mut outcome = Outcome::default();
        for event in &self.events {
            assert!(outcome.end.is_none() && outcome.failed.is_none(), "something after the end: {event:?}");
            match event {
                Event::Started { cached_tokens, .. } => outcome.cached = cached_tokens,
                Event::Piece(piece) => {
                    outcome.tokens.extend(piece.token);
                    outcome.text += &piece.text;
                }
                Event::Finished { reason, stats } => outcome.end = Some((reason, stats)),
                Event::Failed(error) => outcome.failed = Some(error),
            }
        }
        outcome
    }

    /// Waits for the first token.
    pub(super) fn first(&self) {
        while !matches!(self.events.recv().unwrap(), Event::Piece(_)) {}
    }
}

pub(super) fn try_ask(
    handle: &Handle,
    client: u64,
    prompt: &[u32],
    options: GenerateOptions,
) -> Result<Asked, SubmitError> {
    let (sender, events) = channel();
    let on_event = Box::new(move |event| sender.send(event).is_ok());
    let ticket = handle.submit(Request { prompt: prompt.to_vec(), options, client, on_event })?;
    Ok(Asked { ticket, events })
}

pub(super) fn ask(handle: &Handle, prompt: &[u32], options: GenerateOptions) -> Asked {
    try_ask(handle, 0, prompt, options).unwrap()
}

/// A request that holds the scheduler's thread from its start until the sender is dropped or used.
pub(super) fn hold(handle: &Handle) -> (Ticket, Sender<()>) {
    let (release, gate) = channel();
    let (started, starts) = channel();
    let on_event = Box::new(move |event| {
        if matches!(event, Event::Started { .. }) {
            started.send(()).unwrap();
            // Either way it goes on.
            let _ = gate.recv();
        }
        true
    });
    let request = Request { prompt: vec![1, 2], options: options(0, 2), client: 1, on_event };
    let ticket = handle.submit(request).unwrap();
    starts.recv().unwrap();
    (ticket, release)
}

/// Warm sampling: a bit's difference soon leads to another token.
pub(super) fn options(seed: u64, max_tokens: usize) -> GenerateOptions {
    GenerateOptions {
        sampling: SamplingParams {
            temperature: 1.2,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            seed,
            ..SamplingParams::default()
        },
        max_tokens: Some(max_tokens),
        ignore_stop_tokens: true,
        ..GenerateOptions::default()
    }
}

/// The answer of a session of its own.
pub(super) fn alone(engine: &Engine, prompt: &[u32], options: GenerateOptions) -> (Vec<u32>, String) {
    let mut session = engine.session();
    let pieces: Vec<_> = session.generate(prompt, options).unwrap().map(Result::unwrap).collect();
    (pieces.iter().filter_map(|p| p.token).collect(), pieces.into_iter().map(|p| p.text).collect())
}
