//! Requests end alone: cancelled, dropped, failed or refused, with those beside them unaffected.

use std::sync::mpsc::channel;
use std::time::Duration;

use turbospark_engine::scheduler::{Event, Request, Scheduler, SchedulerOptions, Shutdown, SubmitError};
use turbospark_engine::{CancelFlag, Engine, EngineError, FinishReason, GenerateOptions, SamplingParams};

use super::{alone, ask, hold, options, try_ask};
use crate::fixtures::{edited, engine, exact, longest};

const FILE: &str = "llama-b-f32.gguf";
/// Tokens of an answer that ends only when it is told to.
const LONG: usize = 400;

fn start(engine: &Engine, max_running: usize) -> Scheduler {
    let scheduling = SchedulerOptions { max_running, max_queued: 4, ..SchedulerOptions::default() };
    Scheduler::start(engine.clone(), scheduling).unwrap()
}

#[test]
fn cancelled_requests_end_wherever_they_are() {
    let engine = engine(FILE);
    let scheduler = start(&engine, 2);
    let handle = scheduler.handle();
    let other = ask(&handle, &[1, 2], options(1, 40));
    let flag = CancelFlag::new();
    let flagged = ask(&handle, &[3, 4], GenerateOptions { cancel: flag.clone(), ..options(2, LONG) });
    let waiting = ask(&handle, &[5, 6], options(3, LONG));
    flagged.first();
    flag.cancel();
    assert_eq!(flagged.outcome().reason(), &FinishReason::Cancelled);
    waiting.first();
    waiting.ticket.cancel();
    assert_eq!(waiting.outcome().reason(), &FinishReason::Cancelled);
    assert_eq!(other.outcome().tokens, alone(&engine, &[1, 2], options(1, 40)).0);
    // One that is cancelled before its turn, and one whose receiver goes.
    let (_held, release) = hold(&handle);
    let (waiting, lost) = (ask(&handle, &[3], options(6, LONG)), ask(&handle, &[4], options(7, LONG)));
    waiting.ticket.cancel();
    drop(lost);
    drop(release);
    let outcome = waiting.outcome();
    assert!(outcome.tokens.is_empty() && outcome.reason() == &FinishReason::Cancelled);
    assert_eq!(handle.metrics().cancelled, 4);
    assert_eq!(
        ask(&handle, &[1, 2], options(1, 9)).outcome().tokens,
        alone(&engine, &[1, 2], options(1, 9)).0
    );
}

#[test]
fn a_router_that_is_no_number_fails_its_request_alone() {
    for file in ["qwen3_moe-b-f32.gguf", "qwen3_next-b-f32.gguf"] {
        let bad = 33;
        let n_vocab = engine(file).spec().n_vocab;
        let gguf = edited(file, |name, values| {
            if name == "token_embd.weight" {
                let hidden = values.len() / n_vocab;
                values[bad * hidden..(bad + 1) * hidden].fill(f32::NAN);
            }
        });
        let engine = Engine::from_gguf(gguf, exact()).unwrap();
        let scheduler = start(&engine, 4);
        let handle = scheduler.handle();
        let fine = |seed| GenerateOptions {
            sampling: SamplingParams {
                logit_bias: vec![(bad as u32, f32::NEG_INFINITY)],
                ..options(seed, 1).sampling
            },
            ..options(seed, 30)
        };
        let prompt: Vec<u32> =
            longest(file).into_iter().map(|t| if t == bad as u32 { 1 } else { t }).collect();
        let mut damaged = prompt.clone();
        damaged[40] = bad as u32;
        let first = ask(&handle, &prompt, fine(1));
        first.first();
        let failed = ask(&handle, &damaged, fine(2));
        let last = ask(&handle, &prompt[..50], fine(3));
        let error = failed.outcome().failed.unwrap();
        assert!(matches!(error, EngineError::BadRouting { position: 40, .. }), "{file}: {error}");
        let mut expected = alone(&engine, &prompt, fine(1)).0;
        expected.remove(0);
        assert_eq!(first.outcome().tokens, expected, "{file}");
        assert_eq!(last.outcome().tokens, alone(&engine, &prompt[..50], fine(3)).0, "{file}");
        assert_eq!(handle.metrics().failed, 1);
    }
}

#[test]
fn what_can_never_run_is_refused_at_once() {
    let engine = engine(FILE);
    let kv_bytes = Some(engine.kv_bytes(128));
    let scheduling = SchedulerOptions { kv_bytes, ..SchedulerOptions::default() };
    let scheduler = Scheduler::start(engine.clone(), scheduling).unwrap();
    let handle = scheduler.handle();
    let refused = |prompt: &[u32], options| try_ask(&handle, 0, prompt, options).map(drop).unwrap_err();
    let long = vec![1; engine.context() + 1];
    assert!(matches!(refused(&long, options(0, 1)), SubmitError::TooLong { .. }));
    assert!(matches!(refused(&[1], options(0, 200)), SubmitError::TooLarge { .. }));
    assert!(matches!(refused(&[], options(0, 1)), SubmitError::Invalid(EngineError::EmptyPrompt)));
    let hot = GenerateOptions {
        sampling: SamplingParams { temperature: -1.0, ..SamplingParams::default() },
        ..options(0, 1)
    };
    assert!(matches!(refused(&[1], hot), SubmitError::Invalid(EngineError::BadSampling { .. })));
    let outside = engine.spec().n_vocab as u32;
    assert!(matches!(refused(&[outside], options(0, 1)), SubmitError::Invalid(_)));
    handle.shutdown(Shutdown::Finish);
    assert!(matches!(refused(&[1], options(0, 1)), SubmitError::Closed));
}

#[test]
fn a_full_queue_says_when_to_come_again() {
    let engine = engine(FILE);
    let scheduler = start(&engine, 1);
    let handle = scheduler.handle();
    let (_held, release) = hold(&handle);
    let waiting: Vec<_> = (0..4).map(|i| ask(&handle, &[2], options(i, 3))).collect();
    assert_eq!(handle.queued(), 4);
    match try_ask(&handle, 0, &[3], options(9, 1)) {
        Err(SubmitError::QueueFull { retry_after }) => assert!(retry_after >= Duration::from_secs(1)),
        _ => panic!("a fifth request was let in"),
    }
    drop(release);
    for (i, asked) in waiting.into_iter().enumerate() {
        assert_eq!(asked.outcome().tokens, alone(&engine, &[2], options(i as u64, 3)).0);
    }
}

#[test]
fn memory_bounds_what_runs_at_once() {
    let engine = engine(FILE);
    let kv_bytes = Some(2 * engine.kv_bytes(64) + engine.kv_bytes(64) / 2);
    let scheduling = SchedulerOptions { kv_bytes, ..SchedulerOptions::default() };
    let scheduler = Scheduler::start(engine.clone(), scheduling).unwrap();
    let handle = scheduler.handle();
    let asked: Vec<_> = (0..6).map(|i| ask(&handle, &[1, 2, 3], options(i, 60))).collect();
    let mut most = 0;
    while handle.queued() > 0 {
        let metrics = handle.metrics();
        most = most.max(metrics.running);
        assert!(metrics.kv_reserved + metrics.prefix_bytes <= metrics.kv_limit);
    }
    assert_eq!(most, 2);
    for (i, asked) in asked.into_iter().enumerate() {
        assert_eq!(asked.outcome().tokens, alone(&engine, &[1, 2, 3], options(i as u64, 60)).0);
    }
}

#[test]
fn clients_take_turns() {
    let engine = engine(FILE);
    let scheduler = start(&engine, 1);
    let handle = scheduler.handle();
    let (order, started) = channel();
    let (_held, release) = hold(&handle);
    let mut tickets = Vec::new();
    for (i, client) in [(1, 1), (2, 1), (3, 2), (4, 3)] {
        let order = order.clone();
        let on_event = Box::new(move |event: Event| {
            if matches!(event, Event::Started { .. }) {
                order.send(i).unwrap();
            }
            true
        });
        let request = Request { prompt: vec![1, 2], options: options(i, 2), client, on_event };
        tickets.push(handle.submit(request).unwrap());
    }
    drop(release);
    let order: Vec<u64> = (0..4).map(|_| started.recv().unwrap()).collect();
    assert_eq!(order, [1, 3, 4, 2]);
}

#[test]
fn a_shutdown_finishes_or_cancels_what_is_there() {
    let engine = engine(FILE);
    let scheduler = start(&engine, 2);
    let asked: Vec<_> = (0..4).map(|i| ask(&scheduler.handle(), &[1, 2], options(i, 20))).collect();
    scheduler.handle().shutdown(Shutdown::Finish);
    for (i, asked) in asked.into_iter().enumerate() {
        assert_eq!(asked.outcome().tokens, alone(&engine, &[1, 2], options(i as u64, 20)).0);
    }
    let scheduler = start(&engine, 2);
    let asked: Vec<_> = (0..4).map(|i| ask(&scheduler.handle(), &[1, 2], options(i, LONG))).collect();
    asked[0].first();
    drop(scheduler);
    for asked in asked {
        assert_eq!(asked.outcome().reason(), &FinishReason::Cancelled);
    }
}
