//! Streamed experts change nothing but the time: every logit has the bits of a resident run.

use std::sync::{Arc, Mutex};

use turbospark_engine::{Engine, EngineOptions, IoMode, KvKind, ReadEngine, ReadMethod, Wanted};
use turbospark_experts::trace::{Trace, TraceHeader, TraceLayer, replay};
use turbospark_experts::{PolicyKind, RouteBatch, RouteSink};
use turbospark_format::Gguf;
use turbospark_model::{FeedForward, ModelSpec};

use crate::fixtures::{bits, folder, logits, longest, open, small};

/// Every small model with experts.
fn mixtures() -> impl Iterator<Item = &'static str> {
    small().filter(|file| {
        let spec = ModelSpec::from_gguf(&Gguf::open(folder().join(file)).unwrap()).unwrap();
        spec.layers.iter().any(|l| matches!(l.feed_forward, FeedForward::Moe(_)))
    })
}

fn options(slots: Option<usize>) -> EngineOptions {
    // A given way of reading: trying them takes longer than these models do.
    let reads = Some(ReadMethod { engine: ReadEngine::Threads(2), request_bytes: 1 << 20 });
    EngineOptions {
        threads: Some(2),
        kv: KvKind::F32,
        expert_slots: slots,
        reads,
        ..EngineOptions::default()
    }
}

fn run(engine: &Engine, tokens: &[u32], chunk: usize) -> Vec<u32> {
    bits(&logits(engine, tokens, chunk))
}

#[test]
fn streamed_equals_resident_at_the_smallest_and_at_the_largest_cache() {
    assert!(mixtures().count() >= 12);
    for file in mixtures() {
        let tokens = longest(file);
        let resident = run(&open(file, options(None)), &tokens, 512);
        for slots in [1, 2, 7, 1000] {
            let engine = open(file, options(Some(slots)));
            assert!(engine.io().is_some(), "{file} is not streamed");
            for chunk in [512, 7, 1] {
                assert!(run(&engine, &tokens, chunk) == resident, "{file}, {slots} slots, chunks of {chunk}");
            }
            let stats = engine.expert_stats();
            assert!(stats.bytes_read > 0 && stats.hits < stats.requests, "{file}, {slots} slots: {stats:?}");
        }
    }
}

#[test]
fn every_way_of_reading_gives_the_same_bits() {
    let file = "gpt_oss-b-f32.gguf";
    let tokens = longest(file);
    let resident = run(&open(file, options(None)), &tokens, 512);
    let mut read = 0;
    for io in [IoMode::Auto, IoMode::Buffered] {
        for engine in [ReadEngine::Threads(1), ReadEngine::Threads(4), ReadEngine::Uring(4)] {
            let reads = Some(ReadMethod { engine, request_bytes: 4096 });
            match Engine::open(folder().join(file), EngineOptions { io, reads, ..options(Some(3)) }) {
                Ok(engine) => {
                    assert!(run(&engine, &tokens, 16) == resident, "{io:?}, {reads:?}");
                    read += 1;
                }
                Err(error) => eprintln!("SKIPPED: {io:?}, {reads:?}: {error}"),
            }
        }
    }
    assert!(read >= 4, "threads work everywhere");
}

#[test]
fn guessing_the_next_layers_experts_changes_no_bit_and_no_count() {
    for file in ["gpt_oss-b-f32.gguf", "qwen3_next-b-f32.gguf", "gemma4_moe-b-f32.gguf"] {
        let tokens = longest(file);
        let resident = run(&open(file, options(None)), &tokens, 1);
        let counts = [true, false].map(|guess| {
            let engine = open(file, EngineOptions { look_ahead: Some(guess), ..options(Some(9)) });
            assert!(run(&engine, &tokens, 1) == resident, "{file}, guessing {guess}");
            let stats = engine.expert_stats();
            (stats.requests, stats.hits)
        });
        assert_eq!(counts[0], counts[1], "{file}");
    }
}

#[test]
fn a_cache_for_all_experts_reads_each_of_them_once() {
    let file = "qwen3_moe-b-f32.gguf";
    let tokens = longest(file);
    let engine = open(file, options(Some(1000)));
    let first = run(&engine, &tokens, 512);
    let after_first = engine.expert_stats();
    assert!(run(&engine, &tokens, 512) == first);
    let second = engine.expert_stats().since(&after_first);
    assert_eq!((second.hits, second.bytes_read), (second.requests, 0));
}

/// Collects the routing of an engine as a trace.
struct Collect(Arc<Mutex<Trace>>);

impl RouteSink for Collect {
    fn routed(&mut self, batch: &RouteBatch<'_>) {
        self.0.lock().unwrap().push(batch).unwrap();
    }
}

#[test]
fn a_replay_of_the_routing_counts_exactly_the_engines_hits() {
    for file in ["gpt_oss-b-f32.gguf", "qwen3_moe-b-f32.gguf", "deepseek_v3-b-f32.gguf"] {
        for slots in [1, 5, 12, 20] {
            let engine = open(file, options(Some(slots)));
            let layers = engine.spec().layers.iter().map(|l| match &l.feed_forward {
                FeedForward::Moe(m) => TraceLayer { n_experts: m.n_experts as u32, expert_bytes: 1 },
                FeedForward::Dense(_) => TraceLayer { n_experts: 0, expert_bytes: 0 },
            });
            let header = TraceHeader { model: file.to_owned(), top_k: 1, layers: layers.collect() };
            let trace = Arc::new(Mutex::new(Trace::new(header).unwrap()));
            engine.set_route_sink(Some(Box::new(Collect(trace.clone()))));
            let tokens = longest(file);
            // A prompt, then its end token by token.
            let (prompt, rest) = tokens.split_at(tokens.len() / 2);
            let mut sequence = engine.sequence();
            engine.feed(&mut sequence, prompt, Some(16), Wanted::Nothing, |_, _| {}).unwrap();
            engine.feed(&mut sequence, rest, Some(1), Wanted::Nothing, |_, _| {}).unwrap();
            let counted = engine.expert_stats();
            let cached = engine.cached_experts().unwrap();
            let replayed =
                replay(&trace.lock().unwrap(), PolicyKind::default(), cached).unwrap().total().counts;
            assert_eq!(
                (replayed.requests, replayed.hits),
                (counted.requests, counted.hits),
                "{file}, {slots} slots"
            );
        }
    }
}

#[test]
fn reading_ahead_takes_its_slots_from_those_allowed() {
    for slots in [2, 5, 7, 8, 40] {
        let cached = open("gpt_oss-b-f32.gguf", options(Some(slots))).cached_experts().unwrap();
        assert!(cached >= 1 && cached < slots, "{cached} of {slots}");
    }
}
