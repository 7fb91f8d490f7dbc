//! Constraints and log-probabilities, in sessions and in the scheduler.

use turbospark_engine::scheduler::{Event, Request, Scheduler, SchedulerOptions};
use turbospark_engine::{
    Constraint, ConstraintError, EngineError, FinishReason, GenerateOptions, Mask, Piece, Wanted,
};

use super::{alone, ask, options};
use crate::fixtures::{engine, longest};

const FILE: &str = "llama-b-f32.gguf";

/// Allows one of two tokens at each place, and ends after `left` of them.
struct Pairs {
    words: [u32; 2],
    left: usize,
    broken: bool,
}

impl Pairs {
    fn boxed(left: usize, broken: bool) -> Option<Box<dyn Constraint>> {
        Some(Box::new(Pairs { words: [0; 2], left, broken }))
    }
}

impl Constraint for Pairs {
    fn mask(&mut self) -> Result<Mask<'_>, ConstraintError> {
        if self.broken && self.left == 3 {
            return Err(ConstraintError("no way on".to_owned()));
        }
        // Two of the tokens 20 to 59, by how many are left.
        self.words = [0; 2];
        for token in [20 + self.left, 40 + self.left] {
            self.words[token / 32] |= 1 << (token % 32);
        }
        Ok(Mask(&self.words))
    }

    fn accept(&mut self, token: u32) -> Result<(), ConstraintError> {
        assert!([20 + self.left, 40 + self.left].contains(&(token as usize)));
        self.left -= 1;
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.left == 0
    }
}

#[test]
fn a_constrained_answer_has_only_allowed_tokens_and_ends_when_it_is_whole() {
    let engine = engine(FILE);
    let scheduler = Scheduler::start(engine.clone(), SchedulerOptions::default()).unwrap();
    let handle = scheduler.handle();
    let prompt = longest(FILE);
    let constrained = || GenerateOptions { constraint: Pairs::boxed(9, false), ..options(3, 100) };
    let (tokens, text) = alone(&engine, &prompt, constrained());
    assert_eq!(tokens.len(), 9);
    for (token, left) in tokens.iter().zip((1..=9).rev()) {
        assert!([20 + left, 40 + left].contains(token));
    }
    let outcome = ask(&handle, &prompt, constrained()).outcome();
    assert_eq!(outcome.reason(), &FinishReason::Constraint);
    assert_eq!((outcome.tokens, outcome.text), (tokens, text));
    // One that can't go on fails alone.
    let beside = ask(&handle, &prompt, options(4, 12));
    let broken = GenerateOptions { constraint: Pairs::boxed(9, true), ..options(3, 100) };
    let outcome = ask(&handle, &prompt, broken).outcome();
    assert!(outcome.tokens.len() == 6 && matches!(outcome.failed, Some(EngineError::Constraint(_))));
    assert_eq!(beside.outcome().tokens, alone(&engine, &prompt, options(4, 12)).0);
}

#[test]
fn log_probabilities_are_the_models_own_whatever_is_sampled() {
    let engine = engine(FILE);
    let prompt = longest(FILE);
    let asked = || {
        let mut options = GenerateOptions { logprobs: Some(4), ..options(5, 6) };
        options.sampling.repetition_penalty = 1.7;
        options.sampling.logit_bias = vec![(9, 3.0)];
        options
    };
    let mut session = engine.session();
    let pieces: Vec<Piece> = session.generate(&prompt, asked()).unwrap().map(Result::unwrap).collect();
    let tokens: Vec<u32> = pieces.iter().filter_map(|p| p.token).collect();
    assert_eq!(tokens.len(), 6);
    let fed = [&prompt[..], &tokens].concat();
    let mut rows = Vec::new();
    engine
        .feed(&mut engine.sequence(), &fed, None, Wanted::All, |_, logits| rows.push(logits.to_vec()))
        .unwrap();
    for (i, piece) in pieces.iter().enumerate() {
        let logits = &rows[prompt.len() - 1 + i];
        let sum: f64 = logits.iter().map(|&x| f64::from(x).exp()).sum();
        let of = |id: u32| f64::from(logits[id as usize]) - sum.ln();
        let told = piece.logprob.as_ref().unwrap();
        assert!((f64::from(told.logprob) - of(tokens[i])).abs() < 1e-5);
        assert!(told.top.len() == 4 && told.top.is_sorted_by(|a, b| a.1 >= b.1));
        assert!(told.top.iter().all(|&(id, p)| (f64::from(p) - of(id)).abs() < 1e-5));
        let greatest = logits.iter().copied().fold(f32::MIN, f32::max);
        assert_eq!(logits[told.top[0].0 as usize], greatest);
    }
    // The scheduler tells the same.
    let scheduler = Scheduler::start(engine, SchedulerOptions::default()).unwrap();
    let (sender, events) = std::sync::mpsc::channel();
    let on_event = Box::new(move |event| sender.send(event).is_ok());
    let request = Request { prompt, options: asked(), client: 0, on_event };
    let ticket = scheduler.handle().submit(request).unwrap();
    let told: Vec<Piece> =
        events.iter().filter_map(|e| if let Event::Piece(p) = e { Some(p) } else { None }).collect();
    assert_eq!(told, pieces);
    drop(ticket);
}
