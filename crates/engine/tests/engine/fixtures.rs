//! Fixtures: a GGUF, its prompts, and the reference logits.

use std::path::PathBuf;

use serde_json::Value;
use turbospark_engine::{Engine, EngineOptions, KvKind, Wanted};
use turbospark_format::SafeTensors;

/// Fixtures with float32 weights.
pub(crate) const FLOAT: [&str; 5] = ["llama-a", "llama3_rope-a", "qwen2-a", "qwen3-a", "gemma3-a"];

/// The folder of fixtures.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/oracle")
}

/// `NAME.json`.
pub(crate) fn description(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(folder().join(format!("{name}.json"))).unwrap()).unwrap()
}

/// `NAME.safetensors`.
pub(crate) fn reference(name: &str) -> SafeTensors {
    SafeTensors::open(folder().join(format!("{name}.safetensors"))).unwrap()
}

/// The array of ids at `value`.
pub(crate) fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|v| v.as_u64().unwrap() as u32).collect()
}

/// The array of numbers at `value`.
pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

/// An engine on `file` with an f32 cache and one thread.
pub(crate) fn engine(file: &str) -> Engine {
    open(file, EngineOptions { threads: Some(1), kv: KvKind::F32, ..EngineOptions::default() })
}

pub(crate) fn open(file: &str, options: EngineOptions) -> Engine {
    Engine::open(folder().join(file), options).unwrap()
}

/// Logits of all rows of `tokens`, `[rows, n_vocab]`, fed to a new sequence in chunks.
pub(crate) fn logits(engine: &Engine, tokens: &[u32], chunk: usize) -> Vec<f32> {
    let mut all = Vec::new();
    let mut sequence = engine.sequence();
    engine
        .feed(&mut sequence, tokens, Some(chunk), Wanted::All, |row, logits| {
            assert_eq!(row * logits.len(), all.len(), "rows come in order");
            all.extend_from_slice(logits);
        })
        .unwrap();
    assert_eq!(sequence.len(), tokens.len());
    all
}

/// The largest absolute difference.
pub(crate) fn distance(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter()
        .zip(b)
        .map(|(a, b)| f64::from((a - b).abs()))
        .fold(0.0, |m, d| if d.is_nan() { d } else { m.max(d) })
}
