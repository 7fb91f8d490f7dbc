//! Fixtures: a GGUF, its prompts, the reference logits, and copies of the file with tensors changed.
//!
//! Invariant: the two tables name every model in the folder, so what loops over them covers every family.

use std::path::PathBuf;

use serde_json::Value;
use turbospark_engine::{Engine, EngineOptions, KvKind, Wanted};
use turbospark_format::{BlockType, Gguf, SafeTensors};

/// Models with float32 weights and a reference within [`FLOAT_TOLERANCE`].
pub(crate) const FLOAT: &[&str] = &[
    "deepseek_v2-b-f32.gguf",
    "deepseek_v2_groups-b-f32.gguf",
    "deepseek_v3-b-f32.gguf",
    "gemma3-a-f32.gguf",
    "gemma3-b-f32.gguf",
    "gemma4-b-f32.gguf",
    "gemma4_e-b-f32.gguf",
    "gemma4_moe-b-f32.gguf",
    "glm4_moe-b-f32.gguf",
    "glm4_moe-b-mtp-f32.gguf",
    "gpt_oss-b-f32.gguf",
    "granitemoe-b-f32.gguf",
    "llama-a-f32.gguf",
    "llama-b-f32.gguf",
    "llama3_rope-a-f32.gguf",
    "llama3_rope-b-f32.gguf",
    "minimax_m2-b-f32.gguf",
    "ministral3-b-f32.gguf",
    "mixtral-b-f32.gguf",
    "olmoe-b-f32.gguf",
    "olmoe_gqa-b-f32.gguf",
    "phi3-b-f32.gguf",
    "qwen2-a-f32.gguf",
    "qwen2-b-f32.gguf",
    "qwen2_moe-b-f32.gguf",
    "qwen3-a-f32.gguf",
    "qwen3-b-f32.gguf",
    "qwen3_5-b-f32.gguf",
    "qwen3_5-b-mtp-f32.gguf",
    "qwen3_5_moe-b-f32.gguf",
    "qwen3_moe-b-f32.gguf",
    "qwen3_next-b-f32.gguf",
    "qwen3_vl-b-f32.gguf",
    "smollm3-b-f32.gguf",
];

/// Models in half precision or blocks.
pub(crate) const REDUCED: &[&str] = &[
    "gpt_oss-a-mxfp4.gguf",
    "llama_16-a-bf16.gguf",
    "llama_16-a-f16.gguf",
    "llama_q-a-iq4_xs.gguf",
    "llama_q-a-q2_k.gguf",
    "llama_q-a-q3_k_m.gguf",
    "llama_q-a-q4_0.gguf",
    "llama_q-a-q4_k_m.gguf",
    "llama_q-a-q8_0.gguf",
    "qwen3_moe_q-a-q4_k_m.gguf",
];

/// Float weights, float cache: the fixtures' tolerance on logits.
pub(crate) const FLOAT_TOLERANCE: f64 = 1e-3;

/// Every model.
pub(crate) fn files() -> impl Iterator<Item = &'static str> {
    FLOAT.iter().chain(REDUCED).copied()
}

/// Models small enough to be run a thousand times: one or more of each family.
pub(crate) fn small() -> impl Iterator<Item = &'static str> {
    FLOAT.iter().copied().filter(|file| file.contains("-b-"))
}

/// The folder of fixtures.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/oracle")
}

/// `NAME` of `NAME-KIND.gguf`: its first two parts.
pub(crate) fn name(file: &str) -> &str {
    let (at, _) = file.match_indices('-').nth(1).unwrap();
    &file[..at]
}

/// `NAME.json` of a model file.
pub(crate) fn description(file: &str) -> Value {
    let path = folder().join(format!("{}.json", name(file)));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// `NAME.safetensors` of a model file.
pub(crate) fn reference(file: &str) -> SafeTensors {
    SafeTensors::open(folder().join(format!("{}.safetensors", name(file)))).unwrap()
}

/// The array of ids at `value`.
pub(crate) fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|v| v.as_u64().unwrap() as u32).collect()
}

/// The array of numbers at `value`.
pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

/// The longest prompt of `file`: past every window, and past the first page of a cache.
pub(crate) fn longest(file: &str) -> Vec<u32> {
    let text = description(file);
    let prompts = text["prompts"].as_array().unwrap();
    let longest = prompts.iter().map(|p| ids(&p["ids"])).max_by_key(Vec::len).unwrap();
    assert!(longest.len() > 64);
    longest
}

/// Three prompts of different lengths.
pub(crate) fn prompts(file: &str) -> [Vec<u32>; 3] {
    let long = longest(file);
    let short = ids(&description(file)["prompts"][0]["ids"]);
    let middle = long.iter().rev().take(48).copied().collect();
    [short, middle, long]
}

/// One thread and an f32 cache.
pub(crate) fn exact() -> EngineOptions {
    EngineOptions { threads: Some(1), kv: KvKind::F32, ..EngineOptions::default() }
}

/// An engine on `file` with an f32 cache and one thread.
pub(crate) fn engine(file: &str) -> Engine {
    open(file, exact())
}

pub(crate) fn open(file: &str, options: EngineOptions) -> Engine {
    Engine::open(folder().join(file), options).unwrap()
}

/// A copy of `file` in memory whose float32 tensors went through `edit(name, values)`.
pub(crate) fn edited(file: &str, mut edit: impl FnMut(&str, &mut [f32])) -> Gguf {
    let mut bytes = std::fs::read(folder().join(file)).unwrap();
    let source = Gguf::from_bytes(bytes.clone()).unwrap();
    for tensor in source.tensors().iter().filter(|t| t.block_type == BlockType::F32) {
        let stored = &mut bytes[tensor.offset as usize..][..tensor.bytes as usize];
        let mut values: Vec<f32> =
            stored.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        edit(&tensor.name, &mut values);
        for (bytes, value) in stored.chunks_exact_mut(4).zip(values) {
            bytes.copy_from_slice(&value.to_le_bytes());
        }
    }
    Gguf::from_bytes(bytes).unwrap()
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

/// The bits of logits: what is the same to the last.
pub(crate) fn bits(logits: &[f32]) -> Vec<u32> {
    logits.iter().map(|x| x.to_bits()).collect()
}

/// The largest absolute difference; NaN if there is one.
pub(crate) fn distance(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| f64::from((a - b).abs())).fold(0.0, worse)
}

fn worse(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

/// How far `engine` is from the reference of `file` on all its prompts and continuations. `reading` is put before the names of the
/// reference's tensors: `""`, or `"alt_"` for prompts alone in the other reading of the file.
pub(crate) fn off(engine: &Engine, file: &str, reading: &str) -> f64 {
    let (text, reference, n_vocab) = (description(file), reference(file), engine.spec().n_vocab);
    let mut off = 0.0;
    for (p, prompt) in text["prompts"].as_array().unwrap().iter().enumerate() {
        let (prompt_ids, greedy) = (ids(&prompt["ids"]), ids(&prompt["greedy"]));
        let mut positions: Vec<usize> =
            ids(&prompt["logits_positions"]).iter().map(|&p| p as usize).collect();
        let mut expected = reference.f32(&format!("{reading}p{p}_logits")).unwrap();
        let mut tokens = prompt_ids.clone();
        if reading.is_empty() {
            positions.extend(prompt_ids.len()..prompt_ids.len() + greedy.len());
            expected.extend(reference.f32(&format!("p{p}_gen_logits")).unwrap());
            tokens.extend(greedy);
        }
        let all = logits(engine, &tokens, 512);
        assert_eq!(expected.len(), positions.len() * n_vocab);
        for (position, row) in positions.iter().zip(expected.chunks_exact(n_vocab)) {
            off = worse(off, distance(&all[position * n_vocab..][..n_vocab], row));
        }
    }
    off
}
