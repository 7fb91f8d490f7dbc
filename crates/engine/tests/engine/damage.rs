//! Damaged weights: a router that has no number to choose by says where, and neither it nor an expert that nobody chose
//! leaves anything in what comes after.

use turbospark_engine::{Engine, EngineError, GenerateOptions, SamplingParams, Wanted};
use turbospark_model::FeedForward;

use crate::fixtures::{bits, edited, engine, exact, logits, longest, small};

/// Small models with routers, and the first and last layer that has one.
fn mixtures() -> impl Iterator<Item = (&'static str, usize, usize)> {
    small().filter_map(|file| {
        let engine = engine(file);
        let routed = |l: &turbospark_model::Layer| matches!(l.feed_forward, FeedForward::Moe(_));
        let layers = &engine.spec().layers;
        Some((file, layers.iter().position(routed)?, layers.iter().rposition(routed)?))
    })
}

/// A model whose embedding of `token` is not a number.
fn damaged(file: &str, token: usize) -> Engine {
    let n_vocab = engine(file).spec().n_vocab;
    let gguf = edited(file, |name, values| {
        if name == "token_embd.weight" {
            let width = values.len() / n_vocab;
            values[token * width..][..width].fill(f32::NAN);
        }
    });
    Engine::from_gguf(gguf, exact()).unwrap()
}

/// A prompt without `token`.
fn without(file: &str, token: u32) -> Vec<u32> {
    longest(file).iter().map(|&t| if t == token { token + 1 } else { t }).collect()
}

#[test]
fn a_row_that_is_not_a_number_is_named_by_layer_and_position_and_leaves_no_trace() {
    const BAD: u32 = 21;
    for (file, first, _) in mixtures() {
        let engine = damaged(file, BAD as usize);
        let good = without(file, BAD);
        let mut session = engine.session();
        session.prompt(&good).unwrap();
        // In the middle of a prompt, and as the last row, where the last layer works on that row alone.
        for tail in [vec![3, 4, BAD, 5, 6], vec![BAD]] {
            let prompt = [good.clone(), tail].concat();
            let bad = prompt.iter().position(|&t| t == BAD).unwrap();
            // The last layer's router sees only the last row, which attends to the damaged one.
            let last = first + 1 == engine.spec().layers.len();
            let position = if last { prompt.len() - 1 } else { bad };
            match session.prompt(&prompt) {
                Err(EngineError::BadRouting { layer, position: at, .. }) => {
                    assert_eq!((layer, at), (first, position), "{file}");
                }
                other => panic!("{file}: {other:?}"),
            }
            assert!(session.tokens().len() <= bad, "{file}: the cache holds the damaged row");
            let mut fresh = engine.session();
            for (session, what) in [(&mut session, "after the error"), (&mut fresh, "fresh")] {
                session.prompt(&[good.clone(), vec![9]].concat()).unwrap();
                session.feed(&[10, 11]).unwrap();
                assert_eq!(session.tokens().len(), good.len() + 3, "{file} {what}");
            }
            assert_eq!(bits(session.logits()), bits(fresh.logits()), "{file}");
        }
    }
}

#[test]
fn a_router_that_is_not_a_number_is_named_by_layer_and_expert() {
    for (file, _, last) in mixtures() {
        let gguf = edited(file, |name, values| {
            if name == format!("blk.{last}.ffn_gate_inp.weight") {
                let count = values.len();
                values[count - 1] = f32::NAN;
            }
        });
        let engine = Engine::from_gguf(gguf, exact()).unwrap();
        let FeedForward::Moe(moe) = &engine.spec().layers[last].feed_forward else { unreachable!() };
        let tokens = longest(file);
        let mut sequence = engine.sequence();
        let error = engine.feed(&mut sequence, &tokens, None, Wanted::Last, |_, _| ()).unwrap_err();
        let EngineError::BadRouting { layer, position, expert } = error else { panic!("{file}: {error}") };
        assert!(sequence.is_empty(), "{file}");
        // Only the last row gets as far as the last layer's router.
        let row = if last + 1 == engine.spec().layers.len() { tokens.len() - 1 } else { 0 };
        assert_eq!((layer, position, expert), (last, row, moe.n_experts - 1), "{file}");
        let text = error.to_string();
        for part in [format!("layer {layer}"), format!("position {position}"), format!("expert {expert}")] {
            assert!(text.contains(&part), "{text}");
        }
    }
}

#[test]
fn a_dense_model_says_which_logit_is_not_a_number() {
    let mut dense = 0;
    for file in small().filter(|file| mixtures().all(|(mixture, ..)| mixture != *file)) {
        let engine = damaged(file, 21);
        let mut session = engine.session();
        let options = GenerateOptions {
            sampling: SamplingParams::greedy(),
            max_tokens: Some(1),
            ..GenerateOptions::default()
        };
        let mut generation = session.generate(&[1, 21, 5], options).unwrap();
        let error = generation.next().unwrap().unwrap_err();
        assert!(matches!(error, EngineError::NonFiniteLogit { .. }), "{file}: {error}");
        dense += 1;
    }
    assert!(dense >= 5);
}

#[test]
fn an_infinite_expert_changes_no_row_that_did_not_choose_it() {
    for (file, _, last) in mixtures() {
        let tokens = longest(file);
        let clean = engine(file);
        let (n_vocab, n_experts) = match &clean.spec().layers[last].feed_forward {
            FeedForward::Moe(moe) => (clean.spec().n_vocab, moe.n_experts),
            FeedForward::Dense(_) => unreachable!(),
        };
        if last + 1 != clean.spec().layers.len() {
            continue;
        }
        let before = logits(&clean, &tokens, tokens.len());
        // After the last layer's experts rows don't meet any more, so what an expert changes is what chose it.
        let with = |expert: usize, edit: fn(&mut f32)| {
            let gguf = edited(file, |name, values| {
                if name == format!("blk.{last}.ffn_down_exps.weight") {
                    let len = values.len() / n_experts;
                    values[expert * len..][..len].iter_mut().for_each(edit);
                }
            });
            logits(&Engine::from_gguf(gguf, exact()).unwrap(), &tokens, tokens.len())
        };
        let (mut chose, mut not) = (0, 0);
        for expert in 0..n_experts {
            let changed = with(expert, |x| *x *= 2.0);
            let infinite = with(expert, |x| *x = f32::INFINITY);
            for (row, before) in before.chunks_exact(n_vocab).enumerate() {
                let at = row * n_vocab..(row + 1) * n_vocab;
                if changed[at.clone()] == *before {
                    assert_eq!(bits(&infinite[at]), bits(before), "{file}: expert {expert}, row {row}");
                    not += 1;
                } else {
                    assert!(
                        infinite[at].iter().any(|x| !x.is_finite()),
                        "{file}: expert {expert}, row {row}"
                    );
                    chose += 1;
                }
            }
        }
        assert!(chose > 0 && not > 0, "{file}: {chose} choices, {not} others");
    }
}
