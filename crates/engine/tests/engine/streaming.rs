//! Streamed experts change nothing but the time: every logit has the bits of a resident run.

use turbospark_engine::{Engine, EngineOptions, IoMode, KvKind, ReadEngine, ReadMethod};
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
