//! A [`ModelSpec`] in words: what the forward pass will compute.

use std::fmt::{Result, Write};

use serde_json::{Value as Json, json};
use turbospark_engine::KvKind;
use turbospark_engine::device::CpuCache;
use turbospark_format::Gguf;
use turbospark_model::{Activation, FeedForward, Layer, Mixer, ModelSpec, Pairing};

use crate::output::{bytes, count};

/// Positions that KV bytes are averaged over: a whole number of the cache's pages.
const POSITIONS: usize = 1024;

/// Bytes of KV cache that a token takes.
fn kv_bytes_per_token(spec: &ModelSpec, kind: KvKind) -> u64 {
    CpuCache::bytes_for(spec, kind, POSITIONS) / POSITIONS as u64
}

/// Writes the spec as indented lines.
pub(crate) fn describe(spec: &ModelSpec, out: &mut String) -> Result {
    let named = spec.name.as_ref().map(|n| format!(" ({})", n.escape_debug())).unwrap_or_default();
    writeln!(out, "  architecture   {}{named}", spec.architecture)?;
    writeln!(out, "  vocabulary     {}", count(spec.n_vocab))?;
    writeln!(out, "  context        {}", count(spec.context_length))?;
    writeln!(out, "  hidden         {}", count(spec.hidden))?;
    for (range, layer) in groups(&spec.layers) {
        writeln!(out, "  {range:14} {}", mixer(&layer.mixer))?;
        writeln!(out, "  {:14} {}{}", "", feed_forward(&layer.feed_forward), norms(layer))?;
    }
    let tied = spec.head.projection.weight.index == spec.embedding.weight.index;
    let head = if tied { "the embedding's tensor" } else { "its own tensor" };
    let cap = spec.head.soft_cap.map(|c| format!(", soft cap {c}")).unwrap_or_default();
    writeln!(out, "  head           {head}{cap}")?;
    if spec.embedding.scale != 1.0 {
        writeln!(out, "  embedding      scaled by {}", spec.embedding.scale)?;
    }
    let [f16, f32] = [KvKind::F16, KvKind::F32].map(|kind| bytes(kv_bytes_per_token(spec, kind)));
    writeln!(out, "  KV cache       {f16} a token (f16), {f32} (f32)")
}

/// Layers that read alike, with their numbers: `layers 0-4, 6-10`.
fn groups(layers: &[Layer]) -> Vec<(String, &Layer)> {
    let alike = |a: &Layer, b: &Layer| {
        mixer(&a.mixer) == mixer(&b.mixer)
            && feed_forward(&a.feed_forward) == feed_forward(&b.feed_forward)
            && norms(a) == norms(b)
    };
    let mut groups: Vec<(Vec<usize>, &Layer)> = Vec::new();
    for (i, layer) in layers.iter().enumerate() {
        match groups.iter_mut().find(|(_, first)| alike(first, layer)) {
            Some((members, _)) => members.push(i),
            None => groups.push((vec![i], layer)),
        }
    }
    groups.into_iter().map(|(members, layer)| (format!("layers {}", ranges(&members)), layer)).collect()
}

/// `0-4, 6` for 0, 1, 2, 3, 4, 6.
fn ranges(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let text = runs.map(|run| match run {
        [one] => one.to_string(),
        _ => format!("{}-{}", run[0], run[run.len() - 1]),
    });
    text.collect::<Vec<_>>().join(", ")
}

fn mixer(mixer: &Mixer) -> String {
    let Mixer::Attention(a) = mixer;
    let mut text = format!("attention, {} heads over {} KV heads of {}", a.n_heads, a.n_kv_heads, a.head_dim);
    if let Some(window) = a.window {
        text += &format!(", window {}", count(window));
    }
    let pairing = match a.rope.pairing {
        Pairing::Interleaved => "neighbours",
        Pairing::Halves => "halves",
    };
    text += &format!(", rotary base {} ({pairing})", a.rope.theta);
    if a.rope.scaling != 1.0 {
        text += &format!(", positions divided by {}", a.rope.scaling);
    }
    if a.rope.freq_factors.is_some() {
        text += ", frequency factors";
    }
    if a.q.bias.is_some() {
        text += ", biases";
    }
    if a.q_norm.is_some() {
        text += ", query and key norms";
    }
    text
}

fn feed_forward(feed_forward: &FeedForward) -> String {
    let FeedForward::Dense(dense) = feed_forward;
    let activation = match dense.activation {
        Activation::Silu => "SiLU",
        Activation::GeluTanh => "GELU (tanh)",
    };
    format!("feed-forward of {}, {activation}", count(dense.width))
}

fn norms(layer: &Layer) -> &'static str {
    if layer.mixer_post_norm.is_some() { ", norms before and after" } else { "" }
}

/// The spec's numbers for machines.
pub(crate) fn json(spec: &ModelSpec, gguf: &Gguf) -> Json {
    let by_role: serde_json::Map<_, _> =
        spec.bytes_by_role(gguf).into_iter().map(|(r, sum)| (r.name().to_owned(), sum.into())).collect();
    let layers: Vec<Json> = spec.layers.iter().map(layer_json).collect();
    json!({
        "architecture": spec.architecture,
        "name": spec.name,
        "n_vocab": spec.n_vocab,
        "hidden": spec.hidden,
        "context_length": spec.context_length,
        "kv_bytes_per_token": {
            "f16": kv_bytes_per_token(spec, KvKind::F16),
            "f32": kv_bytes_per_token(spec, KvKind::F32),
        },
        "bytes_by_role": by_role,
        "layers": layers,
    })
}

fn layer_json(layer: &Layer) -> Json {
    let Mixer::Attention(a) = &layer.mixer;
    let FeedForward::Dense(dense) = &layer.feed_forward;
    json!({
        "mixer": "attention",
        "n_heads": a.n_heads,
        "n_kv_heads": a.n_kv_heads,
        "head_dim": a.head_dim,
        "window": a.window,
        "rope_theta": a.rope.theta,
        "feed_forward": "dense",
        "width": dense.width,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_join_to_ranges() {
        assert_eq!(ranges(&[0, 1, 2, 3, 4, 6]), "0-4, 6");
        assert_eq!(ranges(&[3]), "3");
    }
}
