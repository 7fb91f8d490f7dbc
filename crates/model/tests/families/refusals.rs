//! Keys of experts, rotary scaling, latent attention and the rest, each broken in turn: the error names key or tensor.

use crate::edits::{Edit, edited};
use crate::malformed::{Case, refused, text};
use turbospark_format::{Array, Value};

const MIXTRAL: &str = "mixtral-b-f32.gguf";
const QWEN2_MOE: &str = "qwen2_moe-b-f32.gguf";
const QWEN3_MOE: &str = "qwen3_moe-b-f32.gguf";
const GPT_OSS: &str = "gpt_oss-b-f32.gguf";
const OLMOE: &str = "olmoe-b-f32.gguf";
const MINIMAX: &str = "minimax_m2-b-f32.gguf";
const GLM: &str = "glm4_moe-b-f32.gguf";
const V2: &str = "deepseek_v2-b-f32.gguf";
const V3: &str = "deepseek_v3-b-f32.gguf";
const GRANITE: &str = "granitemoe-b-f32.gguf";
const PHI3: &str = "phi3-b-f32.gguf";
const MINISTRAL: &str = "ministral3-b-f32.gguf";

fn set(key: &'static str, n: u32) -> Edit {
    Edit::Set(key, Value::U32(n))
}

fn float(key: &'static str, x: f32) -> Edit {
    Edit::Set(key, Value::F32(x))
}

fn each(key: &'static str, numbers: &[u32]) -> Edit {
    Edit::Set(key, Value::Array(Array::U32(numbers.to_vec())))
}

#[test]
fn experts() {
    use Edit::{Add, Reshape, Unset, Without};
    let cases: Vec<Case> = vec![
        (MIXTRAL, vec![Unset("llama.expert_used_count")], &["llama.expert_used_count", "missing"]),
        (MIXTRAL, vec![Unset("llama.expert_count")], &["llama.expert_count", "missing"]),
        (MIXTRAL, vec![set("llama.expert_used_count", 0)], &["llama.expert_used_count", "0", "at least 1"]),
        (MIXTRAL, vec![set("llama.expert_count", 0)], &["llama.expert_count", "0", "at least 1"]),
        (MIXTRAL, vec![set("llama.expert_used_count", 7)], &["expert_used_count", "7", "at most", "(6)"]),
        (MIXTRAL, vec![set("llama.expert_count", 5)], &["blk.0.ffn_gate_inp.weight", "[40, 6]", "[40, 5]"]),
        (MIXTRAL, vec![set("llama.expert_count", u32::MAX)], &["llama.expert_count", "at most"]),
        (MIXTRAL, vec![set("llama.feed_forward_length", 8)], &["blk.0.ffn_gate_exps.weight"]),
        (
            MIXTRAL,
            vec![Unset("llama.expert_count"), Unset("llama.expert_used_count")],
            &["blk.0.ffn_gate.weight"],
        ),
        (
            MIXTRAL,
            vec![Reshape("blk.1.ffn_up_exps.weight", &[14, 40, 6])],
            &["blk.1.ffn_up_exps.weight", "[14, 40, 6]", "[40, 14, 6]"],
        ),
        (MIXTRAL, vec![Without("blk.1.ffn_down_exps.weight")], &["blk.1.ffn_down_exps.weight", "missing"]),
        ("llama-b-f32.gguf", vec![set("llama.expert_count", 4)], &["llama.expert_used_count", "missing"]),
        (QWEN3_MOE, vec![Unset("qwen3moe.expert_count")], &["qwen3moe.expert_count", "missing"]),
        (QWEN3_MOE, vec![Without("blk.0.ffn_gate_inp.weight")], &["blk.0.ffn_gate_inp.weight"]),
        (QWEN2_MOE, vec![Without("blk.0.ffn_gate_inp_shexp.weight")], &["blk.0.ffn_gate_inp_shexp.weight"]),
        (
            QWEN2_MOE,
            vec![set("qwen2moe.expert_shared_feed_forward_length", 2)],
            &["blk.0.ffn_gate_shexp.weight"],
        ),
        (GPT_OSS, vec![Without("blk.1.ffn_up_exps.bias")], &["blk.1.ffn_up_exps.bias", "missing"]),
        (GPT_OSS, vec![Without("blk.2.ffn_gate_inp.bias")], &["blk.2.ffn_gate_inp.bias"]),
        (GPT_OSS, vec![Without("blk.0.attn_sinks.weight")], &["blk.0.attn_sinks.weight", "[3]"]),
        (GPT_OSS, vec![Unset("gpt-oss.attention.sliding_window")], &["sliding_window", "missing"]),
        (GPT_OSS, vec![set("gpt-oss.attention.sliding_window", 0)], &["sliding_window", "at least 1"]),
        (GPT_OSS, vec![Unset("gpt-oss.expert_feed_forward_length")], &["expert_feed_forward_length"]),
        (OLMOE, vec![float("olmoe.attention.clamp_kqv", 8.0)], &["not yet", "clamp", "clamp_kqv` = 8"]),
        (OLMOE, vec![Reshape("blk.0.attn_k_norm.weight", &[8, 5])], &["blk.0.attn_k_norm.weight", "[40]"]),
        (MINIMAX, vec![Without("blk.0.exp_probs_b.bias")], &["blk.0.exp_probs_b.bias"]),
        (MINIMAX, vec![set("minimax-m2.expert_gating_func", 3)], &["expert_gating_func", "3", "2 (sigmoid)"]),
        (MINIMAX, vec![set("minimax-m2.rope.dimension_count", 7)], &["dimension_count", "7", "even"]),
        (MINIMAX, vec![set("minimax-m2.rope.dimension_count", 4096)], &["dimension_count", "4096", "up to"]),
        (V3, vec![set("deepseek2.expert_group_count", 5)], &["expert_group_count", "5", "divisor"]),
        (V3, vec![set("deepseek2.expert_group_used_count", 0)], &["expert_group_used_count", "at least 1"]),
        (V3, vec![set("deepseek2.expert_group_used_count", 99)], &["expert_group_used_count", "99"]),
        (V3, vec![float("deepseek2.expert_weights_scale", f32::INFINITY)], &["expert_weights_scale", "inf"]),
        (GLM, vec![Without("blk.1.ffn_up_shexp.weight")], &["blk.1.ffn_up_shexp.weight"]),
        (GLM, vec![set("glm4moe.leading_dense_block_count", 0)], &["blk.0.ffn_gate_inp.weight"]),
        (GLM, vec![set("glm4moe.nextn_predict_layers", 99)], &["nextn_predict_layers", "99", "less than"]),
        (GRANITE, vec![Unset("granitemoe.logit_scale")], &["logit_scale", "missing"]),
        (GRANITE, vec![float("granitemoe.logit_scale", 0.0)], &["logit_scale", "above 0"]),
        (GRANITE, vec![float("granitemoe.residual_scale", -1.0)], &["residual_scale", "-1"]),
        (QWEN3_MOE, vec![Add("blk.0.exp_probs_b.bias", &[7])], &["no use for 1", "blk.0.exp_probs_b.bias"]),
    ];
    refused(cases);
}

#[test]
fn mixers_and_rotary_embeddings() {
    use Edit::{Add, Set, Unset, Without};
    let yarn = |key: &'static str, x: f32| vec![float(key, x)];
    let cases: Vec<Case> = vec![
        (GPT_OSS, vec![Unset("gpt-oss.rope.scaling.factor")], &["gpt-oss.rope.scaling.factor", "missing"]),
        (GPT_OSS, yarn("gpt-oss.rope.scaling.factor", f32::NAN), &["rope.scaling.factor", "NaN"]),
        (
            GPT_OSS,
            yarn("gpt-oss.rope.scaling.yarn_beta_slow", 64.0),
            &["yarn_beta_slow", "64", "yarn_beta_fast"],
        ),
        (GPT_OSS, yarn("gpt-oss.rope.scaling.yarn_ext_factor", 0.5), &["not yet", "yarn_ext_factor"]),
        (GPT_OSS, vec![set("gpt-oss.rope.scaling.original_context_length", 0)], &["original_context_length"]),
        (V2, yarn("deepseek2.rope.scaling.yarn_log_multiplier", 1e30), &["yarn_log_multiplier"]),
        (V2, vec![Add("blk.0.attn_kv_b.weight", &[4, 4])], &["not yet", "convert", "blk.0.attn_kv_b.weight"]),
        (V2, vec![Unset("deepseek2.attention.kv_lora_rank")], &["kv_lora_rank", "missing"]),
        (V2, vec![Unset("deepseek2.attention.key_length_mla")], &["key_length_mla", "missing"]),
        (V2, vec![set("deepseek2.attention.key_length_mla", 2)], &["key_length_mla", "more than"]),
        (V2, vec![set("deepseek2.attention.key_length", 6)], &["attention.key_length", "kv_lora_rank"]),
        (V2, vec![set("deepseek2.rope.dimension_count", 5)], &["rope.dimension_count", "even"]),
        (V2, vec![Without("blk.1.attn_k_b.weight")], &["blk.1.attn_k_b.weight", "missing"]),
        (V2, vec![set("deepseek2.attention.q_lora_rank", 12)], &["blk.0.attn_q_a.weight"]),
        (V3, vec![Unset("deepseek2.attention.q_lora_rank")], &["blk.0.attn_q.weight"]),
        (V3, yarn("deepseek2.attention.temperature_scale", 0.1), &["not yet", "temperature_scale"]),
        (MINISTRAL, yarn("mistral3.attention.temperature_scale", f32::NAN), &["temperature_scale", "NaN"]),
        (
            MINISTRAL,
            vec![Unset("mistral3.rope.scaling.original_context_length")],
            &["original_context_length", "missing"],
        ),
        (
            PHI3,
            vec![Add("rope_factors_long.weight", &[8])],
            &["not yet", "LongRoPE", "rope_factors_long.weight"],
        ),
        (PHI3, vec![Without("blk.0.attn_qkv.weight")], &["blk.0.attn_q.weight", "missing"]),
        (
            "llama-b-f32.gguf",
            vec![each("llama.attention.head_count_kv", &[1])],
            &["head_count_kv", "array of 1", "2"],
        ),
        (
            "llama-b-f32.gguf",
            vec![each("llama.attention.head_count_kv", &[1, 0])],
            &["head_count_kv", "at least 1"],
        ),
        (
            "llama-b-f32.gguf",
            vec![each("llama.attention.head_count_kv", &[1, 4])],
            &["head_count_kv", "4", "divisor"],
        ),
        (
            "llama-b-f32.gguf",
            vec![each("llama.attention.head_count", &[5, 4])],
            &["head_count", "5", "4", "one number"],
        ),
        (
            "llama-b-f32.gguf",
            vec![Set("llama.feed_forward_length", Value::Array(Array::I32(vec![60, -1])))],
            &["feed_forward_length", "-1"],
        ),
        (
            "llama-b-f32.gguf",
            vec![Set("llama.feed_forward_length", text("wide"))],
            &["llama.feed_forward_length"],
        ),
    ];
    refused(cases);
}

#[test]
fn numbers_for_each_layer_may_be_one_number_or_an_array() {
    let edits = [
        each("llama.attention.head_count", &[5, 5]),
        each("llama.attention.head_count_kv", &[1, 1]),
        each("llama.feed_forward_length", &[60, 60]),
    ];
    let [one, many] = [&[][..], &edits].map(|edits| edited("llama-b-f32.gguf", edits).unwrap());
    assert_eq!(one.layers, many.layers);
}
