//! Keys of Gemma 4 and of the recurrent hybrids, each broken in turn, and forms that their files may also have.

use crate::edits::{Edit, edited};
use crate::malformed::{Case, refused};
use turbospark_format::{Array, Value};
use turbospark_model::{KeyValues, Mixer, ModelSpec, Role};

const GEMMA4: &str = "gemma4-b-f32.gguf";
const GEMMA4_E: &str = "gemma4_e-b-f32.gguf";
const GEMMA4_MOE: &str = "gemma4_moe-b-f32.gguf";
const QWEN35: &str = "qwen3_5-b-f32.gguf";
const MTP: &str = "qwen3_5-b-mtp-f32.gguf";
const NEXT: &str = "qwen3_next-b-f32.gguf";

fn set(key: &'static str, n: u32) -> Edit {
    Edit::Set(key, Value::U32(n))
}

fn flags(key: &'static str, flags: &[bool]) -> Edit {
    Edit::Set(key, Value::Array(Array::Bool(flags.to_vec())))
}

#[test]
fn gemma_4() {
    use Edit::{Add, Unset, Without};
    let pattern = "gemma4.attention.sliding_window_pattern";
    let shared = "gemma4.attention.shared_kv_layers";
    let cases: Vec<Case> = vec![
        (GEMMA4, vec![Unset(pattern)], &["sliding_window_pattern", "missing"]),
        (GEMMA4, vec![flags(pattern, &[true, false])], &["sliding_window_pattern", "array of 2", "4"]),
        (GEMMA4, vec![set(pattern, 6)], &["sliding_window_pattern"]),
        (GEMMA4, vec![flags(pattern, &[true; 4])], &["blk.1.attn_k.weight", "[40, 32]", "[40, 16]"]),
        (GEMMA4, vec![Unset("gemma4.attention.sliding_window")], &["attention.sliding_window", "missing"]),
        (GEMMA4, vec![Unset("gemma4.attention.key_length_swa")], &["key_length_swa", "missing"]),
        (GEMMA4, vec![set("gemma4.attention.key_length_swa", 7)], &["key_length_swa", "7", "even"]),
        (GEMMA4, vec![set("gemma4.attention.value_length_swa", 4)], &["value_length_swa", "4", "8"]),
        (GEMMA4, vec![set("gemma4.rope.dimension_count_swa", 4)], &["dimension_count_swa", "4", "8"]),
        (GEMMA4, vec![Without("rope_freqs.weight")], &["rope_freqs.weight", "missing"]),
        (GEMMA4, vec![Without("blk.0.attn_k.weight")], &["blk.0.attn_k.weight", "missing"]),
        (GEMMA4, vec![set(shared, 4)], &["shared_kv_layers", "4", "less than"]),
        (GEMMA4, vec![set(shared, 3)], &["shared_kv_layers", "3", "layer 1's shape"]),
        (GEMMA4, vec![Add("blk.0.post_norm.weight", &[40])], &["no use for 1", "blk.0.post_norm.weight"]),
        (GEMMA4_E, vec![set("gemma4.embedding_length_per_layer_input", 6)], &["per_layer_token_embd.weight"]),
        (GEMMA4_E, vec![Without("per_layer_proj_norm.weight")], &["per_layer_proj_norm.weight"]),
        (GEMMA4_E, vec![Without("blk.3.inp_gate.weight")], &["blk.3.inp_gate.weight", "missing"]),
        (GEMMA4_E, vec![set("gemma4.feed_forward_length", 18)], &["blk.4.ffn_gate.weight", "[32, 36]"]),
        (GEMMA4_MOE, vec![Without("blk.0.ffn_gate_inp.scale")], &["blk.0.ffn_gate_inp.scale"]),
        (GEMMA4_MOE, vec![Without("blk.0.ffn_down_exps.scale")], &["blk.0.ffn_down_exps.scale"]),
        (GEMMA4_MOE, vec![Without("blk.2.pre_ffw_norm_2.weight")], &["blk.2.pre_ffw_norm_2.weight"]),
        (GEMMA4_MOE, vec![set("gemma4.expert_feed_forward_length", 16)], &["blk.0.ffn_gate_up_exps.weight"]),
        (
            GEMMA4_MOE,
            vec![Unset("gemma4.expert_feed_forward_length")],
            &["expert_feed_forward_length", "missing"],
        ),
    ];
    refused(cases);
}

#[test]
fn recurrent_hybrids() {
    use Edit::{Add, Unset, Without};
    let recurrent = "qwen35.attention.recurrent_layers";
    let cases: Vec<Case> = vec![
        (QWEN35, vec![flags(recurrent, &[true, false])], &["recurrent_layers", "array of 2", "3"]),
        (QWEN35, vec![flags(recurrent, &[true; 3])], &["blk.1.attn_qkv.weight", "missing"]),
        (
            QWEN35,
            vec![Unset(recurrent), set("qwen35.full_attention_interval", 0)],
            &["full_attention_interval"],
        ),
        (QWEN35, vec![set("qwen35.ssm.group_count", 4)], &["ssm.group_count", "4", "divisor", "(6)"]),
        (QWEN35, vec![set("qwen35.ssm.group_count", 0)], &["ssm.group_count", "at least 1"]),
        (QWEN35, vec![set("qwen35.ssm.inner_size", 97)], &["ssm.inner_size", "97", "multiple", "(6)"]),
        (QWEN35, vec![set("qwen35.ssm.state_size", 1 << 28)], &["blk.0.attn_qkv.weight"]),
        (QWEN35, vec![Unset("qwen35.ssm.conv_kernel")], &["ssm.conv_kernel", "missing"]),
        (
            QWEN35,
            vec![set("qwen35.ssm.conv_kernel", 3)],
            &["blk.0.ssm_conv1d.weight", "[4, 160]", "[3, 160]"],
        ),
        (QWEN35, vec![Without("blk.2.ssm_a")], &["blk.2.ssm_a", "missing"]),
        (QWEN35, vec![Without("blk.0.ssm_alpha.weight")], &["blk.0.ssm_alpha.weight"]),
        (QWEN35, vec![set("qwen35.rope.dimension_count", 18)], &["dimension_count", "18", "up to 16"]),
        (MTP, vec![Unset("qwen35.nextn_predict_layers")], &["blk.3"]),
        (NEXT, vec![Add("blk.0.ssm_in.weight", &[24, 4])], &["not yet", "convert", "blk.0.ssm_in.weight"]),
        (NEXT, vec![Without("blk.1.ssm_ba.weight")], &["blk.1.ssm_ba.weight", "missing"]),
        (NEXT, vec![Without("blk.1.ffn_gate_inp_shexp.weight")], &["blk.1.ffn_gate_inp_shexp.weight"]),
        (NEXT, vec![set("qwen3next.expert_shared_feed_forward_length", 8)], &["blk.0.ffn_gate_shexp.weight"]),
    ];
    refused(cases);
}

fn is_recurrent(spec: &ModelSpec) -> Vec<bool> {
    spec.layers.iter().map(|l| matches!(l.mixer, Mixer::Delta(_))).collect()
}

#[test]
fn without_a_list_of_recurrent_layers_the_interval_says_which() {
    let spec = edited(QWEN35, &[Edit::Unset("qwen35.attention.recurrent_layers")]).unwrap();
    assert_eq!(is_recurrent(&spec), [true, false, true]);
    let spec = edited(NEXT, &[Edit::Unset("qwen3next.attention.recurrent_layers")]).unwrap();
    assert_eq!(is_recurrent(&spec), [true, true, false]);
}

#[test]
fn layers_that_share_keys_and_values_may_have_unused_ones_of_their_own() {
    let plain = edited(GEMMA4_E, &[]).unwrap();
    let edits = [
        Edit::Add("blk.4.attn_k.weight", &[32, 16]),
        Edit::Add("blk.4.attn_v.weight", &[32, 16]),
        Edit::Add("blk.4.attn_k_norm.weight", &[8]),
    ];
    let spec = edited(GEMMA4_E, &edits).unwrap();
    assert_eq!(spec.layers, plain.layers);
    assert_eq!(spec.roles.iter().filter(|&&r| r == Role::Unused).count(), 3);
    let Mixer::Attention(a) = &spec.layers[4].mixer else { panic!() };
    assert_eq!(a.kv, KeyValues::OfLayer(2));
}
