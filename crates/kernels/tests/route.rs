//! The router: against a plain sort in double precision, and what it does with ties and broken scores.

use turbospark_kernels::{Cpu, Groups, NotFinite, RouterParams, Routes, Scoring};

const PLAIN: RouterParams<'static> = RouterParams {
    n_experts: 8,
    top_k: 2,
    scoring: Scoring::Softmax,
    correction: None,
    groups: None,
    normalise: false,
    norm_floor: 0.0,
    scale: 1.0,
    expert_scale: None,
};

fn value(seed: usize, i: usize) -> f32 {
    let mut z = (seed as u64 * 0x9e37_79b9 + i as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z >> 40) as f32 / (1 << 23) as f32 - 1.0
}

fn route(cpu: &Cpu, params: &RouterParams<'_>, logits: &[f32]) -> Routes {
    let mut routes = Routes::default();
    cpu.route(params, logits, &mut routes).expect("finite scores");
    routes
}

/// Indices of `scores` from the highest on; equal ones by index.
fn descending(scores: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
    order
}

/// Experts and weights of one row, by the definitions.
fn reference(p: &RouterParams<'_>, logits: &[f32]) -> Vec<(usize, f64)> {
    let logits: Vec<f64> = logits.iter().map(|x| f64::from(*x)).collect();
    let total: f64 = logits.iter().map(|x| x.exp()).sum();
    let scores: Vec<f64> = logits
        .iter()
        .map(|x| match p.scoring {
            Scoring::Softmax => x.exp() / total,
            Scoring::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            Scoring::SoftmaxOfSelected => *x,
        })
        .collect();
    let mut choice = scores.clone();
    if let Some(correction) = p.correction {
        choice.iter_mut().zip(correction).for_each(|(s, c)| *s += f64::from(*c));
    }
    if let Some(groups) = p.groups {
        let size = p.n_experts / groups.count;
        let of_group =
            |group: &[f64]| -> f64 { descending(group)[..groups.best].iter().map(|i| group[*i]).sum() };
        let group_scores: Vec<f64> = choice.chunks(size).map(of_group).collect();
        for g in &descending(&group_scores)[groups.used..] {
            choice[g * size..(g + 1) * size].fill(f64::NEG_INFINITY);
        }
    }
    let chosen = &descending(&choice)[..p.top_k];
    let mut weights: Vec<f64> = chosen.iter().map(|e| scores[*e]).collect();
    if p.scoring == Scoring::SoftmaxOfSelected {
        let sum: f64 = weights.iter().map(|w| w.exp()).sum();
        weights.iter_mut().for_each(|w| *w = w.exp() / sum);
    }
    if p.normalise {
        let sum: f64 = weights.iter().sum::<f64>() + f64::from(p.norm_floor);
        weights.iter_mut().for_each(|w| *w /= sum);
    }
    let factor = |e: usize| f64::from(p.scale) * p.expert_scale.map_or(1.0, |s| f64::from(s[e]));
    chosen.iter().zip(weights).map(|(e, w)| (*e, w * factor(*e))).collect()
}

#[test]
fn choice_and_weights_match_a_sort_in_double_precision() {
    let mut checked = 0;
    for (n, k) in [(8, 2), (32, 4), (128, 8), (256, 8), (60, 4), (13, 13), (1, 1)] {
        let correction: Vec<f32> = (0..n).map(|i| 0.6 * value(7, i)).collect();
        let expert_scale: Vec<f32> = (0..n).map(|i| 1.5 + value(8, i)).collect();
        let logits: Vec<f32> = (0..9 * n).map(|i| 5.0 * value(n, i)).collect();
        for scoring in [Scoring::Softmax, Scoring::Sigmoid, Scoring::SoftmaxOfSelected] {
            for variant in 0..32 {
                let bit = |b: usize| variant >> b & 1 == 1;
                let best = if bit(1) { 2 } else { 1 };
                let params = RouterParams {
                    n_experts: n,
                    top_k: k,
                    scoring,
                    correction: bit(0).then_some(&*correction),
                    groups: (bit(2) && n % 4 == 0).then_some(Groups { count: 4, used: 2, best }),
                    normalise: bit(3),
                    norm_floor: if bit(4) { 0.25 } else { 0.0 },
                    scale: if bit(4) { 2.5 } else { 1.0 },
                    expert_scale: bit(4).then_some(&*expert_scale),
                };
                let routes = route(&Cpu::new(2), &params, &logits);
                assert_eq!((routes.top_k, routes.experts.len(), routes.weights.len()), (k, 9 * k, 9 * k));
                for (row, logits) in logits.chunks(n).enumerate() {
                    for (rank, (expert, weight)) in reference(&params, logits).into_iter().enumerate() {
                        let at = row * k + rank;
                        assert_eq!(routes.experts[at] as usize, expert, "row {row} of {params:?}");
                        assert!((f64::from(routes.weights[at]) - weight).abs() < 2e-6 * weight.max(1.0));
                        checked += 1;
                    }
                }
            }
        }
    }
    assert!(checked > 10_000);
}

#[test]
fn routes_have_the_same_bits_in_any_company_on_any_threads_and_in_scalar_code() {
    for (n, scoring) in [
        (256, Scoring::Softmax),
        (61, Scoring::Sigmoid),
        (37, Scoring::SoftmaxOfSelected),
        (5, Scoring::Softmax),
    ] {
        let params = RouterParams { n_experts: n, top_k: 4, scoring, normalise: true, ..PLAIN };
        let logits: Vec<f32> = (0..300 * n).map(|i| 20.0 * value(3, i)).collect();
        let want = route(&Cpu::scalar(1), &params, &logits);
        for threads in [1, 2, 3] {
            assert_eq!(route(&Cpu::new(threads), &params, &logits), want);
        }
        for row in [0, 1, 150, 299] {
            let alone = route(&Cpu::new(2), &params, &logits[row * n..(row + 1) * n]);
            assert_eq!(alone.experts, want.experts[row * 4..row * 4 + 4]);
            assert_eq!(alone.weights, want.weights[row * 4..row * 4 + 4]);
        }
    }
}

#[test]
fn equal_scores_go_to_the_lower_index() {
    let cpu = Cpu::new(1);
    let logits = [1.0, 3.0, 2.0, 3.0, 2.0, 3.0, 2.0, 0.0];
    let params = RouterParams { top_k: 5, ..PLAIN };
    assert_eq!(route(&cpu, &params, &logits).experts, [1, 3, 5, 2, 4]);
    let correction = [0.0; 8];
    let corrected = RouterParams { correction: Some(&correction), scoring: Scoring::Sigmoid, ..params };
    assert_eq!(route(&cpu, &corrected, &logits).experts, [1, 3, 5, 2, 4]);
    // Groups 0 and 3 win; the equal members of group 3 come after those of group 0 although its score is higher.
    let logits = [1.0, 3.0, 0.0, 2.0, 0.0, 2.0, 4.0, 3.0];
    let groups = Some(Groups { count: 4, used: 2, best: 2 });
    let grouped = RouterParams { top_k: 3, groups, scoring: Scoring::SoftmaxOfSelected, ..PLAIN };
    assert_eq!(route(&cpu, &grouped, &logits).experts, [6, 1, 7]);
    let tied = RouterParams { top_k: 4, ..grouped };
    assert_eq!(route(&cpu, &tied, &[1.0; 8]).experts, [0, 1, 2, 3], "equal groups too");
}

#[test]
fn a_correction_chooses_but_does_not_weigh() {
    let correction = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 10.0, -10.0];
    let params =
        RouterParams { scoring: Scoring::Sigmoid, correction: Some(&correction), normalise: true, ..PLAIN };
    let routes = route(&Cpu::new(1), &params, &[0.0, 0.0, 1.0, 0.0, 0.0, 0.0, -1.0, 5.0]);
    assert_eq!(routes.experts, [6, 2]);
    let (a, b) = (1.0 / (1.0 + 1_f32.exp()), 1.0 / (1.0 + (-1_f32).exp()));
    assert!((routes.weights[0] - a / (a + b)).abs() < 1e-6 && (routes.weights[1] - b / (a + b)).abs() < 1e-6);
}

#[test]
fn an_unselected_group_is_never_chosen_even_with_negative_scores() {
    let correction = [-5.0; 8];
    let params = RouterParams {
        top_k: 4,
        scoring: Scoring::Sigmoid,
        correction: Some(&correction),
        groups: Some(Groups { count: 4, used: 2, best: 2 }),
        ..PLAIN
    };
    let routes = route(&Cpu::new(1), &params, &[0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 2.0, 2.0]);
    assert_eq!(routes.experts, [6, 7, 2, 3]);
}

#[test]
fn scores_that_rounding_makes_equal_keep_the_order_of_their_logits() {
    let params = RouterParams { scoring: Scoring::Sigmoid, ..PLAIN };
    let routes = route(&Cpu::new(1), &params, &[20.0, 30.0, 25.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!((routes.experts, routes.weights), (vec![1, 2], vec![1.0, 1.0]));
}

#[test]
fn broken_scores_are_an_error_that_names_row_and_expert() {
    for cpu in [Cpu::new(2), Cpu::scalar(1)] {
        for scoring in [Scoring::Softmax, Scoring::Sigmoid, Scoring::SoftmaxOfSelected] {
            let params = RouterParams { scoring, ..PLAIN };
            for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                let mut logits = vec![0.5; 4000 * 8];
                logits[37 * 8 + 5] = bad;
                logits[37 * 8 + 7] = bad;
                logits[3999 * 8] = bad;
                let mut routes = Routes::default();
                let error = cpu.route(&params, &logits, &mut routes);
                assert_eq!(error, Err(NotFinite { row: 37, expert: 5 }));
                assert!(routes.experts.is_empty() && routes.weights.is_empty());
            }
        }
        let mut correction = [0.0; 8];
        correction[3] = f32::NAN;
        let params = RouterParams { correction: Some(&correction), ..PLAIN };
        let error = cpu.route(&params, &[0.0; 16], &mut Routes::default());
        assert_eq!(error, Err(NotFinite { row: 0, expert: 3 }));
    }
}

#[test]
fn the_largest_finite_logits_are_routed() {
    for scoring in [Scoring::Softmax, Scoring::Sigmoid, Scoring::SoftmaxOfSelected] {
        let params = RouterParams { scoring, normalise: true, ..PLAIN };
        let logits = [f32::MIN, 0.0, f32::MAX, f32::MIN, 1.0, 0.0, 0.0, 0.0];
        let routes = route(&Cpu::new(1), &params, &logits);
        assert_eq!(routes.experts, [2, 4]);
        assert_eq!(routes, route(&Cpu::scalar(1), &params, &logits));
        assert!((routes.weights.iter().sum::<f32>() - 1.0).abs() < 1e-6);
    }
}
