//! Caches of windowed layers that forget: the same bits as ones that don't, in bounded memory.

use crate::case::Case;
use turbospark_kernels::{Cpu, KvKind, KvLayer, Values};

fn case(values: Values, window: usize, positions: usize) -> Case {
    let n_kv = if matches!(values, Values::Own(_)) { 2 } else { 1 };
    let (kind, window) = (KvKind::F16, Some(window));
    Case { kind, n_heads: 6, n_kv, k_dim: 16, values, sinks: true, window, positions }
}

/// Feeds `case` in chunks, forgetting before each what its first row does not see; gives the outputs and the most bytes held.
fn feed(cpu: &Cpu, case: &Case, chunk: usize, forget: bool) -> (Vec<f32>, usize, KvLayer) {
    let (mut kv, mut out, mut most) = (case.empty(), Vec::new(), 0);
    for start in (0..case.positions).step_by(chunk) {
        let end = (start + chunk).min(case.positions);
        if forget {
            kv.forget_before((start + 1).saturating_sub(case.window.unwrap_or(usize::MAX)));
        }
        case.write(cpu, &mut kv, start..end);
        out.extend(case.attend(cpu, &kv, &(start..end).collect::<Vec<_>>()));
        most = most.max(kv.bytes());
    }
    (out, most, kv)
}

#[test]
fn forgetting_changes_no_bit_and_bounds_the_memory() {
    let cpu = Cpu::new(2);
    for values in [Values::Own(24), Values::OfKeys(12)] {
        for (window, chunk) in [(1, 1), (50, 7), (64, 64), (100, 33), (128, 200)] {
            let case = case(values, window, 900);
            let (want, all, _) = feed(&cpu, &case, chunk, false);
            let (got, most, kv) = feed(&cpu, &case, chunk, true);
            assert!(got == want, "window {window}, chunks of {chunk}");
            let bytes = |held| KvLayer::bytes_for(case.kind, case.n_kv, case.k_dim, case.values, held);
            assert_eq!(all, bytes(KvLayer::held_at_most(900, None, chunk)));
            assert!(most <= bytes(KvLayer::held_at_most(900, Some(window), chunk)));
            assert!(most <= bytes(window + chunk + 128) && most < all);
            assert!(kv.oldest() > 600 && kv.oldest().is_multiple_of(64));
        }
    }
}

#[test]
fn positions_held_follow_the_window_and_never_exceed_the_context() {
    assert_eq!(KvLayer::held_at_most(100, Some(4096), 512), 128);
    assert_eq!(KvLayer::held_at_most(100_000, Some(128), 512), 704);
    assert_eq!(KvLayer::held_at_most(100_000, Some(usize::MAX), 512), 100_032);
}

#[test]
fn forgotten_pages_are_used_again() {
    let cpu = Cpu::new(1);
    let case = case(Values::Own(8), 64, 1000);
    let mut kv = case.empty();
    case.write(&cpu, &mut kv, 0..256);
    let four_pages = kv.bytes();
    kv.forget_before(256);
    assert_eq!((kv.bytes(), kv.oldest()), (four_pages, 256));
    case.write(&cpu, &mut kv, 256..512);
    assert_eq!((kv.bytes(), kv.capacity()), (four_pages, 512));
    kv.truncate(300);
    assert_eq!((kv.bytes(), kv.capacity(), kv.oldest()), (four_pages / 4, 320, 256));
}

#[test]
fn a_rewound_cache_goes_on_where_its_window_is_still_held() {
    let cpu = Cpu::new(2);
    let case = case(Values::Own(8), 64, 400);
    let (want, _, mut kv) = feed(&cpu, &case, 50, true);
    let row = case.n_heads * case.v_dim();
    kv.truncate(370);
    case.write(&cpu, &mut kv, 370..400);
    assert!(case.attend(&cpu, &kv, &[399]) == want[399 * row..]);
    // From the start everything can be computed again.
    kv.truncate(0);
    assert_eq!((kv.oldest(), kv.capacity(), kv.bytes()), (0, 0, 0));
    case.write(&cpu, &mut kv, 0..400);
    assert!(case.attend(&cpu, &kv, &[399]) == want[399 * row..]);
}

#[test]
fn rewinding_before_the_oldest_leaves_nothing() {
    let cpu = Cpu::new(1);
    let case = case(Values::Own(8), 1, 400);
    let mut kv = case.cache(&cpu, 400);
    kv.forget_before(300);
    kv.truncate(100);
    assert_eq!((kv.oldest(), kv.bytes()), (100, 0));
    case.write(&cpu, &mut kv, 100..101);
    assert!(case.attend(&cpu, &kv, &[100]) == case.attend(&cpu, &case.cache(&cpu, 400), &[100]));
    kv.truncate(100);
    assert_eq!((kv.oldest(), kv.bytes()), (100, 0));
}

#[test]
#[should_panic(expected = "has forgotten")]
fn a_row_that_sees_a_forgotten_position_is_refused() {
    let cpu = Cpu::new(1);
    let case = case(Values::Own(8), 64, 200);
    let mut kv = case.cache(&cpu, 200);
    kv.forget_before(128);
    case.attend(&cpu, &kv, &[190]);
}

#[test]
fn a_clone_holds_the_same_and_lives_on_its_own() {
    let cpu = Cpu::new(1);
    let case = case(Values::OfKeys(16), 64, 300);
    let mut kv = case.cache(&cpu, 300);
    kv.forget_before(200);
    let copy = kv.clone();
    let want = case.attend(&cpu, &kv, &[299]);
    kv.truncate(0);
    assert_eq!((copy.oldest(), copy.capacity()), (192, 320));
    assert!(case.attend(&cpu, &copy, &[299]) == want);
}
