//! Clones of a cache share pages, and who writes to a shared one changes nobody else's bits.

use crate::case::Case;
use std::collections::HashSet;
use turbospark_kernels::{Cpu, KvKind, KvLayer, Values};

fn case(kind: KvKind, values: Values, positions: usize) -> Case {
    let n_kv = if matches!(values, Values::Own(_)) { 2 } else { 1 };
    Case { kind, n_heads: 4, n_kv, k_dim: 16, values, sinks: false, window: None, positions }
}

fn pages(kv: &KvLayer) -> Vec<usize> {
    let mut pages = Vec::new();
    kv.each_page(&mut |address, _| pages.push(address));
    pages
}

#[test]
fn only_the_page_that_is_written_is_copied() {
    let cpu = Cpu::new(2);
    for kind in [KvKind::F16, KvKind::F32] {
        for values in [Values::Own(24), Values::OfKeys(12)] {
            let case = case(kind, values, 300);
            let mut kv = case.cache(&cpu, 300);
            let want = case.attend(&cpu, &kv, &[150, 299]);
            let mut fork = kv.clone();
            assert_eq!(pages(&kv), pages(&fork));
            fork.truncate(200);
            // Other values in the shared page of position 200, and past it.
            let other = vec![0.25; 100 * case.n_kv * 24];
            let v = if let Values::Own(dim) = values { 100 * case.n_kv * dim } else { 0 };
            cpu.kv_write(&mut fork, 200, &other[..100 * case.n_kv * 16], &other[..v]);
            let (mine, theirs) = (pages(&kv), pages(&fork));
            assert!(mine[..3] == theirs[..3] && mine[3] != theirs[3] && mine[4] != theirs[4]);
            assert!(case.attend(&cpu, &kv, &[150, 299]) == want);
            assert!(case.attend(&cpu, &fork, &[299]) != want[want.len() / 2..]);
            // The original writes too: what is left of the fork keeps its own.
            let forked = case.attend(&cpu, &fork, &[199, 299]);
            case.write(&cpu, &mut kv, 150..300);
            assert!(case.attend(&cpu, &kv, &[150, 299]) == want);
            assert!(case.attend(&cpu, &fork, &[199, 299]) == forked);
            // A page that nobody shares any more is written in place.
            drop(fork);
            let before = pages(&kv);
            case.write(&cpu, &mut kv, 0..300);
            assert_eq!(pages(&kv), before);
        }
    }
}

#[test]
fn forgotten_pages_are_used_again_only_where_nobody_shares_them() {
    let cpu = Cpu::new(1);
    let case = case(KvKind::F16, Values::Own(8), 512);
    let mut kv = case.empty();
    case.write(&cpu, &mut kv, 0..256);
    let copy = kv.clone();
    let before: HashSet<usize> = pages(&copy).into_iter().collect();
    let want = case.attend(&cpu, &copy, &[255]);
    kv.forget_before(256);
    assert_eq!(kv.bytes(), 0);
    case.write(&cpu, &mut kv, 256..512);
    assert!(pages(&kv).iter().all(|page| !before.contains(page)));
    assert!(case.attend(&cpu, &copy, &[255]) == want);
}
