//! Many requests at once, of different lengths and times, beside others that are cancelled: each is answered as alone.

use std::time::Duration;

use turbospark_engine::scheduler::{Scheduler, SchedulerOptions};
use turbospark_engine::{Engine, EngineOptions, SplitMix64};

use super::{alone, ask, options};
use crate::fixtures::{engine, exact, longest, open, prompts};

/// Prompts that begin alike and differently, short ones and long ones.
fn mixed(file: &str) -> Vec<Vec<u32>> {
    let [short, middle, long] = prompts(file);
    let twice = [long.clone(), middle.clone()].concat();
    let other = [&long[..long.len() - 20], &short].concat();
    vec![short, twice, long[..40].to_vec(), middle, other, long]
}

fn as_alone(file: &str, engine: &Engine, scheduling: SchedulerOptions) {
    let scheduler = Scheduler::start(engine.clone(), scheduling).unwrap();
    let handle = scheduler.handle();
    let prompts = mixed(file);
    let mut random = SplitMix64::new(7);
    let (mut asked, mut disturbing) = (Vec::new(), Vec::new());
    for i in 0..14_u64 {
        let prompt = &prompts[random.below(prompts.len() as u64) as usize];
        let tokens = 1 + random.below(24) as usize;
        if i % 4 == 3 {
            disturbing.push(ask(&handle, prompt, options(i, 1000)));
        } else {
            asked.push((i, prompt.clone(), tokens, ask(&handle, prompt, options(i, tokens))));
        }
        if i % 5 == 4 {
            disturbing.pop();
        }
        std::thread::sleep(Duration::from_micros(random.below(4000)));
    }
    drop(disturbing);
    for (seed, prompt, tokens, asked) in asked {
        let outcome = asked.outcome();
        assert!(outcome.failed.is_none(), "{file}: {:?}", outcome.failed);
        let got = (outcome.tokens, outcome.text);
        assert_eq!(got, alone(engine, &prompt, options(seed, tokens)), "{file}, request {seed}");
    }
}

fn tight() -> SchedulerOptions {
    SchedulerOptions { max_running: 5, prompt_rows_per_step: 16, ..SchedulerOptions::default() }
}

#[test]
fn all_kinds_of_layers_answer_as_alone() {
    for file in [
        "llama-b-f32.gguf",
        "gemma3-b-f32.gguf",
        "gemma4_e-b-f32.gguf",
        "qwen3_5-b-f32.gguf",
        "qwen3_next-b-f32.gguf",
        "deepseek_v3-b-f32.gguf",
        "gpt_oss-a-mxfp4.gguf",
    ] {
        as_alone(file, &engine(file), tight());
    }
}

#[test]
fn streamed_mixtures_answer_as_alone_with_few_expert_slots() {
    for (file, slots) in
        [("qwen3_moe-b-f32.gguf", 3), ("gpt_oss-b-f32.gguf", 5), ("gemma4_moe-b-f32.gguf", 4)]
    {
        let options = EngineOptions { expert_slots: Some(slots), ..exact() };
        as_alone(file, &open(file, options), tight());
    }
}

#[test]
fn small_chunks_and_small_prefix_caches_change_nothing() {
    for file in ["llama-b-f32.gguf", "gemma3-b-f32.gguf", "qwen3_5-b-f32.gguf"] {
        let engine = open(file, EngineOptions { prefill_chunk: Some(7), threads: Some(2), ..exact() });
        for prefix_bytes in [0, engine.kv_bytes(200)] {
            let kv_bytes = Some(3 * engine.kv_bytes(engine.context().min(1200)));
            as_alone(file, &engine, SchedulerOptions { prefix_bytes, kv_bytes, ..tight() });
        }
    }
}

#[test]
fn a_long_prompt_lets_those_who_generate_go_on() {
    let file = "llama-b-f32.gguf";
    let engine = engine(file);
    let scheduling = SchedulerOptions { prompt_rows_per_step: 8, ..SchedulerOptions::default() };
    let scheduler = Scheduler::start(engine.clone(), scheduling).unwrap();
    let handle = scheduler.handle();
    let generating = ask(&handle, &[1, 2, 3], options(1, 200));
    generating.first();
    let before = handle.metrics();
    let long = longest(file).repeat(3);
    let outcome = ask(&handle, &long, options(2, 1)).outcome();
    assert_eq!(outcome.tokens.len(), 1);
    // Each step had a few of its rows, and a row of the other.
    let after = handle.metrics();
    assert!(after.steps - before.steps >= long.len() as u64 / 8, "{before:?} {after:?}");
    assert_eq!(generating.outcome().tokens.len(), 199, "after the first");
}
