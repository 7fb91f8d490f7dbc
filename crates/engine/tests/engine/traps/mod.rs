//! Mistakes that leave text fluent and make another model: each must be far outside the reference's tolerance, or the fixtures
//! would not catch it.
//!
//! A trap is a change to a spec. It is tried on every small fixture that it changes.

mod attention;
mod experts;
mod stream;

use turbospark_engine::Engine;
use turbospark_format::Gguf;
use turbospark_model::{Attention, FeedForward, LatentAttention, Layer, Mixer, ModelSpec, Moe, Rope};

use crate::fixtures::{FLOAT_TOLERANCE, exact, folder, off, small};

/// A mistake, and the files on which it shows nothing, with the reason beside them in the table.
type Trap = (&'static str, fn(&mut ModelSpec), &'static [&'static str]);

/// How far a model with the mistake is from the reference, or `None` where the change changes nothing.
fn distance_with(file: &str, change: fn(&mut ModelSpec), reading: &str) -> Option<f64> {
    let gguf = Gguf::open(folder().join(file)).unwrap();
    let mut spec = ModelSpec::from_gguf(&gguf).unwrap();
    let before = format!("{spec:?}");
    change(&mut spec);
    if format!("{spec:?}") == before {
        return None;
    }
    let engine = Engine::with_spec(gguf, spec, exact()).unwrap();
    Some(off(&engine, file, reading))
}

/// Whether a distance is so far that no rounding explains it.
fn is_far(distance: f64) -> bool {
    distance.is_nan() || distance > 10.0 * FLOAT_TOLERANCE
}

/// Tries each trap on every small file.
fn assert_caught(traps: &[Trap]) {
    let mut missed = Vec::new();
    for (trap, change, silent) in traps {
        let mut tried = 0;
        for file in small().filter(|file| !silent.contains(file)) {
            if let Some(distance) = distance_with(file, *change, "") {
                tried += 1;
                if !is_far(distance) {
                    missed.push(format!("{trap}: {file} is off by {distance:.1e} only"));
                }
            }
        }
        if tried == 0 {
            missed.push(format!("{trap}: changes no model"));
        }
    }
    assert!(missed.is_empty(), "these would go unseen:\n{}", missed.join("\n"));
}

fn layers(spec: &mut ModelSpec) -> impl Iterator<Item = &mut Layer> {
    spec.layers.iter_mut()
}

fn attentions(spec: &mut ModelSpec) -> impl Iterator<Item = &mut Attention> {
    layers(spec).filter_map(|layer| match &mut layer.mixer {
        Mixer::Attention(attention) => Some(attention),
        _ => None,
    })
}

fn latents(spec: &mut ModelSpec) -> impl Iterator<Item = &mut LatentAttention> {
    layers(spec).filter_map(|layer| match &mut layer.mixer {
        Mixer::Latent(latent) => Some(latent),
        _ => None,
    })
}

fn ropes(spec: &mut ModelSpec) -> impl Iterator<Item = &mut Rope> {
    layers(spec).filter_map(|layer| match &mut layer.mixer {
        Mixer::Attention(attention) => attention.rope.as_mut(),
        Mixer::Latent(latent) => Some(&mut latent.rope),
        Mixer::Delta(_) => None,
    })
}

fn moes(spec: &mut ModelSpec) -> impl Iterator<Item = &mut Moe> {
    layers(spec).filter_map(|layer| match &mut layer.feed_forward {
        FeedForward::Moe(moe) => Some(moe),
        FeedForward::Dense(_) => None,
    })
}
