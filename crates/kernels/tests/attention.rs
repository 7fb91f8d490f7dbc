//! Attention over the cache: against double precision, SIMD against scalar, and a row alone against the row in company.

use turbospark_kernels::{AttnParams, AttnRow, AttnScratch, Cpu, KvKind, KvLayer};

fn value(seed: usize, i: usize) -> f32 {
    let mut z = (seed as u64 * 0x9e37_79b9 + i as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z >> 40) as f32 / (1 << 23) as f32 - 1.0
}

struct Case {
    kind: KvKind,
    n_heads: usize,
    n_kv: usize,
    k_dim: usize,
    v_dim: usize,
    window: Option<usize>,
    positions: usize,
}

impl Case {
    fn params(&self) -> AttnParams {
        AttnParams { n_heads: self.n_heads, scale: 0.37, window: self.window }
    }

    fn keys(&self) -> Vec<f32> {
        (0..self.positions * self.n_kv * self.k_dim).map(|i| value(1, i)).collect()
    }

    fn values(&self) -> Vec<f32> {
        (0..self.positions * self.n_kv * self.v_dim).map(|i| value(2, i)).collect()
    }

    fn cache(&self, cpu: &Cpu, step: usize) -> KvLayer {
        let mut kv = KvLayer::new(self.kind, self.n_kv, self.k_dim, self.v_dim);
        let (k, v) = (self.keys(), self.values());
        let (k_row, v_row) = (self.n_kv * self.k_dim, self.n_kv * self.v_dim);
        for start in (0..self.positions).step_by(step) {
            let end = (start + step).min(self.positions);
            cpu.kv_write(&mut kv, start, &k[start * k_row..end * k_row], &v[start * v_row..end * v_row]);
        }
        kv
    }

    fn queries(&self, positions: &[usize]) -> Vec<f32> {
        let row = self.n_heads * self.k_dim;
        positions.iter().flat_map(|p| (0..row).map(move |i| 2.0 * value(3, p * row + i))).collect()
    }

    fn attend(&self, cpu: &Cpu, kv: &KvLayer, positions: &[usize]) -> Vec<f32> {
        let rows: Vec<_> = positions.iter().map(|&position| AttnRow { kv, position }).collect();
        let mut out = vec![f32::NAN; positions.len() * self.n_heads * self.v_dim];
        cpu.attend(&mut AttnScratch::default(), &self.params(), &self.queries(positions), &rows, &mut out);
        out
    }

    /// The definition, in double precision, on the values as cached.
    fn reference(&self, position: usize) -> Vec<f64> {
        let round = |x: f32| match self.kind {
            KvKind::F16 => f64::from(half::f16::from_f32(x).to_f32()),
            KvKind::F32 => f64::from(x),
        };
        let (k, v, q) = (self.keys(), self.values(), self.queries(&[position]));
        let from = self.window.map_or(0, |w| (position + 1).saturating_sub(w));
        let mut out = Vec::new();
        for head in 0..self.n_heads {
            let kv_head = head / (self.n_heads / self.n_kv);
            let scores: Vec<f64> = (from..=position)
                .map(|p| {
                    (0..self.k_dim)
                        .map(|d| {
                            f64::from(q[head * self.k_dim + d])
                                * round(k[(p * self.n_kv + kv_head) * self.k_dim + d])
                        })
                        .sum::<f64>()
                        * 0.37
                })
                .collect();
            let maximum = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> = scores.iter().map(|s| (s - maximum).exp()).collect();
            let sum: f64 = weights.iter().sum();
            for d in 0..self.v_dim {
                let weighted = weights
                    .iter()
                    .enumerate()
                    .map(|(i, w)| w * round(v[((from + i) * self.n_kv + kv_head) * self.v_dim + d]));
                out.push(weighted.sum::<f64>() / sum);
            }
        }
        out
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in [KvKind::F16, KvKind::F32] {
        for (n_heads, n_kv, k_dim, v_dim) in [(6, 2, 32, 32), (4, 1, 64, 48), (3, 3, 24, 20), (10, 2, 16, 8)]
        {
            for window in [None, Some(1), Some(50), Some(64), Some(100)] {
                cases.push(Case { kind, n_heads, n_kv, k_dim, v_dim, window, positions: 200 });
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
        let row = case.n_heads * case.v_dim;
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

#[test]
fn rows_of_several_sequences_do_not_touch_each_other() {
    let case =
        Case { kind: KvKind::F16, n_heads: 4, n_kv: 2, k_dim: 32, v_dim: 32, window: None, positions: 90 };
    let cpu = Cpu::new(2);
    let long = case.cache(&cpu, 90);
    let mut short = KvLayer::new(KvKind::F16, 2, 32, 32);
    let (k, v) = (case.keys(), case.values());
    cpu.kv_write(&mut short, 0, &k[64 * 5..64 * 15], &v[64 * 5..64 * 15]);
    let q = case.queries(&[80, 9, 81]);
    let rows = [
        AttnRow { kv: &long, position: 80 },
        AttnRow { kv: &short, position: 9 },
        AttnRow { kv: &long, position: 81 },
    ];
    let mut scratch = AttnScratch::default();
    let mut together = vec![0.0; 3 * 128];
    cpu.attend(&mut scratch, &case.params(), &q, &rows, &mut together);
    for (i, row) in rows.iter().enumerate() {
        let mut alone = vec![0.0; 128];
        cpu.attend(&mut scratch, &case.params(), &q[i * 128..(i + 1) * 128], &[*row], &mut alone);
        assert_eq!(alone, together[i * 128..(i + 1) * 128]);
    }
}

#[test]
fn truncation_frees_pages_and_rewriting_gives_the_same_result() {
    let case =
        Case { kind: KvKind::F16, n_heads: 2, n_kv: 1, k_dim: 16, v_dim: 16, window: None, positions: 150 };
    let cpu = Cpu::new(1);
    let mut kv = case.cache(&cpu, 150);
    let want = case.attend(&cpu, &kv, &[149]);
    kv.truncate(70);
    assert_eq!(kv.capacity(), 128);
    cpu.kv_write(&mut kv, 70, &case.keys()[70 * 16..], &case.values()[70 * 16..]);
    assert_eq!(case.attend(&cpu, &kv, &[149]), want);
}
