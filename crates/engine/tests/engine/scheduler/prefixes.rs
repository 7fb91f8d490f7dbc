//! Prompts that begin alike are fed once, and answered as if they had been fed whole.

use turbospark_engine::Engine;
use turbospark_engine::scheduler::{Scheduler, SchedulerOptions};
use turbospark_model::Mixer;

use super::{Outcome, alone, ask, options};
use crate::fixtures::{engine, longest, small};

const SYSTEM: usize = 200;

fn keeps_all(engine: &Engine) -> bool {
    engine.spec().layers.iter().all(|l| match &l.mixer {
        Mixer::Attention(a) => a.window.is_none(),
        Mixer::Latent(_) => true,
        Mixer::Delta(_) => false,
    })
}

fn with_system(file: &str, user: &[u32]) -> Vec<u32> {
    [&longest(file).repeat(4)[..SYSTEM], user].concat()
}

#[test]
fn a_system_prompt_is_fed_once() {
    for file in small() {
        let engine = engine(file);
        let kv_bytes = Some(8 * engine.kv_bytes(SYSTEM + 64));
        let scheduling = SchedulerOptions { kv_bytes, ..SchedulerOptions::default() };
        let scheduler = Scheduler::start(engine.clone(), scheduling).unwrap();
        let handle = scheduler.handle();
        let ask = |user: &[u32], seed| -> Outcome {
            let prompt = with_system(file, user);
            let outcome = ask(&handle, &prompt, options(seed, 8)).outcome();
            assert_eq!(outcome.tokens, alone(&engine, &prompt, options(seed, 8)).0, "{file}");
            outcome
        };
        let first = ask(&[1, 2, 3], 1);
        assert_eq!(first.cached, 0);
        let second = ask(&[4, 5, 6, 7], 2);
        // Where layers can't be cut anywhere, the second prompt shows what is in common, and the third has it.
        if keeps_all(&engine) {
            assert_eq!(second.cached, SYSTEM, "{file}");
        }
        assert_eq!(ask(&[8, 9], 3).cached, SYSTEM, "{file}");
        // The next turn of a conversation has all that was fed of the one before.
        let turn = [&[4, 5, 6, 7][..], &second.tokens].concat();
        let next = ask(&[&turn[..], &[1, 1]].concat(), 4);
        assert_eq!(next.cached, SYSTEM + turn.len() - 1, "{file}");
        let metrics = handle.metrics();
        assert!(metrics.prefix_bytes > 0 && metrics.cached_tokens >= 2 * SYSTEM as u64);
        let fed = metrics.prompt_tokens - metrics.cached_tokens;
        assert_eq!(metrics.fed_rows, fed + metrics.generated_tokens - metrics.requests, "{file}");
    }
}

#[test]
fn requests_at_the_same_time_share_what_is_being_fed() {
    let file = "llama-b-f32.gguf";
    let engine = engine(file);
    let scheduler = Scheduler::start(engine.clone(), SchedulerOptions::default()).unwrap();
    let handle = scheduler.handle();
    let prompts: Vec<_> = (0..4).map(|i| with_system(file, &[i, 7, 7])).collect();
    let asked: Vec<_> = prompts.iter().map(|prompt| ask(&handle, prompt, options(5, 6))).collect();
    for (i, (asked, prompt)) in asked.into_iter().zip(&prompts).enumerate() {
        let outcome = asked.outcome();
        assert_eq!(outcome.cached, if i == 0 { 0 } else { SYSTEM }, "request {i}");
        assert_eq!(outcome.tokens, alone(&engine, prompt, options(5, 6)).0);
    }
}

#[test]
fn kept_prefixes_stay_within_their_bytes_and_the_latest_stay() {
    let file = "llama-b-f32.gguf";
    let engine = engine(file);
    let prefix_bytes = 3 * engine.kv_bytes(SYSTEM + 64);
    let scheduling = SchedulerOptions { prefix_bytes, ..SchedulerOptions::default() };
    let scheduler = Scheduler::start(engine.clone(), scheduling).unwrap();
    let handle = scheduler.handle();
    let prompt = |i: u32| [&[i], &with_system(file, &[])[..]].concat();
    for i in 0..8 {
        assert_eq!(ask(&handle, &prompt(i), options(1, 4)).outcome().cached, 0);
        let bytes = handle.metrics().prefix_bytes;
        assert!(bytes <= prefix_bytes, "{bytes} of {prefix_bytes}");
    }
    assert_eq!(ask(&handle, &prompt(7), options(1, 4)).outcome().cached, SYSTEM);
    assert_eq!(ask(&handle, &prompt(0), options(1, 4)).outcome().cached, 0);
}

#[test]
fn kept_prefixes_leave_before_a_request_waits() {
    let file = "llama-b-f32.gguf";
    let engine = engine(file);
    let kv_bytes = Some(engine.kv_bytes(SYSTEM + 100));
    let scheduling = SchedulerOptions { kv_bytes, ..SchedulerOptions::default() };
    let scheduler = Scheduler::start(engine.clone(), scheduling).unwrap();
    let handle = scheduler.handle();
    for i in 0..3 {
        ask(&handle, &with_system(file, &[i, i]), options(1, 80)).outcome();
        let metrics = handle.metrics();
        assert!(metrics.prefix_bytes + metrics.kv_reserved <= metrics.kv_limit, "{metrics:?}");
    }
    assert!(handle.metrics().prefix_bytes > 0);
}
