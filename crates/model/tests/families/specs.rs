//! The spec of each family's fixture says what the checkpoint's configuration says.

use crate::edits::{Edit, edited, fixture};
use turbospark_format::Value;
use turbospark_model::{
    Activation, Attention, FeedForward, KeyValues, Layer, Linear, Mixer, ModelSpec, Norm, Pairing, Role,
    Rope, RopeScaling,
};

fn spec(file: &str) -> ModelSpec {
    ModelSpec::from_gguf(&fixture(file)).unwrap()
}

fn attention(layer: &Layer) -> &Attention {
    let Mixer::Attention(attention) = &layer.mixer else { panic!("{:?}", layer.mixer) };
    attention
}

fn rope(layer: &Layer) -> &Rope {
    attention(layer).rope.as_ref().unwrap()
}

/// A layer's own keys and values: projections and the keys' norm.
fn own(layer: &Layer) -> (Linear, Linear, Option<Norm>) {
    match &attention(layer).kv {
        KeyValues::Own { k, v: Some(v), k_norm, v_norm: None } => (*k, *v, *k_norm),
        other => panic!("{other:?}"),
    }
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
        let rope = rope(layer);
        assert_eq!((rope.theta, rope.pairing, rope.dims), (10_000.0, Pairing::Interleaved, 32));
        assert_eq!((rope.scaling, rope.magnitude), (RopeScaling::Linear(1.0), 1.0));
        let (k, v, k_norm) = own(layer);
        assert!(rope.freq_factors.is_none() && a.q_norm.is_none() && k_norm.is_none());
        assert!([a.q, k, v, a.o].iter().all(|l| l.bias.is_none()));
        assert_eq!((a.q.rows, k.rows, v.rows, a.o.columns), (128, 64, 64, 128));
        assert_eq!(named(file, k.weight.index), format!("blk.{i}.attn_k.weight"));
        assert_eq!(layer.mixer_norm.eps, 1e-5);
        assert!(layer.mixer_post_norm.is_none() && layer.ff_post_norm.is_none());
        let FeedForward::Dense(ff) = &layer.feed_forward else { panic!("{:?}", layer.feed_forward) };
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
        let factors = rope(layer).freq_factors.unwrap();
        assert_eq!(named(file, factors.index), "rope_freqs.weight");
        assert_eq!(rope(layer).theta, 500_000.0);
    }
}

#[test]
fn qwen2_has_biases_on_q_k_v_and_head_dim_by_default() {
    let spec = spec("qwen2-a-f32.gguf");
    for layer in &spec.layers {
        let a = attention(layer);
        assert_eq!(a.head_dim, 16);
        let (k, v, _) = own(layer);
        assert!([a.q, k, v].iter().all(|l| l.bias.is_some()) && a.o.bias.is_none());
        assert_eq!(rope(layer).pairing, Pairing::Halves);
        assert!(a.q_norm.is_none());
    }
}

#[test]
fn qwen3_norms_heads_of_their_own_width() {
    let spec = spec("qwen3-a-f32.gguf");
    for layer in &spec.layers {
        let a = attention(layer);
        assert_eq!(a.head_dim, 64);
        assert!(a.q_norm.is_some() && own(layer).2.is_some() && a.q.bias.is_none());
        assert_eq!(rope(layer).pairing, Pairing::Halves);
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
        assert_eq!(rope(layer).theta, if full { 1e6 } else { 1e4 }, "layer {i}");
        assert_eq!(rope(layer).scaling, RopeScaling::Linear(if full { 8.0 } else { 1.0 }), "layer {i}");
        assert_eq!(a.scale, 1.0 / 32f32.sqrt());
        assert!(a.q_norm.is_some() && layer.mixer_post_norm.is_some() && layer.ff_post_norm.is_some());
        let FeedForward::Dense(ff) = &layer.feed_forward else { panic!("{:?}", layer.feed_forward) };
        assert_eq!(ff.activation, Activation::GeluTanh);
    }
}

#[test]
fn absent_keys_take_the_formats_default() {
    let unset = |key| Edit::Unset(key);
    let spec = edited("qwen2-a-f32.gguf", &[unset("qwen2.rope.freq_base")]).unwrap();
    assert_eq!(rope(&spec.layers[0]).theta, 10_000.0);
    let edits = [unset("gemma3.rope.freq_base_swa"), unset("gemma3.rope.scaling.type")];
    let spec = edited("gemma3-a-f32.gguf", &edits).unwrap();
    assert_eq!(rope(&spec.layers[0]).theta, 10_000.0);
    assert_eq!(rope(&spec.layers[5]).scaling, RopeScaling::Linear(8.0));
    let spec = edited("gemma3-a-f32.gguf", &[unset("gemma3.attention.sliding_window")]).unwrap();
    assert!(spec.layers.iter().all(|l| attention(l).window.is_none()));
    let none = Edit::Set("gemma3.rope.scaling.type", Value::String("none".into()));
    let spec = edited("gemma3-a-f32.gguf", &[none]).unwrap();
    assert_eq!(rope(&spec.layers[5]).scaling, RopeScaling::Linear(1.0));
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
