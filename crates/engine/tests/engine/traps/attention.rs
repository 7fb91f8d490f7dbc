//! Traps of attention: windows, sinks, rotary embeddings, norms, scales.

use turbospark_engine::Engine;
use turbospark_model::{DeltaNet, HeadOrder, KeyValues, Mixer, ModelSpec, Norm, Pairing, RopeScaling};

use super::{Trap, assert_caught, attentions, distance_with, is_far, latents, layers, ropes};
use crate::fixtures::{FLOAT_TOLERANCE, edited, exact, off};

#[test]
fn windows() {
    fn resize(spec: &mut ModelSpec, by: isize) {
        attentions(spec).for_each(|a| a.window = a.window.map(|w| w.saturating_add_signed(by)));
    }
    let traps: &[Trap] = &[
        ("one position more", |spec| resize(spec, 1), &[]),
        ("one position less", |spec| resize(spec, -1), &[]),
        ("no window", |spec| attentions(spec).for_each(|a| a.window = None), &[]),
        (
            "the other layers have it",
            |spec| {
                let window = attentions(spec).find_map(|a| a.window);
                attentions(spec).for_each(|a| a.window = if a.window.is_none() { window } else { None });
            },
            &[],
        ),
    ];
    assert_caught(traps);
}

#[test]
fn rotary_embeddings() {
    let traps: &[Trap] = &[
        (
            "pairs are the other elements",
            |spec| {
                ropes(spec).for_each(|r| {
                    r.pairing = match r.pairing {
                        Pairing::Interleaved => Pairing::Halves,
                        Pairing::Halves => Pairing::Interleaved,
                    }
                });
            },
            &[],
        ),
        (
            "the whole head turns",
            |spec| {
                attentions(spec).for_each(|a| {
                    if let Some(rope) = &mut a.rope {
                        rope.dims = a.head_dim;
                    }
                });
            },
            &[],
        ),
        (
            "half of what turns does, and so another divisor",
            |spec| {
                attentions(spec)
                    .filter_map(|a| a.rope.as_mut())
                    .for_each(|r| (r.dims, r.freq_factors) = (r.dims / 4 * 2, None));
            },
            &[],
        ),
        ("no positions", |spec| attentions(spec).for_each(|a| a.rope = None), &[]),
        (
            "positions in layers that know none",
            |spec| {
                let rope = attentions(spec).find_map(|a| a.rope.clone());
                attentions(spec).for_each(|a| a.rope = rope.clone());
            },
            &[],
        ),
        (
            "one base for all layers",
            |spec| {
                let theta = ropes(spec).map(|r| r.theta).fold(0.0, f32::max);
                ropes(spec).for_each(|r| r.theta = theta);
            },
            &[],
        ),
        ("a tenth of the base", |spec| ropes(spec).for_each(|r| r.theta /= 10.0), &[]),
        ("no frequency factors", |spec| ropes(spec).for_each(|r| r.freq_factors = None), &[]),
        ("no linear scaling", |spec| unscale(spec, false), &[]),
        ("no YaRN", |spec| unscale(spec, true), &[]),
        (
            "YaRN as linear scaling",
            |spec| {
                ropes(spec).for_each(|r| {
                    if let RopeScaling::Yarn { factor, .. } = r.scaling {
                        r.scaling = RopeScaling::Linear(factor);
                    }
                });
            },
            &[],
        ),
        ("YaRN without its magnitude", |spec| ropes(spec).for_each(|r| r.magnitude = 1.0), &[]),
    ];
    assert_caught(traps);
}

/// Takes YaRN's or linear scaling away.
fn unscale(spec: &mut ModelSpec, yarn: bool) {
    for rope in ropes(spec) {
        if matches!(rope.scaling, RopeScaling::Yarn { .. }) == yarn {
            rope.scaling = RopeScaling::Linear(1.0);
        }
    }
}

#[test]
fn scores() {
    let traps: &[Trap] = &[
        ("no sinks", |spec| attentions(spec).for_each(|a| a.sinks = None), &[]),
        (
            "the usual scale of attention",
            |spec| attentions(spec).for_each(|a| a.scale = (a.head_dim as f32).sqrt().recip()),
            &[],
        ),
        (
            "the usual scale of latent attention, without YaRN's part",
            |spec| latents(spec).for_each(|a| a.scale = ((a.nope_dim + a.rope_dim) as f32).sqrt().recip()),
            &[],
        ),
        ("queries of one temperature", |spec| attentions(spec).for_each(|a| a.temperature = None), &[]),
        (
            "the temperature's steps elsewhere",
            |spec| attentions(spec).filter_map(|a| a.temperature.as_mut()).for_each(|t| t.period += 1),
            &[],
        ),
        (
            "heads of another key head",
            |spec| {
                deltas(spec).for_each(|d| {
                    d.heads = match d.heads {
                        HeadOrder::Grouped => HeadOrder::Tiled,
                        HeadOrder::Tiled => HeadOrder::Grouped,
                    }
                });
            },
            &[],
        ),
    ];
    assert_caught(traps);
}

fn deltas(spec: &mut ModelSpec) -> impl Iterator<Item = &mut DeltaNet> {
    layers(spec).filter_map(|layer| match &mut layer.mixer {
        Mixer::Delta(delta) => Some(delta),
        _ => None,
    })
}

/// Norm of keys and norm of values.
fn kv_norms(spec: &mut ModelSpec) -> impl Iterator<Item = (&mut Option<Norm>, &mut Option<Norm>)> {
    attentions(spec).filter_map(|a| match &mut a.kv {
        KeyValues::Own { k_norm, v_norm, .. } => Some((k_norm, v_norm)),
        KeyValues::OfLayer(_) => None,
    })
}

#[test]
fn norms_and_biases_of_heads() {
    let traps: &[Trap] = &[
        ("no norm of queries", |spec| attentions(spec).for_each(|a| a.q_norm = None), &[]),
        ("no norm of keys", |spec| kv_norms(spec).for_each(|(k, _)| *k = None), &[]),
        ("no norm of values", |spec| kv_norms(spec).for_each(|(_, v)| *v = None), &[]),
        ("no bias of queries", |spec| attentions(spec).for_each(|a| a.q.bias = None), &[]),
        (
            "no bias of keys",
            |spec| {
                attentions(spec).for_each(|a| {
                    if let KeyValues::Own { k, .. } = &mut a.kv {
                        k.bias = None;
                    }
                });
            },
            &[],
        ),
        (
            "no bias of values",
            |spec| {
                attentions(spec).for_each(|a| {
                    if let KeyValues::Own { v: Some(v), .. } = &mut a.kv {
                        v.bias = None;
                    }
                });
            },
            &[],
        ),
        ("no bias of the output", |spec| attentions(spec).for_each(|a| a.o.bias = None), &[]),
        (
            "values as the keys' projection",
            |spec| {
                attentions(spec).for_each(|a| {
                    if let KeyValues::Own { v, .. } = &mut a.kv {
                        *v = None;
                    }
                });
            },
            &[],
        ),
    ];
    assert_caught(traps);
}

/// Where a file doesn't say which of two readings is meant, the fixture holds both, and the spec can be made the other.
#[test]
fn the_other_reading_of_an_ambiguous_file_gives_the_other_reference() {
    let round: fn(&mut ModelSpec) = |spec| {
        ropes(spec).for_each(|r| {
            if let RopeScaling::Yarn { round, .. } = &mut r.scaling {
                *round = true;
            }
        });
    };
    let unlimited: fn(&mut ModelSpec) = |spec| attentions(spec).for_each(|a| a.window = None);
    for (file, change) in [("gpt_oss-b-f32.gguf", round), ("phi3-b-f32.gguf", unlimited)] {
        assert!(is_far(distance_with(file, change, "").unwrap()), "{file}");
        let other = distance_with(file, change, "alt_").unwrap();
        assert!(other <= FLOAT_TOLERANCE, "{file}: off by {other}");
    }
}

/// A file, how the names of the tensors end that are changed, and what is done to them.
type Misplaced = (&'static str, &'static str, fn(&mut [f32]));

/// What no spec can say: the file's values are changed instead.
#[test]
fn values_in_the_wrong_place_or_form() {
    let cases: [Misplaced; 6] = [
        // One KV head in this file, so its first sink would be all query heads' one.
        ("gpt_oss-b-f32.gguf", "attn_sinks.weight", |x| x.fill(x[0])),
        ("gemma3-b-f32.gguf", "norm.weight", |x| x.iter_mut().for_each(|x| *x += 1.0)),
        ("qwen3_5-b-f32.gguf", "attn_norm.weight", |x| x.iter_mut().for_each(|x| *x += 1.0)),
        ("qwen3_next-b-f32.gguf", "ssm_norm.weight", |x| x.iter_mut().for_each(|x| *x += 1.0)),
        ("qwen3_next-b-f32.gguf", "ssm_a", |x| x.iter_mut().for_each(|x| *x = -x.exp())),
        ("qwen3_5-b-f32.gguf", "ssm_conv1d.weight", |x| x.chunks_exact_mut(4).for_each(<[f32]>::reverse)),
    ];
    for (file, end, change) in cases {
        let mut changed = 0;
        let gguf = edited(file, |name, values| {
            if name.ends_with(end) {
                change(values);
                changed += 1;
            }
        });
        assert!(changed > 0, "{file} has no {end}");
        let distance = off(&Engine::from_gguf(gguf, exact()).unwrap(), file, "");
        assert!(is_far(distance), "{file}: {end} changed, off by {distance}");
    }
}
