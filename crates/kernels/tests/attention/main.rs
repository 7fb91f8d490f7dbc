//! Attention over the cache: against double precision, SIMD against scalar, and a row alone against the row in company.

mod case;
mod forgetting;
mod sharing;

use case::Case;
use turbospark_kernels::{AttnParams, AttnRow, AttnScratch, Cpu, KvKind, KvLayer, Values};

/// Every kind of cache with every kind of window: grouped heads in even and odd ratios, heads that are no multiple of a
/// register, values shorter than keys, beside them and in them.
fn cases() -> Vec<Case> {
    let shapes = [
        (6, 2, 32, Values::Own(32)),
        (4, 1, 64, Values::Own(48)),
        (3, 3, 24, Values::Own(20)),
        (10, 2, 20, Values::Own(12)),
        (16, 1, 12, Values::Own(24)),
        (14, 2, 16, Values::Own(3)),
        (5, 1, 72, Values::OfKeys(64)),
        (16, 1, 40, Values::OfKeys(32)),
        (6, 2, 20, Values::OfKeys(13)),
    ];
    let mut cases = Vec::new();
    for kind in [KvKind::F16, KvKind::F32] {
        for (i, (n_heads, n_kv, k_dim, values)) in shapes.into_iter().enumerate() {
            for window in [None, Some(1), Some(50), Some(64), Some(100)] {
                let sinks = (i + window.unwrap_or(0)) % 2 == 0;
                cases.push(Case { kind, n_heads, n_kv, k_dim, values, sinks, window, positions: 200 });
            }
        }
    }
    cases
}

#[test]
fn attention_matches_its_definition_in_double_precision() {
    for case in cases() {
        let cpu = Cpu::new(2);
        let kv = case.cache(&cpu, 200);
        for position in [0, 1, 62, 63, 64, 65, 127, 128, 199] {
            let got = case.attend(&cpu, &kv, &[position]);
            for (got, want) in got.iter().zip(case.reference(position)) {
                assert!((f64::from(*got) - want).abs() < 2e-6, "{got} instead of {want} at {position}");
            }
        }
    }
}

#[test]
fn a_row_has_the_same_bits_alone_in_company_on_any_threads_and_in_scalar_code() {
    for case in cases() {
        let scalar = Cpu::scalar(1);
        let positions: Vec<usize> = (0..case.positions).collect();
        let want = case.attend(&scalar, &case.cache(&scalar, 1), &positions);
        let row = case.n_heads * case.v_dim();
        for threads in [1, 2, 3] {
            let cpu = Cpu::new(threads);
            let kv = case.cache(&cpu, 37);
            let together = case.attend(&cpu, &kv, &positions);
            assert!(together == want, "all rows together, {threads} threads");
            for chunk in [1, 2, 7, 64] {
                for start in [0, 5, 60, 130] {
                    let part = case.attend(&cpu, &kv, &positions[start..start + chunk]);
                    assert!(part == want[start * row..(start + chunk) * row], "{chunk} rows from {start}");
                }
            }
        }
    }
}

/// A case of two KV heads with keys and values of 32 elements.
fn plain(positions: usize) -> Case {
    let (kind, values) = (KvKind::F16, Values::Own(32));
    Case { kind, n_heads: 4, n_kv: 2, k_dim: 32, values, sinks: false, window: None, positions }
}

#[test]
fn rows_of_several_sequences_do_not_touch_each_other() {
    let latent = Case { n_kv: 1, values: Values::OfKeys(32), sinks: true, ..plain(90) };
    for case in [plain(90), latent] {
        let cpu = Cpu::new(2);
        let long = case.cache(&cpu, 90);
        let mut short = case.empty();
        let (k, v) = (case.keys(), case.own_values());
        let ten = |x: &[f32]| x[x.len() / 90 * 5..x.len() / 90 * 15].to_vec();
        cpu.kv_write(&mut short, 0, &ten(&k), &ten(&v));
        let q = case.queries(&[80, 9, 81]);
        let rows = [
            AttnRow { kv: &long, position: 80 },
            AttnRow { kv: &short, position: 9 },
            AttnRow { kv: &long, position: 81 },
        ];
        let mut together = vec![0.0; 3 * 128];
        case.attend_rows(&cpu, &q, &rows, &mut together);
        for (i, row) in rows.iter().enumerate() {
            let mut alone = vec![0.0; 128];
            case.attend_rows(&cpu, &q[i * 128..(i + 1) * 128], &[*row], &mut alone);
            assert_eq!(alone, together[i * 128..(i + 1) * 128]);
        }
    }
}

#[test]
fn latent_attention_of_the_published_shape_matches_its_definition_and_its_scalar_twin() {
    for kind in [KvKind::F16, KvKind::F32] {
        let values = Values::OfKeys(512);
        let case = Case {
            kind,
            n_heads: 16,
            n_kv: 1,
            k_dim: 576,
            values,
            sinks: false,
            window: None,
            positions: 150,
        };
        let (cpu, scalar) = (Cpu::new(2), Cpu::scalar(1));
        let kv = case.cache(&cpu, 64);
        let got = case.attend(&cpu, &kv, &[149]);
        assert!(got == case.attend(&scalar, &kv, &[149]));
        for (got, want) in got.iter().zip(case.reference(149)) {
            assert!((f64::from(*got) - want).abs() < 1e-5, "{got} instead of {want}");
        }
    }
}

#[test]
fn a_context_of_many_rounds_has_the_bits_of_one_thread_that_walks_all_pages() {
    let values = Values::OfKeys(8);
    let kind = KvKind::F16;
    // Parts of 512 queries times ten floats: a round of two threads takes 102 pages.
    let case = Case {
        kind,
        n_heads: 512,
        n_kv: 1,
        k_dim: 8,
        values,
        sinks: true,
        window: None,
        positions: 64 * 230,
    };
    let kv = case.cache(&Cpu::new(2), 4096);
    let positions = [64 * 229 + 5];
    let want = case.attend(&Cpu::new(1), &kv, &positions);
    assert!(case.attend(&Cpu::new(2), &kv, &positions) == want);
    assert!(want.iter().all(|x| x.is_finite()));
}

/// Scores around the largest floats' logarithm and far past it, and sinks beyond any of them.
#[test]
fn extreme_scores_and_sinks_stay_finite() {
    let cpu = Cpu::new(1);
    for sink in [-1e30_f32, -100.0, 0.0, 100.0, 1e30, f32::NEG_INFINITY] {
        for q in [-1e4_f32, 0.0, 1e4] {
            let mut kv = KvLayer::new(KvKind::F32, 1, 8, Values::Own(8));
            let keys: Vec<f32> = (0..8 * 70).map(|i| (i / 8) as f32 - 35.0).collect();
            cpu.kv_write(&mut kv, 0, &keys, &vec![1.0; 8 * 70]);
            let mut out = [f32::NAN; 8];
            let params = AttnParams { n_heads: 1, scale: 1.0, window: None, sinks: Some(&[sink]) };
            let rows = [AttnRow { kv: &kv, position: 69 }];
            cpu.attend(&mut AttnScratch::default(), &params, &[q; 8], &rows, &mut out);
            // All values are 1, so the output is the share that the sink leaves.
            let scores: Vec<f64> = (0..70).map(|p| f64::from(q) * 8.0 * f64::from(p - 35)).collect();
            let maximum = scores.iter().copied().fold(f64::from(sink), f64::max);
            let sum: f64 = scores.iter().map(|s| (s - maximum).exp()).sum();
            let want = sum / (sum + (f64::from(sink) - maximum).exp());
            for got in out {
                assert!((f64::from(got) - want).abs() < 1e-6, "sink {sink}, query {q}: {got}, not {want}");
            }
        }
    }
}

#[test]
fn truncation_frees_pages_and_rewriting_gives_the_same_result() {
    let case = plain(150);
    let cpu = Cpu::new(1);
    let mut kv = case.cache(&cpu, 150);
    let want = case.attend(&cpu, &kv, &[149]);
    kv.truncate(70);
    assert_eq!(kv.capacity(), 128);
    case.write(&cpu, &mut kv, 70..150);
    assert_eq!(case.attend(&cpu, &kv, &[149]), want);
}
