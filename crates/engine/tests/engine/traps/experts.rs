//! Traps of mixtures of experts: scores, choice, weights, shared experts.

use turbospark_model::{ModelSpec, Router, Scoring};

use super::{Trap, assert_caught, moes};

fn routers(spec: &mut ModelSpec) -> impl Iterator<Item = &mut Router> {
    moes(spec).map(|moe| &mut moe.router)
}

/// Softmax over all and a division by the sum of the selected is softmax over the selected.
fn same(router: &Router, scoring: Scoring) -> bool {
    let selected = |s| match s {
        Scoring::Softmax if router.normalise => Scoring::SoftmaxOfSelected,
        other => other,
    };
    selected(router.scoring) == selected(scoring)
}

fn score(spec: &mut ModelSpec, scoring: Scoring) {
    routers(spec).filter(|r| !same(r, scoring)).for_each(|r| r.scoring = scoring);
}

#[test]
fn scores_and_weights() {
    let traps: &[Trap] = &[
        ("softmax over all", |spec| score(spec, Scoring::Softmax), &[]),
        ("softmax over the selected", |spec| score(spec, Scoring::SoftmaxOfSelected), &[]),
        ("sigmoid", |spec| score(spec, Scoring::Sigmoid), &[]),
        (
            "weights that don't add up to one",
            |spec| {
                // Softmax over the selected adds up to one already.
                routers(spec)
                    .filter(|r| r.scoring != Scoring::SoftmaxOfSelected)
                    .for_each(|r| r.normalise = false);
            },
            // The norm of the experts' sum takes every common factor out again.
            &["gemma4_moe-b-f32.gguf"],
        ),
        (
            "weights that add up to one",
            |spec| {
                routers(spec)
                    .filter(|r| r.scoring != Scoring::SoftmaxOfSelected)
                    .for_each(|r| r.normalise = true);
            },
            &[],
        ),
        ("no factor on the weights", |spec| routers(spec).for_each(|r| r.weight_scale = 1.0), &[]),
        ("no factor on the logits", |spec| routers(spec).for_each(|r| r.logit_scale = 1.0), &[]),
        ("no factors of experts", |spec| routers(spec).for_each(|r| r.expert_scale = None), &[]),
    ];
    assert_caught(traps);
}

#[test]
fn choice() {
    let traps: &[Trap] = &[
        ("no bias of the router", |spec| routers(spec).for_each(|r| r.projection.bias = None), &[]),
        (
            "the router's bias for the choice only",
            |spec| {
                routers(spec).for_each(|r| {
                    if let Some(bias) = r.projection.bias.take() {
                        r.correction = Some(bias);
                        r.scoring = Scoring::Softmax;
                        r.normalise = true;
                    }
                });
            },
            &[],
        ),
        ("no correction", |spec| routers(spec).for_each(|r| r.correction = None), &[]),
        (
            "the correction in the weights",
            |spec| {
                routers(spec).for_each(|r| {
                    if let Some(correction) = r.correction.take() {
                        r.projection.bias = Some(correction);
                    }
                });
            },
            &[],
        ),
        ("no groups", |spec| routers(spec).for_each(|r| r.groups = None), &[]),
        (
            "one group more",
            |spec| routers(spec).filter_map(|r| r.groups.as_mut()).for_each(|g| g.used += 1),
            &[],
        ),
        (
            "groups ranked by their best one",
            |spec| routers(spec).filter_map(|r| r.groups.as_mut()).for_each(|g| g.best = 1),
            &[],
        ),
        (
            "groups ranked by their best two",
            |spec| routers(spec).filter_map(|r| r.groups.as_mut()).for_each(|g| g.best = 2),
            &[],
        ),
        ("one expert more", |spec| moes(spec).for_each(|m| m.top_k += 1), &[]),
        ("one expert less", |spec| moes(spec).for_each(|m| m.top_k -= 1), &[]),
        ("the router reads what experts read", |spec| routers(spec).for_each(|r| r.norm = None), &[]),
    ];
    assert_caught(traps);
}

#[test]
fn networks() {
    let traps: &[Trap] = &[
        (
            "gate and up of experts swapped",
            |spec| {
                moes(spec).for_each(|m| std::mem::swap(&mut m.gate, &mut m.up));
            },
            &[],
        ),
        (
            "no biases of experts",
            |spec| {
                moes(spec).for_each(|m| (m.gate.bias, m.up.bias, m.down.bias) = (None, None, None));
            },
            &[],
        ),
        ("no norm of the experts' sum", |spec| moes(spec).for_each(|m| m.post_norm = None), &[]),
        ("no shared expert", |spec| moes(spec).for_each(|m| m.shared = None), &[]),
        (
            "a shared expert without its gate",
            |spec| {
                moes(spec).filter_map(|m| m.shared.as_mut()).for_each(|s| s.gate = None);
            },
            &[],
        ),
        (
            "a shared expert that reads what the others read",
            |spec| {
                moes(spec).filter_map(|m| m.shared.as_mut()).for_each(|s| s.norm = None);
            },
            &[],
        ),
        (
            "a shared expert without its norm",
            |spec| {
                moes(spec).filter_map(|m| m.shared.as_mut()).for_each(|s| s.post_norm = None);
            },
            &[],
        ),
        (
            "gate and up of the shared expert swapped",
            |spec| {
                moes(spec)
                    .filter_map(|m| m.shared.as_mut())
                    .for_each(|s| std::mem::swap(&mut s.network.gate, &mut s.network.up));
            },
            &[],
        ),
    ];
    assert_caught(traps);
}
