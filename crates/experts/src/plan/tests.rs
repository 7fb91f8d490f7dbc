//! The arithmetic over models of real proportions, made-up ones and absurd ones.

use super::*;
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

fn batches(kv: u64, row: u64) -> Vec<Batch> {
    (1..=128)
        .map(|i| Batch { rows: 32 * i, kv: kv + i as u64 * 1000, activations: 32 * i as u64 * row })
        .collect()
}

/// About a model of 20 billion parameters.
fn large() -> Needs {
    let layer = ExpertNeeds { n_experts: 32, top_k: 4, bytes: 13_219_200, read: 13_234_176 };
    Needs {
        resident: vec![("attention".to_owned(), 677 * MIB), ("head".to_owned(), 600 * MIB)],
        vectors: 27 * MIB,
        tokenizer: 30 * MIB,
        overhead: 20 * MIB,
        read_buffers: MIB,
        batches: batches(110 * MIB, 150_000),
        layers: vec![layer; 24],
        slot: 13_238_272,
        dense_layers: Vec::new(),
    }
}

fn floor(needs: &Needs) -> u64 {
    needs.limits().floor
}

#[test]
fn parts_add_up_and_nothing_is_counted_twice() {
    let plan = plan(&large(), 4 << 30).unwrap();
    let parts = plan.parts();
    assert_eq!(parts.iter().map(|(_, bytes)| bytes).sum::<u64>(), plan.total());
    assert_eq!(plan.total() + plan.unused(), 4 << 30);
    let by_hand = (677 + 600 + 27 + 30 + 20 + 1) * MIB + plan.kv + plan.activations;
    assert_eq!(plan.total(), by_hand + 13_238_272 * plan.slots() as u64);
    assert!(plan.unused() < 13_238_272 + 32 * 150_000 + 1000, "{}", plan.unused());
}

#[test]
fn the_floor_opens_and_a_byte_less_is_refused_with_its_arithmetic() {
    let needs = large();
    let floor = floor(&needs);
    let opened = plan(&needs, floor).unwrap();
    assert_eq!((opened.rows, opened.slots(), opened.unused()), (32, 4 + READ_AHEAD, 0));
    let error = plan(&needs, floor - 1).unwrap_err();
    assert!(matches!(error, PlanError::BelowFloor { floor: f, .. } if f == floor));
    let text = error.to_string();
    for part in ["resident weights 1277.0", "KV cache 110.0", "activations of 32 rows", "6 expert slots 75.8"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.contains(&format!("the smallest that opens is {}MiB", floor.div_ceil(MIB))), "{text}");
    // What the message names can be given.
    assert!(plan(&needs, floor.div_ceil(MIB) * MIB).is_ok());
}

#[test]
fn the_comfortable_budget_holds_a_tokens_experts_and_a_byte_less_does_not() {
    let needs = large();
    let comfortable = plan(&needs, 4 << 30).unwrap().comfortable;
    assert!(plan(&needs, comfortable).unwrap().slots() >= 24 * 4 + 4 + READ_AHEAD);
    assert!(plan(&needs, comfortable - 1).unwrap().slots() < 24 * 4 + 4 + READ_AHEAD);
}

#[test]
fn a_budget_for_all_experts_streams_nothing() {
    let needs = large();
    let whole = needs.limits().whole;
    let below = plan(&needs, whole - 1).unwrap();
    assert!(!below.all_in_memory() && below.slots() < 768);
    let plan = plan(&needs, whole).unwrap();
    assert!(plan.all_in_memory() && plan.slots() == 768 && plan.unused() == 0);
    assert_eq!((plan.read_per_token(0.0), plan.tokens_per_second(0.0, 1e9)), (0.0, None));
    let roomy = super::plan(&needs, whole + (1 << 30)).unwrap();
    assert_eq!(roomy.rows, RESIDENT_ROWS);
}

#[test]
fn reads_and_rates_follow_from_hits() {
    let plan = plan(&large(), 4 << 30).unwrap();
    let token = 24.0 * 4.0 * 13_234_176.0;
    assert_eq!(plan.read_per_token(0.0), token);
    assert_eq!(plan.read_per_token(0.75), token / 4.0);
    assert_eq!(plan.read_per_token(1.5), 0.0);
    assert_eq!(plan.tokens_per_second(0.5, token), Some(2.0));
    assert_eq!(plan.uniform_hit_rate(), plan.slots() as f64 / 768.0);
    let all = 24 * 32 * 13_234_176;
    assert_eq!(plan.read_per_prompt(1), token as u64);
    assert_eq!(plan.read_per_prompt(plan.rows), all);
    assert_eq!(plan.read_per_prompt(plan.rows + 8), 2 * all);
}

#[test]
fn batches_take_a_tenth_of_the_budget_at_most() {
    for gib in 3..10 {
        let plan = plan(&large(), gib << 30).unwrap();
        assert!(plan.activations <= (gib << 30) / 10 && plan.rows >= 1024, "{gib}: {}", plan.rows);
    }
}

#[test]
fn a_dense_model_that_does_not_fit_says_what_it_takes() {
    let needs = Needs { layers: Vec::new(), slot: 0, ..large() };
    let whole = needs.limits().whole;
    let opened = plan(&needs, whole).unwrap();
    assert_eq!((opened.placement, opened.n_experts(), opened.uniform_hit_rate()), (Placement::Dense, 0, 1.0));
    let error = plan(&needs, whole - 1).unwrap_err();
    assert!(matches!(error, PlanError::BelowFloor { floor, .. } if floor == whole), "{error}");
}

#[test]
fn a_dense_models_first_layers_stay_and_the_rest_passes_through_two_buffers() {
    let sizes = [10, 30, 20, 10, 10];
    let needs = Needs {
        resident: vec![("all".to_owned(), 80 + 7)],
        read_buffers: 1,
        batches: vec![Batch { rows: 32, kv: 2, activations: 1 }],
        dense_layers: sizes.map(|bytes| LayerNeeds { bytes, read: bytes + 1 }).to_vec(),
        ..Needs::default()
    };
    let rest = 7 + 2 + 1;
    let expected = |pinned, pinned_bytes, buffers, read_per_token| {
        Placement::Layers(DensePlan { pinned, layers: 5, pinned_bytes, buffers, read_per_token })
    };
    let at = |budget: u64| {
        let plan = plan(&needs, budget).unwrap();
        assert!(plan.total() <= budget, "{} of {budget}", plan.total());
        plan.placement
    };
    assert_eq!(at(rest + 80), Placement::Dense);
    // Streaming has a byte of its own to pay, and one a layer.
    assert_eq!(at(rest + 79), expected(1, 10, 62, 74));
    assert_eq!(at(rest + 1 + 62), expected(0, 0, 62, 85));
    assert_eq!(at(rest + 1 + 71), expected(0, 0, 62, 85));
    assert_eq!(at(rest + 1 + 72), expected(1, 10, 62, 74));
    let error = plan(&needs, rest + 62).unwrap_err();
    assert!(matches!(error, PlanError::BelowFloor { floor, .. } if floor == rest + 63), "{error}");
    assert!(error.to_string().contains("two layers on their way"), "{error}");
}

#[test]
fn absurd_numbers_neither_overflow_nor_panic() {
    let huge = ExpertNeeds { n_experts: usize::MAX, top_k: usize::MAX, bytes: u64::MAX, read: u64::MAX };
    let needs = Needs {
        resident: vec![("a".to_owned(), u64::MAX), ("b".to_owned(), u64::MAX)],
        vectors: u64::MAX,
        tokenizer: u64::MAX,
        overhead: u64::MAX,
        read_buffers: u64::MAX,
        batches: vec![Batch { rows: usize::MAX, kv: u64::MAX, activations: u64::MAX }],
        layers: vec![huge; 3],
        slot: u64::MAX,
        dense_layers: vec![LayerNeeds { bytes: u64::MAX, read: u64::MAX }; 3],
    };
    for budget in [0, 1, u64::MAX - 1, u64::MAX] {
        if let Ok(plan) = plan(&needs, budget) {
            assert!(plan.total() <= budget);
            plan.read_per_prompt(usize::MAX);
        }
        let dense = Needs { layers: Vec::new(), ..needs.clone() };
        assert!(super::plan(&dense, budget).is_ok_and(|p| p.total() <= budget) || budget < u64::MAX);
    }
    let empty = Needs { batches: vec![Batch { rows: 0, kv: 0, activations: 0 }], ..Needs::default() };
    assert_eq!(plan(&empty, 0).unwrap().total(), 0);
}

fn sizes() -> impl Strategy<Value = u64> {
    prop_oneof![0_u64..5000, 0_u64..1 << 40, Just(0), any::<u64>()]
}

prop_compose! {
    fn needs()(
        resident in prop::collection::vec(sizes(), 0..4),
        vectors in sizes(), tokenizer in sizes(), overhead in sizes(), read_buffers in sizes(), slot_extra in 0_u64..10_000,
        kv in sizes(), row in 0_u64..1 << 20,
        layers in prop::collection::vec((1_usize..300, 1_usize..10, 0_u64..1 << 24), 0..6),
    ) -> Needs {
        let layers: Vec<ExpertNeeds> = layers
            .into_iter()
            .map(|(n_experts, top_k, bytes)| ExpertNeeds {
                n_experts, top_k: top_k.min(n_experts), bytes, read: bytes + 4096,
            })
            .collect();
        let slot = layers.iter().map(|l| l.read).max().unwrap_or(0) + slot_extra;
        Needs {
            resident: resident.into_iter().map(|bytes| ("role".to_owned(), bytes)).collect(),
            vectors, tokenizer, overhead, read_buffers,
            batches: batches(kv.min(u64::MAX / 2), row),
            layers, slot, dense_layers: Vec::new(),
        }
    }
}

prop_compose! {
    /// As above, without experts, and with layers that can be read instead of kept.
    fn dense_needs()(
        needs in needs(), layers in prop::collection::vec((1_u64..1 << 30, 0_u64..10_000), 1..40),
    ) -> Needs {
        let dense_layers: Vec<LayerNeeds> =
            layers.into_iter().map(|(bytes, around)| LayerNeeds { bytes, read: bytes + around }).collect();
        let mut resident = needs.resident;
        resident.push(("layers".to_owned(), dense_layers.iter().map(|l| l.bytes).sum()));
        Needs { resident, layers: Vec::new(), slot: 0, dense_layers, ..needs }
    }
}

proptest! {
    #[test]
    fn every_plan_fits_its_budget_and_more_memory_gives_no_fewer_slots(
        needs in needs(), share in 0.0_f64..1.3, more in 0_u64..1 << 26,
    ) {
        let limits = needs.limits();
        prop_assert!(limits.floor <= limits.comfortable && limits.comfortable <= limits.whole);
        if limits.floor > 0 {
            prop_assert!(plan(&needs, limits.floor - 1).is_err());
        }
        let budget = limits.floor.saturating_add(((limits.whole - limits.floor) as f64 * share) as u64);
        let here = plan(&needs, budget).unwrap();
        let there = plan(&needs, budget.saturating_add(more)).unwrap();
        prop_assert!(here.total() <= budget, "{} of {budget}", here.total());
        prop_assert!(here.slots() <= there.slots());
        prop_assert!(here.slots() >= needs.least_slots() && here.slots() <= needs.n_experts());
        prop_assert!(here.rows >= 32);
    }

    #[test]
    fn every_dense_plan_fits_its_budget_and_more_memory_keeps_no_fewer_layers(
        needs in dense_needs(), share in 0.0_f64..1.3, more in 0_u64..1 << 26,
    ) {
        let limits = needs.limits();
        prop_assert!(limits.floor <= limits.whole);
        if limits.floor > 0 {
            prop_assert!(plan(&needs, limits.floor - 1).is_err());
        }
        let budget = limits.floor.saturating_add(((limits.whole - limits.floor) as f64 * share) as u64);
        let pinned = |plan: &MemoryPlan| match plan.placement {
            Placement::Layers(dense) => dense.pinned,
            _ => needs.dense_layers.len(),
        };
        let here = plan(&needs, budget).unwrap();
        let there = plan(&needs, budget.saturating_add(more)).unwrap();
        prop_assert!(here.total() <= budget, "{} of {budget}", here.total());
        prop_assert!(pinned(&here) <= pinned(&there) && here.rows >= 32);
    }
}
