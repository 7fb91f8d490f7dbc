//! The spec of each family's fixture says what the checkpoint's configuration says.

use crate::edits::{Edit, edited, fixture};
use turbospark_format::Value;
use turbospark_model::{Activation, Attention, FeedForward, Layer, Mixer, ModelSpec, Pairing, Role};

fn spec(file: &str) -> ModelSpec {
    ModelSpec::from_gguf(&fixture(file)).unwrap()
}

fn attention(layer: &Layer) -> &Attention {
    let Mixer::Attention(attention) = &layer.mixer;
    attention
}

/// The tensor's name behind a reference.
fn named(file: &str, index: usize) -> String {
    fixture(file).tensors()[index].name.clone()
}

#[test]
fn llama_is_plain_with_neighbouring_pairs() {
    let file = "llama-a-f32.gguf";
    let spec = spec(file);
    assert_eq!((spec.n_vocab, spec.hidden, spec.layers.len(), spec.context_length), (384, 64, 4, 512));
    assert_eq!((spec.embedding.scale, spec.head.soft_cap), (1.0, None));
    assert_eq!(named(file, spec.head.projection.weight.index), "output.weight");
    for (i, layer) in spec.layers.iter().enumerate() {
        let a = attention(layer);
        assert_eq!((a.n_heads, a.n_kv_heads, a.head_dim, a.window), (4, 2, 32, None));
        assert_eq!(a.scale, 1.0 / 32f32.sqrt());
        assert_eq!((a.rope.theta, a.rope.pairing, a.rope.scaling), (10_000.0, Pairing::Interleaved, 1.0));
        assert!(a.rope.freq_factors.is_none() && a.q_norm.is_none() && a.k_norm.is_none());
        assert!([a.q, a.k, a.v, a.o].iter().all(|l| l.bias.is_none()));
        assert_eq!((a.q.rows, a.k.rows, a.v.rows, a.o.columns), (128, 64, 64, 128));
        assert_eq!(named(file, a.k.weight.index), format!("blk.{i}.attn_k.weight"));
        assert_eq!(layer.mixer_norm.eps, 1e-5);
        assert!(layer.mixer_post_norm.is_none() && layer.ff_post_norm.is_none());
        let FeedForward::Dense(ff) = &layer.feed_forward;
        assert_eq!((ff.width, ff.activation), (96, Activation::Silu));
        assert_eq!(named(file, ff.gate.weight.index), format!("blk.{i}.ffn_gate.weight"));
        assert_eq!(named(file, ff.up.weight.index), format!("blk.{i}.ffn_up.weight"));
    }
}

#[test]
fn llama_takes_the_frequency_factors_and_ties_the_head_where_the_file_does() {
    let file = "llama3_rope-a-f32.gguf";
    let spec = spec(file);
    assert_eq!(spec.head.projection.weight.index, spec.embedding.weight.index);
    for layer in &spec.layers {
        let factors = attention(layer).rope.freq_factors.unwrap();
        assert_eq!(named(file, factors.index), "rope_freqs.weight");
        assert_eq!(attention(layer).rope.theta, 500_000.0);
    }
}

#[test]
fn qwen2_has_biases_on_q_k_v_and_head_dim_by_default() {
    let spec = spec("qwen2-a-f32.gguf");
    for layer in &spec.layers {
        let a = attention(layer);
        assert_eq!(a.head_dim, 16);
        assert!([a.q, a.k, a.v].iter().all(|l| l.bias.is_some()) && a.o.bias.is_none());
        assert_eq!(a.rope.pairing, Pairing::Halves);
        assert!(a.q_norm.is_none());
    }
}

#[test]
fn qwen3_norms_heads_of_their_own_width() {
    let spec = spec("qwen3-a-f32.gguf");
    for layer in &spec.layers {
        let a = attention(layer);
        assert_eq!(a.head_dim, 64);
        assert!(a.q_norm.is_some() && a.k_norm.is_some() && a.q.bias.is_none());
        assert_eq!(a.rope.pairing, Pairing::Halves);
    }
}

#[test]
fn gemma3_slides_five_of_six_layers_with_their_own_base() {
    let spec = spec("gemma3-a-f32.gguf");
    assert_eq!(spec.embedding.scale, 8.0);
    assert_eq!(spec.head.projection.weight.index, spec.embedding.weight.index);
    for (i, layer) in spec.layers.iter().enumerate() {
        let a = attention(layer);
        let full = i == 5;
        assert_eq!(a.window, if full { None } else { Some(8) }, "layer {i}");
        assert_eq!(a.rope.theta, if full { 1e6 } else { 1e4 }, "layer {i}");
        assert_eq!(a.rope.scaling, if full { 8.0 } else { 1.0 }, "layer {i}");
        assert_eq!(a.scale, 1.0 / 32f32.sqrt());
        assert!(a.q_norm.is_some() && layer.mixer_post_norm.is_some() && layer.ff_post_norm.is_some());
        let FeedForward::Dense(ff) = &layer.feed_forward;
        assert_eq!(ff.activation, Activation::GeluTanh);
    }
}

#[test]
fn absent_keys_take_the_formats_default() {
    let unset = |key| Edit::Unset(key);
    let spec = edited("qwen2-a-f32.gguf", &[unset("qwen2.rope.freq_base")]).unwrap();
    assert_eq!(attention(&spec.layers[0]).rope.theta, 10_000.0);
    let edits = [unset("gemma3.rope.freq_base_swa"), unset("gemma3.rope.scaling.type")];
    let spec = edited("gemma3-a-f32.gguf", &edits).unwrap();
    assert_eq!(attention(&spec.layers[0]).rope.theta, 10_000.0);
    assert_eq!(attention(&spec.layers[5]).rope.scaling, 8.0);
    let spec = edited("gemma3-a-f32.gguf", &[unset("gemma3.attention.sliding_window")]).unwrap();
    assert!(spec.layers.iter().all(|l| attention(l).window.is_none()));
    let none = Edit::Set("gemma3.rope.scaling.type", Value::String("none".into()));
    let spec = edited("gemma3-a-f32.gguf", &[none]).unwrap();
    assert_eq!(attention(&spec.layers[5]).rope.scaling, 1.0);
}

#[test]
fn bytes_by_role_add_up_to_the_files_tensors() {
    for file in ["llama-a-f32.gguf", "gemma3-a-f32.gguf", "llama_q-a-q2_k.gguf"] {
        let gguf = fixture(file);
        let spec = ModelSpec::from_gguf(&gguf).unwrap();
        let by_role = spec.bytes_by_role(&gguf);
        assert_eq!(
            by_role.iter().map(|r| r.1).sum::<u64>(),
            gguf.tensors().iter().map(|t| t.bytes).sum::<u64>()
        );
        assert!(by_role.is_sorted_by(|a, b| a.1 >= b.1));
        assert_eq!(by_role.iter().any(|r| r.0 == Role::Head), !file.starts_with("gemma3"), "{file}");
    }
}
