//! What files of a family may also look like: fused tensors, scaling, further blocks, sibling architectures.

use crate::edits::{Edit, edited};
use crate::malformed::text;
use turbospark_format::Value;
use turbospark_model::{FeedForward, KeyValues, Mixer, ModelSpec, Moe, Role, RopeScaling, Scoring};

fn moe(spec: &ModelSpec, layer: usize) -> &Moe {
    match &spec.layers[layer].feed_forward {
        FeedForward::Moe(moe) => moe,
        FeedForward::Dense(_) => panic!("layer {layer} is dense"),
    }
}

#[test]
fn experts_may_have_gate_and_up_in_one_tensor() {
    let edits = [
        Edit::Without("blk.0.ffn_gate_exps.weight"),
        Edit::Without("blk.0.ffn_up_exps.weight"),
        Edit::Add("blk.0.ffn_gate_up_exps.weight", &[40, 20, 7]),
    ];
    let spec = edited("qwen3_moe-b-f32.gguf", &edits).unwrap();
    let fused = moe(&spec, 0);
    assert_eq!(fused.gate.weight, fused.up.weight);
    let rows = [fused.gate, fused.up].map(|s| (s.stored_rows, s.first_row, s.rows));
    assert_eq!(rows, [(20, 0, 10), (20, 10, 10)]);
    let apart = moe(&spec, 1);
    assert_eq!((apart.gate.stored_rows, apart.up.first_row), (10, 0));
    assert_eq!(spec.roles.iter().filter(|&&r| r == Role::Expert).count(), 2 + 3);
}

#[test]
fn queries_keys_and_values_may_be_in_one_tensor() {
    let edits = [
        Edit::Without("blk.1.attn_q.weight"),
        Edit::Without("blk.1.attn_k.weight"),
        Edit::Without("blk.1.attn_v.weight"),
        Edit::Add("blk.1.attn_qkv.weight", &[40, 80 + 2 * 16]),
    ];
    let spec = edited("llama-b-f32.gguf", &edits).unwrap();
    let Mixer::Attention(a) = &spec.layers[1].mixer else { panic!() };
    let KeyValues::Own { k, v: Some(v), .. } = &a.kv else { panic!() };
    assert_eq!([a.q, *k, *v].map(|l| (l.first_row, l.rows)), [(0, 80), (80, 16), (96, 16)]);
}

#[test]
fn yarn_is_for_every_family_and_takes_the_formats_defaults() {
    let edits = [
        Edit::Set("qwen3.rope.scaling.type", text("yarn")),
        Edit::Set("qwen3.rope.scaling.factor", Value::F32(4.0)),
    ];
    let spec = edited("qwen3-b-f32.gguf", &edits).unwrap();
    let Mixer::Attention(a) = &spec.layers[0].mixer else { panic!() };
    let rope = a.rope.as_ref().unwrap();
    let (original_context, round) = (spec.context_length, true);
    let expected =
        RopeScaling::Yarn { factor: 4.0, original_context, beta_fast: 32.0, beta_slow: 1.0, round };
    assert_eq!(rope.scaling, expected);
    assert_eq!(rope.magnitude, 1.0 + 0.1 * 4f32.ln());
}

#[test]
fn blocks_that_predict_further_tokens_are_known_and_unused() {
    let plain = edited("glm4_moe-b-f32.gguf", &[]).unwrap();
    let n = plain.layers.len();
    assert_eq!(n, 2, "the names below are of the block after the last");
    let edits = [
        Edit::Set("glm4moe.block_count", Value::U32(3)),
        Edit::Set("glm4moe.nextn_predict_layers", Value::U32(1)),
        Edit::Add("blk.2.attn_norm.weight", &[8]),
        Edit::Add("blk.2.nextn.eh_proj.weight", &[8, 4]),
    ];
    let spec = edited("glm4_moe-b-f32.gguf", &edits).unwrap();
    assert_eq!(spec.layers, plain.layers);
    assert_eq!(spec.roles.iter().filter(|&&r| r == Role::Unused).count(), 2);
    // Beyond them nothing is known.
    let mut edits = edits.to_vec();
    edits.push(Edit::Add("blk.3.attn_norm.weight", &[8]));
    let error = edited("glm4_moe-b-f32.gguf", &edits).unwrap_err().to_string();
    assert!(error.contains("no use for 1") && error.contains("blk.3.attn_norm.weight"), "{error}");
}

#[test]
fn siblings_differ_in_name_alone_on_text() {
    for (file, sibling) in [("qwen3-b-f32.gguf", "qwen3vl"), ("qwen3_moe-b-f32.gguf", "qwen3vlmoe")] {
        let [one, other] = [&[][..], &[Edit::Family(sibling)]].map(|e| edited(file, e).unwrap());
        assert_eq!(other.architecture, sibling);
        assert_eq!(one.layers, other.layers);
    }
}

#[test]
fn granite_may_be_dense_and_without_positions() {
    let dense = [Edit::Family("granite"), Edit::Set("granite.logit_scale", Value::F32(8.0))];
    let spec = edited("llama-b-f32.gguf", &dense).unwrap();
    assert_eq!(
        (spec.head.logit_scale, spec.embedding.scale, spec.layers[0].residual_scale),
        (0.125, 1.0, 1.0)
    );
    assert!(matches!(spec.layers[0].feed_forward, FeedForward::Dense(_)));
    let edits = [Edit::Set("granitemoe.rope.scaling.finetuned", Value::Bool(false))];
    let spec = edited("granitemoe-b-f32.gguf", &edits).unwrap();
    let Mixer::Attention(a) = &spec.layers[0].mixer else { panic!() };
    assert!(a.rope.is_none());
}

#[test]
fn deepseek_without_a_gating_function_is_version_2() {
    let unset = [Edit::Unset("deepseek2.expert_gating_func")];
    let spec = edited("deepseek_v2-b-f32.gguf", &unset).unwrap();
    assert_eq!(moe(&spec, 1).router.scoring, Scoring::Softmax);
    // Then the correction of version 3 has no use, and the file is refused instead of read wrongly.
    let error = edited("deepseek_v3-b-f32.gguf", &unset).unwrap_err().to_string();
    assert!(error.contains("exp_probs_b.bias"), "{error}");
}
