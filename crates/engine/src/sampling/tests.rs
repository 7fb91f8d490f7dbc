//! The sampler against a naive reference that sorts everything, and its rules one by one.

use std::collections::HashMap;

use proptest::prelude::*;

use super::random::exp;
use super::*;

/// Probabilities by the textbook: sort all, cut, renormalise.
fn naive(params: &SamplingParams, logits: &[f32]) -> Vec<(u32, f64)> {
    let mut all: Vec<(u32, f64)> = logits
        .iter()
        .enumerate()
        .map(|(i, &l)| (i as u32, f64::from(l) / f64::from(params.temperature)))
        .collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    if params.top_k > 0 {
        all.truncate(params.top_k);
    }
    let top = all[0].1;
    for (_, p) in &mut all {
        *p = (*p - top).exp();
    }
    all.retain(|(_, p)| *p >= f64::from(params.min_p));
    let total: f64 = all.iter().map(|(_, p)| p).sum();
    let mut sum = 0.0;
    let mut kept = Vec::new();
    for &(id, p) in &all {
        kept.push((id, p));
        sum += p;
        if sum >= f64::from(params.top_p) * total {
            break;
        }
    }
    for (_, p) in &mut kept {
        *p /= sum;
    }
    kept
}

fn sampler(params: SamplingParams, n: usize) -> Sampler {
    Sampler::new(params, n).unwrap()
}

/// Logits on a coarse grid, so that ties happen and no cut falls within rounding of a probability's edge.
fn logits() -> impl Strategy<Value = Vec<f32>> {
    prop::collection::vec(-24i32..24, 1..400).prop_map(|v| v.into_iter().map(|x| x as f32 * 0.25).collect())
}

proptest! {
    #[test]
    fn draws_follow_the_naive_distribution(
        logits in logits(),
        top_k in 0usize..50,
        top_p in prop::sample::select(vec![0.1f32, 0.51, 0.83, 0.97, 1.0]),
        min_p in prop::sample::select(vec![0.0f32, 0.013, 0.07, 0.3]),
        temperature in prop::sample::select(vec![0.5f32, 1.0, 2.0]),
        seed in any::<u64>(),
    ) {
        let params = SamplingParams { temperature, top_k, top_p, min_p, seed, ..SamplingParams::default() };
        let expected: HashMap<u32, f64> = naive(&params, &logits).into_iter().collect();
        let mut sampler = sampler(params, logits.len());
        let draws = 2000;
        let mut counts: HashMap<u32, u32> = HashMap::new();
        for _ in 0..draws {
            *counts.entry(sampler.sample(&mut logits.clone()).unwrap()).or_default() += 1;
        }
        for (id, count) in &counts {
            prop_assert!(expected.contains_key(id), "token {id} was cut and drawn");
            let (p, n) = (expected[id], f64::from(draws));
            let sigma = (p * (1.0 - p) / n).sqrt();
            // Counts of rare tokens are Poisson's, with a heavier tail than sigma tells.
            let bound = 7.0 * sigma + 8.0 / n;
            prop_assert!((f64::from(*count) / n - p).abs() < bound, "token {id}: {count} of {n}, p {p}");
        }
        // A token that should come 50 times of 2000 is not left out.
        for (id, p) in expected {
            prop_assert!(p < 0.025 || counts.contains_key(&id), "token {id} of p {p} never drawn");
        }
    }

    #[test]
    fn argmax_is_the_first_of_the_greatest(logits in logits()) {
        let naive = (0..logits.len()).rev().max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap();
        prop_assert_eq!(argmax(&logits), naive);
    }

    #[test]
    fn exp_is_exact_to_a_part_in_a_trillion(x in -25.0f64..0.0) {
        prop_assert!((exp(x) / x.exp() - 1.0).abs() < 1e-12);
    }
}

#[test]
fn a_seed_repeats_its_choices() {
    let logits: Vec<f32> = (0..1000).map(|i| ((i * 7919) % 1000) as f32 / 200.0).collect();
    let draw = |seed| {
        let params = SamplingParams { seed, temperature: 1.5, ..SamplingParams::default() };
        let mut sampler = sampler(params, 1000);
        (0..12).map(|_| sampler.sample(&mut logits.clone()).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(draw(7), draw(7));
    assert_ne!(draw(7), draw(8));
}

#[test]
fn greedy_takes_the_greatest_whatever_the_other_parameters() {
    let mut s = sampler(SamplingParams { top_k: 1, ..SamplingParams::greedy() }, 5);
    assert_eq!(s.sample(&mut [0.0, 3.0, -1.0, 3.0, 2.0]).unwrap(), 1);
}

#[test]
fn numbers_that_are_not_finite_are_errors_and_never_win() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for at in [0, 5, 19, 39] {
            let mut logits = vec![0.5; 40];
            logits[at] = bad;
            let error = sampler(SamplingParams::greedy(), 40).sample(&mut logits.clone()).unwrap_err();
            assert!(matches!(error, EngineError::NonFiniteLogit { token, .. } if token == at), "{error}");
            if bad.is_nan() {
                assert_ne!(argmax(&logits), at);
            }
        }
    }
    assert_eq!(argmax(&[f32::NAN, -2.0, -1.0]), 2);
}

#[test]
fn biases_move_and_forbid_tokens() {
    let bias = |logit_bias| SamplingParams { logit_bias, ..SamplingParams::greedy() };
    let logits = [1.0, 2.0, 3.0];
    assert_eq!(sampler(bias(vec![(0, 5.0)]), 3).sample(&mut logits.clone()).unwrap(), 0);
    let forbid = f32::NEG_INFINITY;
    assert_eq!(sampler(bias(vec![(2, forbid)]), 3).sample(&mut logits.clone()).unwrap(), 1);
    let all = sampler(bias(vec![(0, forbid), (1, forbid), (2, forbid)]), 3).sample(&mut logits.clone());
    assert!(matches!(all, Err(EngineError::NothingToSample)));
    let hot =
        SamplingParams { temperature: 1e30, top_k: 0, min_p: 0.0, top_p: 1.0, ..bias(vec![(2, forbid)]) };
    let mut s = sampler(hot, 3);
    assert!((0..200).all(|_| s.sample(&mut logits.clone()).unwrap() != 2));
}

#[test]
fn penalties_are_their_formulas() {
    let params = SamplingParams {
        repetition_penalty: 2.0,
        presence_penalty: 0.25,
        frequency_penalty: 0.5,
        ..SamplingParams::greedy()
    };
    let mut s = sampler(params, 4);
    s.observe_prompt(&[1, 2]);
    let mut logits = [4.0, 3.0, -3.0, 0.0];
    assert_eq!(s.sample(&mut logits).unwrap(), 0);
    assert_eq!(logits, [4.0, 1.5, -6.0, 0.0], "repetition counts the prompt");
    let mut logits = [4.0, 3.0, -3.0, 0.0];
    assert_eq!(s.sample(&mut logits).unwrap(), 1);
    assert_eq!(logits, [4.0 / 2.0 - 0.75, 1.5, -6.0, 0.0], "presence and frequency count the answer");
    let mut logits = [4.0, 3.0, -3.0, 0.0];
    s.sample(&mut logits).unwrap();
    assert_eq!(logits, [4.0 / 2.0 - 0.75, 1.5 - 0.75, -6.0, 0.0]);
}

#[test]
fn parameters_out_of_range_are_refused_by_name() {
    let base = SamplingParams::default;
    let cases: Vec<(SamplingParams, &str)> = vec![
        (SamplingParams { temperature: -0.1, ..base() }, "temperature"),
        (SamplingParams { temperature: f32::NAN, ..base() }, "temperature"),
        (SamplingParams { top_p: 0.0, ..base() }, "top_p"),
        (SamplingParams { top_p: 1.1, ..base() }, "top_p"),
        (SamplingParams { min_p: -0.1, ..base() }, "min_p"),
        (SamplingParams { repetition_penalty: 0.0, ..base() }, "repetition_penalty"),
        (SamplingParams { presence_penalty: f32::INFINITY, ..base() }, "presence_penalty"),
        (SamplingParams { frequency_penalty: f32::NAN, ..base() }, "frequency_penalty"),
        (SamplingParams { logit_bias: vec![(0, f32::INFINITY)], ..base() }, "logit_bias"),
        (SamplingParams { logit_bias: vec![(0, f32::NAN)], ..base() }, "logit_bias"),
    ];
    for (params, field) in cases {
        let error = Sampler::new(params, 10).unwrap_err().to_string();
        assert!(error.contains(field), "{error}");
    }
    let outside = SamplingParams { logit_bias: vec![(10, 1.0)], ..base() };
    assert!(matches!(
        Sampler::new(outside, 10),
        Err(EngineError::TokenOutOfRange { token: 10, n_vocab: 10 })
    ));
}

#[test]
fn penalties_and_biases_that_overflow_still_leave_a_choice() {
    for (repetition_penalty, penalty, bias) in
        [(1e-45, 0.0, 0.0), (3e38, 0.0, 0.0), (1.0, -3e38, 3e38), (1.0, 3e38, 3e38), (1.0, 3e38, -3e38)]
    {
        let params = SamplingParams {
            repetition_penalty,
            presence_penalty: penalty,
            frequency_penalty: penalty,
            logit_bias: vec![(1, bias)],
            ..SamplingParams::default()
        };
        let mut sampler = Sampler::new(params, 4).unwrap();
        sampler.observe_prompt(&[0, 1, 2, 3]);
        for _ in 0..4 {
            assert!(sampler.sample(&mut [1.0, -2.0, 0.0, 3e38]).unwrap() < 4);
        }
    }
}
