//! Traps of the residual stream: scales, norms around branches, dense networks, side vectors, the head.

use turbospark_model::{Activation, DenseFeedForward, FeedForward, KeyValues, Mixer, ModelSpec, Norm, Role};

use super::{Trap, assert_caught, attentions, distance_with, layers, moes};
use crate::fixtures::{engine, off, small};

#[test]
fn scales() {
    let traps: &[Trap] = &[
        ("the embedding unscaled", |spec| spec.embedding.scale = 1.0, &[]),
        ("branches unscaled", |spec| layers(spec).for_each(|l| l.residual_scale = 1.0), &[]),
        ("layers unscaled", |spec| layers(spec).for_each(|l| l.output_scale = None), &[]),
        ("logits unscaled", |spec| spec.head.logit_scale = 1.0, &[]),
        ("logits uncapped", |spec| spec.head.soft_cap = None, &[]),
    ];
    assert_caught(traps);
}

#[test]
fn norms_around_branches() {
    let traps: &[Trap] = &[
        ("none after the mixer", |spec| layers(spec).for_each(|l| l.mixer_post_norm = None), &[]),
        ("none after the feed-forward", |spec| layers(spec).for_each(|l| l.ff_post_norm = None), &[]),
        (
            "swapped before the branches",
            |spec| layers(spec).for_each(|l| std::mem::swap(&mut l.mixer_norm, &mut l.ff_norm)),
            &[],
        ),
        (
            "without weights",
            |spec| layers(spec).for_each(|l| (l.mixer_norm.weight, l.ff_norm.weight) = (None, None)),
            &[],
        ),
        ("no weight of the last", |spec| spec.head.norm.weight = None, &[]),
    ];
    assert_caught(traps);
}

/// The norms of rows that every family has.
fn every_norm(spec: &mut ModelSpec, change: fn(&mut Norm)) {
    for layer in layers(spec) {
        change(&mut layer.mixer_norm);
        change(&mut layer.ff_norm);
    }
    change(&mut spec.head.norm);
}

/// The two values that families have move logits by less than the tolerance, and by far more than the right one is off.
#[test]
fn eps_of_another_family() {
    let other: fn(&mut ModelSpec) = |spec| {
        every_norm(spec, |norm| norm.eps = if norm.eps < 5e-6 { 1e-5 } else { 1e-6 });
    };
    // The stream of these is so large that no eps shows in it.
    for file in small().filter(|file| !file.starts_with("gemma4")) {
        let right = off(&engine(file), file, "");
        let wrong = distance_with(file, other, "").unwrap();
        assert!(wrong > 10.0 * right, "{file}: {wrong:.1e} with another eps, {right:.1e} with its own");
    }
}

fn dense(spec: &mut ModelSpec) -> impl Iterator<Item = &mut DenseFeedForward> {
    layers(spec).filter_map(|layer| match &mut layer.feed_forward {
        FeedForward::Dense(dense) => Some(dense),
        FeedForward::Moe(_) => None,
    })
}

/// Changes the activations of all networks.
fn activations(spec: &mut ModelSpec, change: fn(Activation) -> Activation) {
    dense(spec).for_each(|d| d.activation = change(d.activation));
    moes(spec).for_each(|m| {
        m.activation = change(m.activation);
        if let Some(shared) = &mut m.shared {
            shared.network.activation = change(shared.network.activation);
        }
    });
    layers(spec).filter_map(|l| l.side.as_mut()).for_each(|s| s.activation = change(s.activation));
}

#[test]
fn networks() {
    let traps: &[Trap] = &[
        ("gate and up swapped", |spec| dense(spec).for_each(|d| std::mem::swap(&mut d.gate, &mut d.up)), &[]),
        (
            "SiLU and GELU exchanged",
            |spec| {
                activations(spec, |activation| match activation {
                    Activation::Silu => Activation::GeluTanh,
                    Activation::GeluTanh => Activation::Silu,
                    clamped @ Activation::ClampedSwiglu { .. } => clamped,
                });
            },
            &[],
        ),
        ("SiLU for the clamped SwiGLU", |spec| activations(spec, |_| Activation::Silu), &[]),
        ("no limit", |spec| clamp(spec, |limit, alpha| (limit * 1e6, alpha)), &[]),
        ("another limit", |spec| clamp(spec, |limit, alpha| (limit - 1.0, alpha)), &[]),
        ("another slope", |spec| clamp(spec, |limit, _| (limit, 1.0)), &[]),
    ];
    assert_caught(traps);
}

/// Changes limit and alpha of the clamped SwiGLU.
fn clamp(spec: &mut ModelSpec, change: fn(f32, f32) -> (f32, f32)) {
    for moe in moes(spec) {
        if let Activation::ClampedSwiglu { limit, alpha } = &mut moe.activation {
            (*limit, *alpha) = change(*limit, *alpha);
        }
    }
}

#[test]
fn side_vectors_and_shared_keys() {
    let traps: &[Trap] = &[
        ("no side vectors", |spec| layers(spec).for_each(|l| l.side = None), &[]),
        ("their embedding unscaled", |spec| spec.side.iter_mut().for_each(|s| s.embedding.scale = 1.0), &[]),
        (
            "keys of another layer",
            |spec| {
                let own: Vec<Option<(usize, usize)>> = spec.layers.iter().map(shape).collect();
                attentions(spec).for_each(|a| {
                    if let KeyValues::OfLayer(layer) = &mut a.kv {
                        let other = (0..own.len())
                            .find(|l| l != layer && own[*l].is_some() && own[*l] == own[*layer]);
                        *layer = other.unwrap_or(*layer);
                    }
                });
            },
            &[],
        ),
        (
            "the embedding for a head of its own",
            |spec| {
                if spec.head.projection.weight.role == Role::Head {
                    spec.head.projection.weight = spec.embedding.weight;
                }
            },
            &[],
        ),
    ];
    assert_caught(traps);
}

/// KV heads and their width, of a layer that caches its own.
fn shape(layer: &turbospark_model::Layer) -> Option<(usize, usize)> {
    match &layer.mixer {
        Mixer::Attention(a) if matches!(a.kv, KeyValues::Own { .. }) => Some((a.n_kv_heads, a.head_dim)),
        _ => None,
    }
}
