//! A file that makes no model is refused with the key or tensor, what was expected and what was found.

use crate::edits::{Edit, edited};
use turbospark_format::{Array, Value};

const LLAMA: &str = "llama-a-f32.gguf";

/// Edits of one fixture, and texts that the error has to contain.
pub(crate) type Case = (&'static str, Vec<Edit>, &'static [&'static str]);

pub(crate) fn text(s: &str) -> Value {
    Value::String(s.to_owned())
}

fn cases() -> Vec<Case> {
    use Edit::{Add, Reshape, Set, Unset, Without};
    vec![
        (LLAMA, vec![Unset("general.architecture")], &["general.architecture", "missing"]),
        (
            LLAMA,
            vec![Set("general.architecture", text("mamba"))],
            &["mamba", "supported: deepseek2, gemma3", "qwen2, qwen2moe"],
        ),
        (LLAMA, vec![Set("general.architecture", Value::U32(1))], &["general.architecture"]),
        (
            LLAMA,
            vec![Set("tokenizer.ggml.tokens", Value::Array(Array::String(vec!["a".to_owned(); 383])))],
            &["tokenizer.ggml.tokens", "383", "384"],
        ),
        (LLAMA, vec![Unset("llama.block_count")], &["llama.block_count", "missing"]),
        (LLAMA, vec![Unset("llama.embedding_length")], &["llama.embedding_length"]),
        (LLAMA, vec![Unset("llama.feed_forward_length")], &["llama.feed_forward_length"]),
        (LLAMA, vec![Unset("llama.attention.head_count")], &["llama.attention.head_count"]),
        (LLAMA, vec![Unset("llama.context_length")], &["llama.context_length"]),
        (LLAMA, vec![Unset("llama.attention.layer_norm_rms_epsilon")], &["layer_norm_rms_epsilon"]),
        (LLAMA, vec![Set("llama.block_count", text("four"))], &["llama.block_count"]),
        (LLAMA, vec![Set("llama.attention.head_count", Value::U32(0))], &["head_count", "0", "at least 1"]),
        (LLAMA, vec![Set("llama.attention.head_count_kv", Value::U32(0))], &["head_count_kv", "at least 1"]),
        (
            LLAMA,
            vec![Set("llama.attention.head_count_kv", Value::U32(3))],
            &["head_count_kv", "3", "divisor", "4"],
        ),
        (LLAMA, vec![Set("llama.attention.key_length", Value::U32(31))], &["key_length", "31", "even"]),
        (LLAMA, vec![Set("llama.attention.value_length", Value::U32(16))], &["value_length", "16", "32"]),
        (LLAMA, vec![Set("llama.rope.dimension_count", Value::U32(16))], &["dimension_count", "16", "32"]),
        (
            LLAMA,
            vec![
                Set("llama.attention.head_count", Value::U64(1 << 62)),
                Unset("llama.attention.head_count_kv"),
            ],
            &["head_count"],
        ),
        (LLAMA, vec![Set("llama.embedding_length", Value::U64(u64::MAX))], &["embedding_length", "at most"]),
        (LLAMA, vec![Set("llama.block_count", Value::U64(u64::MAX))], &["block_count", "at most"]),
        (LLAMA, vec![Set("llama.block_count", Value::U32(1 << 28))], &["blk.4.attn_norm.weight", "missing"]),
        (LLAMA, vec![Set("llama.block_count", Value::U32(3))], &["no use for 9", "blk.3."]),
        (
            LLAMA,
            vec![Set("llama.attention.layer_norm_rms_epsilon", Value::F32(f32::NAN))],
            &["layer_norm_rms_epsilon", "NaN"],
        ),
        (LLAMA, vec![Set("llama.rope.freq_base", Value::F32(-1.0))], &["rope.freq_base", "-1"]),
        (
            LLAMA,
            vec![Set("llama.rope.scaling.type", text("longrope"))],
            &["not yet", "longrope", "llama.rope.scaling.type"],
        ),
        (LLAMA, vec![Set("llama.rope.scaling.attn_factor", Value::F32(1.5))], &["not yet", "attn_factor"]),
        (LLAMA, vec![Set("llama.attention.sliding_window", Value::U32(64))], &["not yet", "sliding_window"]),
        (LLAMA, vec![Without("blk.2.attn_k.weight")], &["blk.2.attn_k.weight", "[64, 64]", "missing"]),
        (LLAMA, vec![Without("output_norm.weight")], &["output_norm.weight", "missing"]),
        (LLAMA, vec![Without("token_embd.weight")], &["token_embd.weight", "missing"]),
        (
            LLAMA,
            vec![Reshape("blk.1.ffn_down.weight", &[64, 96])],
            &["blk.1.ffn_down.weight", "[64, 96]", "[96, 64]"],
        ),
        (LLAMA, vec![Reshape("output_norm.weight", &[8, 8])], &["output_norm.weight", "[8, 8]", "[64]"]),
        (LLAMA, vec![Reshape("token_embd.weight", &[64 * 384])], &["token_embd.weight"]),
        (LLAMA, vec![Add("blk.0.attn_q.bias", &[128])], &["no use for 1", "blk.0.attn_q.bias"]),
        (LLAMA, vec![Add("blk.9.attn_norm.weight", &[64])], &["blk.9.attn_norm.weight"]),
        (LLAMA, vec![Add("rope_freqs.weight", &[8])], &["rope_freqs.weight", "[8]", "[16]"]),
        ("qwen2-a-f32.gguf", vec![Without("blk.0.attn_v.bias")], &["blk.0.attn_v.bias", "missing"]),
        ("qwen2-a-f32.gguf", vec![Add("blk.0.attn_output.bias", &[64])], &["blk.0.attn_output.bias"]),
        (
            "qwen3-a-f32.gguf",
            vec![Without("blk.3.attn_q_norm.weight")],
            &["blk.3.attn_q_norm.weight", "[64]"],
        ),
        ("qwen3-a-f32.gguf", vec![Unset("qwen3.attention.key_length")], &["value_length", "64", "16"]),
        ("gemma3-a-f32.gguf", vec![Without("blk.0.post_ffw_norm.weight")], &["blk.0.post_ffw_norm.weight"]),
        (
            "gemma3-a-f32.gguf",
            vec![Set("gemma3.attention.sliding_window_pattern", Value::U32(0))],
            &["sliding_window_pattern"],
        ),
    ]
}

/// Requires an error that contains all texts, of each case.
pub(crate) fn refused(cases: Vec<Case>) {
    for (i, (file, edits, expected)) in cases.into_iter().enumerate() {
        let error = edited(file, &edits).expect_err(&format!("case {i} of {file}")).to_string();
        for part in expected {
            assert!(error.contains(part), "case {i} of {file}: {error:?} lacks {part:?}");
        }
    }
}

#[test]
fn each_malformed_file_is_refused_by_name() {
    refused(cases());
}

#[test]
fn the_unchanged_copies_are_accepted() {
    for file in ["llama-a", "llama3_rope-a", "qwen2-a", "qwen3-a", "gemma3-a"] {
        edited(&format!("{file}-f32.gguf"), &[]).unwrap();
    }
}

#[test]
fn a_head_count_that_divides_nothing_needs_a_key_length() {
    let edits = [
        Edit::Set("qwen2.attention.head_count", Value::U32(3)),
        Edit::Set("qwen2.attention.head_count_kv", Value::U32(3)),
    ];
    let error = edited("qwen2-a-f32.gguf", &edits).unwrap_err().to_string();
    assert!(error.contains("qwen2.attention.head_count") && error.contains("64"), "{error}");
}
