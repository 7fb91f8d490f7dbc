//! Tokens per second of 1, 4 and 16 requests at once, and the time to a first token behind a known system prompt:
//! `cargo run --release -p turbospark-engine --example concurrency -- model.gguf [THREADS]`.

use std::sync::mpsc::channel;
use std::time::Instant;

use turbospark_engine::scheduler::{Event, Handle, Request, RequestStats, Scheduler, SchedulerOptions};
use turbospark_engine::{Engine, EngineOptions, GenerateOptions, SamplingParams};

const PROMPT: usize = 64;
const ANSWER: usize = 64;
const SYSTEM: usize = 500;

type Failure = Box<dyn std::error::Error>;

/// Tokens that no two requests have in common from the start.
fn prompt(engine: &Engine, which: usize, len: usize) -> Vec<u32> {
    let n_vocab = engine.spec().n_vocab as u64;
    (0..len as u64).map(|i| ((which as u64 + 1) * 7919 + i * 104_729) % n_vocab).map(|t| t as u32).collect()
}

/// Asks all prompts at once and waits for the ends.
fn run(handle: &Handle, prompts: Vec<Vec<u32>>) -> Result<Vec<RequestStats>, Failure> {
    let (sender, events) = channel();
    let mut tickets = Vec::new();
    for (client, prompt) in prompts.into_iter().enumerate() {
        let sender = sender.clone();
        let options = GenerateOptions {
            sampling: SamplingParams { seed: client as u64, ..SamplingParams::default() },
            max_tokens: Some(ANSWER),
            ignore_stop_tokens: true,
            ..GenerateOptions::default()
        };
        let on_event = Box::new(move |event| sender.send(event).is_ok());
        tickets.push(handle.submit(Request { prompt, options, client: client as u64, on_event })?);
    }
    drop(sender);
    let mut ends = Vec::new();
    for event in events {
        match event {
            Event::Finished { stats, .. } => ends.push(stats),
            Event::Failed(error) => return Err(error.into()),
            Event::Started { .. } | Event::Piece(_) => {}
        }
    }
    Ok(ends)
}

fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let model = args.next().ok_or("usage: concurrency MODEL [THREADS]")?;
    let threads = args.next().map(|n| n.parse()).transpose()?;
    let engine = Engine::open(model, EngineOptions { threads, ..EngineOptions::default() })?;
    let scheduler = Scheduler::start(engine.clone(), SchedulerOptions::default())?;
    let handle = scheduler.handle();
    run(&handle, vec![prompt(&engine, 99, PROMPT)])?;
    let mut which = 100;
    for n in [1, 4, 16] {
        let prompts = (which..which + n).map(|w| prompt(&engine, w, PROMPT)).collect();
        which += n;
        let (before, start) = (handle.metrics(), Instant::now());
        let ends = run(&handle, prompts)?;
        let seconds = start.elapsed().as_secs_f64();
        let after = handle.metrics();
        let tokens: usize = ends.iter().map(|s| s.generated_tokens).sum();
        let first = ends.iter().map(|s| s.time_to_first_token.as_secs_f64()).sum::<f64>() / n as f64;
        println!(
            "{n:2} at once: {:7.1} tokens/s generated, {:7.1} with prompts, {} steps, first token after {:.0} ms",
            tokens as f64 / seconds,
            (tokens + n * PROMPT) as f64 / seconds,
            after.steps - before.steps,
            first * 1e3
        );
    }
    let system = prompt(&engine, 7, SYSTEM);
    for user in [1, 2, 3] {
        let asked = [&system[..], &prompt(&engine, 1000 + user, 12)].concat();
        let stats = run(&handle, vec![asked])?[0];
        println!(
            "system prompt of {SYSTEM}, request {user}: {} of {} tokens known, first token after {:.1} ms",
            stats.cached_tokens,
            stats.prompt_tokens,
            stats.time_to_first_token.as_secs_f64() * 1e3
        );
    }
    Ok(())
}
