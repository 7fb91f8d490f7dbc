//! Every tensor has its part in the logits: one that is read but not used, or used in the wrong place of a stack,
//! gives fluent text and another model.

use turbospark_engine::Engine;
use turbospark_model::Role;

use crate::fixtures::{distance, edited, engine, exact, logits, longest, small};

/// Far above the noise of float arithmetic, which is below 1e-4.
const MOVED: f64 = 1e-3;

/// Three tenths more or less of each value, of neighbours as often the same way as not. A lone value changes its sign: a positive
/// factor on the last layer's output would be taken out again by the head's norm.
fn shake(values: &mut [f32]) {
    if let [value] = values {
        *value = -*value;
        return;
    }
    for (i, value) in values.iter_mut().enumerate() {
        let up = i.wrapping_mul(0x9E37_79B9) >> 7 & 1 == 0;
        *value *= if up { 1.3 } else { 0.7 };
    }
}

/// Logits of `tokens` in a copy of `file` that was edited.
fn logits_with(file: &str, tokens: &[u32], edit: impl FnMut(&str, &mut [f32])) -> Vec<f32> {
    let engine = Engine::from_gguf(edited(file, edit), exact()).unwrap();
    logits(&engine, tokens, tokens.len())
}

#[test]
fn every_tensor_moves_the_logits_unless_it_is_unused() {
    let mut still = Vec::new();
    for file in small() {
        let engine = engine(file);
        let tokens = longest(file);
        let before = logits(&engine, &tokens, tokens.len());
        for (tensor, role) in engine.gguf().tensors().iter().zip(&engine.spec().roles) {
            let after = logits_with(file, &tokens, |name, values| {
                if name == tensor.name {
                    shake(values);
                }
            });
            let by = distance(&after, &before);
            match role {
                Role::Unused => assert_eq!(by, 0.0, "{file}: {} is unused", tensor.name),
                _ if by > MOVED => {}
                _ => still.push(format!("{file}: {} moves them by {by:.0e}", tensor.name)),
            }
        }
    }
    assert!(still.is_empty(), "logits should depend on these:\n{}", still.join("\n"));
}

/// Leaves the correction of the choice out, which keeps some experts from ever being chosen.
fn open_choice(name: &str, values: &mut [f32]) {
    if name.contains("exp_probs_b") {
        values.fill(0.0);
    }
}

#[test]
fn every_expert_moves_the_logits() {
    let (mut experts, mut still) = (0, Vec::new());
    for file in small() {
        let engine = engine(file);
        let tokens: Vec<u32> = (0..engine.spec().n_vocab as u32).collect();
        let stacks: Vec<_> = (engine.gguf().tensors().iter().zip(&engine.spec().roles))
            .filter_map(|(tensor, role)| (*role == Role::Expert).then_some(tensor))
            .collect();
        if stacks.is_empty() {
            continue;
        }
        let before = logits_with(file, &tokens, open_choice);
        for stack in stacks {
            let count = *stack.shape.last().unwrap();
            for expert in 0..count {
                let after = logits_with(file, &tokens, |name, values| {
                    open_choice(name, values);
                    if name == stack.name {
                        let len = values.len() / count;
                        shake(&mut values[expert * len..][..len]);
                    }
                });
                let by = distance(&after, &before);
                experts += 1;
                if by <= MOVED {
                    still.push(format!("{file}: expert {expert} of {} moves them by {by:.0e}", stack.name));
                }
            }
        }
    }
    assert!(still.is_empty(), "logits should depend on these:\n{}", still.join("\n"));
    assert!(experts > 100, "{experts} matrices");
}
