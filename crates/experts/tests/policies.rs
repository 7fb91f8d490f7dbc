//! Cache policies: what each is known for, and how near the default comes to the optimum.

use std::path::Path;

use turbospark_experts::trace::{MadeUp, Trace, TraceHeader, TraceLayer, generate, replay, replay_optimal};
use turbospark_experts::{CacheCore, Counts, Key, Phase, PolicyKind, RouteBatch, WINDOW};

/// Belady's optimum by definition: everything looked up in the rest of the trace, batch by batch.
fn optimum_by_definition(trace: &Trace, slots: usize) -> u64 {
    let batches: Vec<_> = trace.batches().collect();
    let mut cached: Vec<Key> = Vec::new();
    let mut hits = 0;
    for (i, batch) in batches.iter().enumerate() {
        let missing: Vec<Key> = batch.keys().filter(|key| !cached.contains(key)).collect();
        hits += (batch.experts.len() - missing.len()) as u64;
        for key in missing {
            if cached.len() == slots {
                let next = |key: &Key| {
                    batches[i + 1..].iter().position(|b| b.keys().any(|k| k == *key)).unwrap_or(usize::MAX)
                };
                let others = (0..slots).filter(|&at| !batch.keys().any(|k| k == cached[at]));
                let leaves = others.max_by_key(|&at| next(&cached[at])).unwrap();
                cached.swap_remove(leaves);
            }
            cached.push(key);
        }
    }
    hits
}

#[test]
fn the_optimum_is_what_looking_into_the_future_gives() {
    let small = MadeUp {
        layers: 3,
        experts: 8,
        top_k: 2,
        turns: 2,
        prompt: 0,
        answer: 60,
        ..MadeUp::sixteen_by_sixty_four()
    };
    for seed in 0..4 {
        let trace = generate(&MadeUp { seed, ..small.clone() }).unwrap();
        for slots in [2, 5, 12, 24] {
            let hits = replay_optimal(&trace, slots).unwrap().total().counts.hits;
            assert_eq!(hits, optimum_by_definition(&trace, slots), "seed {seed}, {slots} slots");
        }
    }
}

#[test]
fn no_policy_beats_the_optimum_and_all_agree_where_everything_fits() {
    let small = MadeUp {
        layers: 6,
        experts: 16,
        top_k: 3,
        turns: 2,
        prompt: 20,
        answer: 150,
        ..MadeUp::sixteen_by_sixty_four()
    };
    let trace = generate(&small).unwrap();
    for slots in [3, 10, 30, 70] {
        let best = replay_optimal(&trace, slots).unwrap().total();
        for kind in PolicyKind::ALL {
            let got = replay(&trace, kind, slots).unwrap();
            assert_eq!(got.policy, kind.name());
            assert!(got.total().counts.hits <= best.counts.hits, "{} with {slots} slots", kind.name());
            assert_eq!(got.total().counts.requests, trace.requests() as u64);
            assert_eq!(got.total().bytes, got.total().counts.misses() * small.expert_bytes);
        }
    }
    let mut seen: Vec<Key> = trace.batches().flat_map(|b| b.keys().collect::<Vec<_>>()).collect();
    seen.sort();
    seen.dedup();
    for kind in PolicyKind::ALL {
        let got = replay(&trace, kind, 6 * 16).unwrap();
        assert_eq!(got.total().counts.misses(), seen.len() as u64, "{}", kind.name());
    }
}

/// Asserts that of all policies that know no future the default hits most when decoding, or nine tenths of what the optimum does.
fn assert_default_is_good(name: &str, trace: &Trace) {
    let all = trace.header().n_experts();
    for slots in [all / 4, all / 2] {
        let hits = |kind| replay(trace, kind, slots).unwrap().decode.counts.hits;
        let default = hits(PolicyKind::default());
        let published = PolicyKind::ALL.into_iter().filter(|&kind| kind != PolicyKind::default());
        let best = published.map(hits).max().unwrap();
        let optimum = replay_optimal(trace, slots).unwrap().decode.counts.hits;
        assert!(
            default >= best || default * 10 >= optimum * 9,
            "{name}, {slots} slots: {default}, the best other {best}, the optimum {optimum}"
        );
    }
}

#[test]
fn the_default_is_near_the_optimum_or_better_than_every_published_policy() {
    let base = MadeUp { turns: 2, ..MadeUp::sixteen_by_sixty_four() };
    let steady = MadeUp { drift: 0.0, repeat: 0.0, zipf: 1.0, ..base.clone() };
    let moving = MadeUp { drift: 0.5, repeat: 0.4, ..base.clone() };
    for (name, made_up) in [("base", base), ("steady", steady), ("moving", moving)] {
        assert_default_is_good(name, &generate(&made_up).unwrap());
    }
}

#[test]
fn the_default_is_as_good_with_a_trained_router() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/traces/demo-stories.trace");
    let trace = Trace::open(&path).unwrap();
    let tokens = trace.batches().filter(|b| b.phase == Phase::Decode && b.layer == 0).count();
    assert!(tokens > 2000 && trace.header().n_experts() == 8 * 32, "{tokens} tokens");
    assert_default_is_good("stories", &trace);
}

fn line(n_experts: u32) -> TraceHeader {
    TraceHeader {
        model: "line".to_owned(),
        top_k: 1,
        layers: vec![TraceLayer { n_experts, expert_bytes: 7 }],
    }
}

fn ask(trace: &mut Trace, experts: impl IntoIterator<Item = u32>) {
    for expert in experts {
        let batch = RouteBatch { phase: Phase::Decode, layer: 0, n_rows: 1, experts: &[expert], rows: &[1] };
        trace.push(&batch).unwrap();
    }
}

#[test]
fn a_scan_takes_everything_from_lru_and_little_from_those_that_count() {
    // Two experts in turn, a scan over twelve, the two again: slots for four.
    let mut trace = Trace::new(line(20)).unwrap();
    ask(&mut trace, [0, 1].repeat(50));
    ask(&mut trace, 5..17);
    ask(&mut trace, [0, 1]);
    let hits = |kind| replay(&trace, kind, 4).unwrap().total().counts.hits;
    assert_eq!(hits(PolicyKind::Lru), 98);
    for kind in
        [PolicyKind::Decayed, PolicyKind::Lfu, PolicyKind::LruK, PolicyKind::S3Fifo, PolicyKind::TinyLfu]
    {
        assert_eq!(hits(kind), 100, "{}", kind.name());
    }
}

#[test]
fn a_cycle_larger_than_the_cache_is_never_hit_by_lru_but_by_the_optimum() {
    let mut trace = Trace::new(line(5)).unwrap();
    ask(&mut trace, [0, 1, 2, 3, 4].repeat(20));
    assert_eq!(replay(&trace, PolicyKind::Lru, 4).unwrap().total().counts.hits, 0);
    // Misses are the first four requests, and from the fifth on each fourth.
    assert_eq!(replay_optimal(&trace, 4).unwrap().total().counts.hits, 72);
}

fn cache(layers: usize, experts: usize, slots: usize, window: usize) -> CacheCore {
    let shape = turbospark_experts::CacheShape { layers, experts, slots };
    CacheCore::new(shape, window, PolicyKind::Lru.build(shape))
}

fn request(cache: &mut CacheCore, phase: Phase, layer: u32, experts: &[u32]) -> Vec<u32> {
    let rows = vec![1; experts.len()];
    let mut missing = Vec::new();
    cache.request(&RouteBatch { phase, layer, n_rows: 1, experts, rows: &rows }, &mut missing).unwrap();
    missing
}

#[test]
fn experts_of_a_request_do_not_push_each_other_out_while_the_window_holds_them() {
    let mut cache = cache(2, 8, 4, WINDOW);
    let free = |_: usize| false;
    assert_eq!(request(&mut cache, Phase::Decode, 0, &[0, 1, 2]), [0, 1, 2]);
    for expert in 0..3 {
        assert_eq!(cache.place(Key { layer: 0, expert }, &free), Some(expert as usize));
    }
    // The last slot is free, then 0 and 1 leave; 2 is of the request and stays.
    assert_eq!(request(&mut cache, Phase::Decode, 0, &[2, 5, 6, 7]), [5, 6, 7]);
    let slots = [5, 6, 7].map(|expert| cache.place(Key { layer: 0, expert }, &free));
    assert_eq!(slots, [Some(3), Some(0), Some(1)]);
    assert_eq!(cache.slot_of(Key { layer: 0, expert: 2 }), Some(2));
    assert_eq!(cache.key_of(0), Some(Key { layer: 0, expert: 6 }));
    assert_eq!(cache.counts(Phase::Decode), Counts { requests: 7, hits: 1 });
    assert_eq!(cache.counts(Phase::Prefill), Counts::default());
}

#[test]
fn a_request_larger_than_the_cache_goes_through_it_in_order() {
    let mut cache = cache(1, 8, 3, WINDOW);
    let all: Vec<u32> = (0..8).collect();
    assert_eq!(request(&mut cache, Phase::Prefill, 0, &all), all);
    let mut placed = Vec::new();
    for expert in 0..8 {
        placed.push(cache.place(Key { layer: 0, expert }, &|_| false).unwrap());
    }
    assert_eq!(placed, [0, 1, 2, 0, 1, 2, 0, 1]);
    // The next time, hits leave when nothing else can: 5, 6 and 7 are there.
    assert_eq!(request(&mut cache, Phase::Prefill, 0, &all), [0, 1, 2, 3, 4]);
    assert!(cache.place(Key { layer: 0, expert: 0 }, &|_| false).is_some());
    assert_eq!(cache.counts(Phase::Prefill), Counts { requests: 16, hits: 3 });
}

#[test]
fn a_victim_in_use_is_waited_for_and_no_other_taken() {
    let mut cache = cache(1, 8, 2, WINDOW);
    request(&mut cache, Phase::Decode, 0, &[0]);
    cache.place(Key { layer: 0, expert: 0 }, &|_| false);
    request(&mut cache, Phase::Decode, 0, &[1]);
    cache.place(Key { layer: 0, expert: 1 }, &|_| false);
    request(&mut cache, Phase::Decode, 0, &[2]);
    let third = Key { layer: 0, expert: 2 };
    assert_eq!(cache.place(third, &|slot| slot == 0), None);
    assert_eq!(cache.place(third, &|_| false), Some(0));
    assert_eq!(cache.slot_of(Key { layer: 0, expert: 1 }), Some(1));
}

#[test]
fn a_forgotten_expert_leaves_its_slot_free_and_is_missed_again() {
    let mut cache = cache(1, 8, 2, WINDOW);
    let key = Key { layer: 0, expert: 3 };
    request(&mut cache, Phase::Decode, 0, &[3, 4]);
    cache.place(key, &|_| false);
    cache.place(Key { layer: 0, expert: 4 }, &|_| false);
    cache.forget(key);
    assert_eq!((cache.slot_of(key), cache.key_of(0)), (None, None));
    assert_eq!(request(&mut cache, Phase::Decode, 0, &[3, 4]), [3]);
    assert_eq!(cache.place(key, &|_| true), Some(0));
}

#[test]
fn experts_that_are_not_there_are_refused_and_not_counted() {
    let mut cache = cache(2, 8, 2, WINDOW);
    for (layer, experts) in [(2, [0, 1]), (0, [7, 8])] {
        let batch = RouteBatch { phase: Phase::Decode, layer, n_rows: 1, experts: &experts, rows: &[1, 1] };
        assert!(cache.request(&batch, &mut Vec::new()).is_err());
    }
    assert_eq!(cache.counts(Phase::Decode), Counts::default());
}

#[test]
fn the_hottest_experts_of_a_prompt_stay() {
    let mut trace = Trace::new(line(64)).unwrap();
    let experts: Vec<u32> = (0..64).collect();
    let rows: Vec<u32> = experts.iter().map(|&expert| if expert < 2 { 80 } else { 1 }).collect();
    let batch = RouteBatch { phase: Phase::Prefill, layer: 0, n_rows: 100, experts: &experts, rows: &rows };
    trace.push(&batch).unwrap();
    ask(&mut trace, [0, 1]);
    assert_eq!(replay(&trace, PolicyKind::Decayed, 40).unwrap().decode.counts.hits, 2);
    assert_eq!(replay(&trace, PolicyKind::Lru, 40).unwrap().decode.counts.hits, 0);
}

#[test]
fn names_of_policies_are_read_back_and_others_refused_with_the_choice() {
    for kind in PolicyKind::ALL {
        assert_eq!(kind.name().parse(), Ok(kind));
        assert_eq!(kind.build(line(4).cache(2)).name(), kind.name());
    }
    let error = "mru".parse::<PolicyKind>().unwrap_err().to_string();
    assert!(error.contains("`mru`") && error.contains("decayed, lru, "), "{error}");
}
