//! Decoding in the steady state asks the system for no memory: what a token needs is kept from the token before.
//!
//! A test binary of its own, since it counts what the whole process allocates.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use turbospark_engine::{Engine, EngineOptions, ReadEngine, ReadMethod, Wanted, argmax};

/// Allocations, and their bytes, of all threads.
static COUNT: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// The system's allocator, which counts.
struct Counting;

// SAFETY: every call is passed on as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(size as u64, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One test at a time counts.
static ALONE: Mutex<()> = Mutex::new(());

/// Tokens before the count begins: buffers have their size, the first page of the KV cache is there, and the cache of experts is
/// full.
const BEFORE: usize = 24;
/// Tokens that are counted: together with those before fewer than a page of the KV cache holds.
const COUNTED: usize = 24;
const MIXTURES: [&str; 6] = [
    "gpt_oss-b-f32.gguf",
    "gpt_oss-a-mxfp4.gguf",
    "qwen3_moe-b-f32.gguf",
    "deepseek_v3-b-f32.gguf",
    "gemma4_moe-b-f32.gguf",
    "qwen3_next-b-f32.gguf",
];
/// Runs, of which one has to be without any: a thread's own buffers come with its first part of the work, which may be late.
const RUNS: usize = 10;

fn open(file: &str, slots: Option<usize>) -> Engine {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/oracle").join(file);
    let reads = Some(ReadMethod { engine: ReadEngine::Threads(2), request_bytes: 1 << 20 });
    let options = EngineOptions { threads: Some(2), expert_slots: slots, reads, ..EngineOptions::default() };
    let engine = Engine::open(path, options).unwrap();
    // It is built on another thread, which allocates.
    let _ = engine.tokenizer();
    engine
}

/// Allocations and bytes of the counted tokens.
fn counted(engine: &Engine) -> (u64, u64) {
    let mut sequence = engine.sequence();
    let mut next = 1;
    let mut before = (0, 0);
    for i in 0..BEFORE + COUNTED {
        if i == BEFORE {
            before = (COUNT.load(Ordering::Relaxed), BYTES.load(Ordering::Relaxed));
        }
        let fed = [next % 60];
        let logits = |_: usize, logits: &mut [f32]| next = argmax(logits) as u32 + i as u32 % 5;
        engine.feed(&mut sequence, &fed, None, Wanted::Last, logits).unwrap();
    }
    (COUNT.load(Ordering::Relaxed) - before.0, BYTES.load(Ordering::Relaxed) - before.1)
}

#[track_caller]
fn allocates_nothing(file: &str, slots: Option<usize>) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let engine = open(file, slots);
    let runs: Vec<_> = (0..RUNS).map(|_| counted(&engine)).take_while(|&(count, _)| count > 0).collect();
    assert!(runs.len() < RUNS, "{file}: allocations and bytes of {COUNTED} tokens in each run: {runs:?}");
}

#[test]
fn dense_models_decode_without_allocations() {
    for file in ["llama-a-f32.gguf", "gemma3-b-f32.gguf", "qwen3_5-b-f32.gguf"] {
        allocates_nothing(file, None);
    }
}

#[test]
fn mixtures_in_memory_decode_without_allocations() {
    for file in MIXTURES {
        allocates_nothing(file, None);
    }
}

#[test]
fn streamed_mixtures_decode_without_allocations() {
    for file in MIXTURES {
        allocates_nothing(file, Some(3));
    }
}
