//! The gated delta net: against its recurrence in double precision, and to the last bit however the rows are cut.

use turbospark_kernels::{Cpu, DeltaGates, DeltaShape, DeltaState, DeltaWeights, HeadOrder};

const EPS: f32 = 1e-6;

fn value(seed: usize, i: usize) -> f32 {
    let mut z = (seed as u64 * 0x9e37_79b9 + i as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z >> 40) as f32 / (1 << 23) as f32 - 1.0
}

fn values(seed: usize, len: usize, factor: f32) -> Vec<f32> {
    (0..len).map(|i| factor * value(seed, i)).collect()
}

/// A layer with its inputs.
struct Case {
    shape: DeltaShape,
    per_key_head: bool,
    rows: usize,
    conv: Vec<f32>,
    a: Vec<f32>,
    dt_bias: Vec<f32>,
    x: Vec<f32>,
    beta: Vec<f32>,
    alpha: Vec<f32>,
}

impl Case {
    fn new(shape: DeltaShape, per_key_head: bool, rows: usize) -> Self {
        let n_v = shape.n_v_heads;
        Self {
            shape,
            per_key_head,
            rows,
            conv: values(1, shape.channels() * shape.conv_width, 1.0),
            a: values(2, n_v, 1.0).iter().map(|a| -a.abs() - 0.01).collect(),
            dt_bias: values(3, n_v, 1.0),
            x: values(4, rows * shape.channels(), 3.0),
            beta: values(5, rows * n_v, 4.0),
            alpha: values(6, rows * n_v, 4.0),
        }
    }

    /// Key head and place under it of value head `h`.
    fn key_head(&self, h: usize) -> (usize, usize) {
        let (n_k, ratio) = (self.shape.n_k_heads, self.shape.n_v_heads / self.shape.n_k_heads);
        match self.shape.heads {
            HeadOrder::Grouped => (h / ratio, h % ratio),
            HeadOrder::Tiled => (h % n_k, h / n_k),
        }
    }

    /// Runs `cuts` rows after `cuts` rows from `state` on; returns `[rows, n_v_heads, v_dim]`.
    fn run(&self, cpu: &Cpu, state: &mut DeltaState, cuts: &[usize]) -> Vec<f32> {
        let (shape, n_v, channels) = (&self.shape, self.shape.n_v_heads, self.shape.channels());
        let ratio = n_v / shape.n_k_heads;
        let mut both = vec![0.0; 2 * self.rows * n_v];
        for row in 0..self.rows {
            for h in 0..n_v {
                let (j, i) = self.key_head(h);
                let at = (row * shape.n_k_heads + j) * 2 * ratio + i;
                both[at] = self.beta[row * n_v + h];
                both[at + ratio] = self.alpha[row * n_v + h];
            }
        }
        let weights = DeltaWeights { a: &self.a, dt_bias: &self.dt_bias, eps: EPS };
        let mut out = vec![f32::NAN; self.rows * n_v * shape.v_dim];
        let mut start = 0;
        for cut in cuts {
            let end = start + cut;
            let mut x = self.x[start * channels..end * channels].to_vec();
            cpu.delta_conv(shape, state, &self.conv, &mut x);
            let gates = if self.per_key_head {
                DeltaGates::PerKeyHead(&both[2 * start * n_v..2 * end * n_v])
            } else {
                DeltaGates::Split {
                    beta: &self.beta[start * n_v..end * n_v],
                    alpha: &self.alpha[start * n_v..end * n_v],
                }
            };
            let out = &mut out[start * n_v * shape.v_dim..end * n_v * shape.v_dim];
            cpu.delta_rule(shape, state, &weights, &x, gates, out);
            start = end;
        }
        assert_eq!(start, self.rows);
        out
    }

    /// The recurrence as the paper writes it: decay, correct, read.
    fn reference(&self) -> Vec<f64> {
        let DeltaShape { n_k_heads: n_k, n_v_heads: n_v, k_dim, v_dim, conv_width, .. } = self.shape;
        let channels = self.shape.channels();
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let conv = |row: usize, c: usize| {
            let sum: f64 = (0..conv_width)
                .filter(|tap| row + tap + 1 >= conv_width)
                .map(|tap| {
                    let x = self.x[(row + tap + 1 - conv_width) * channels + c];
                    f64::from(self.conv[c * conv_width + tap]) * f64::from(x)
                })
                .sum();
            sum * sigmoid(sum)
        };
        let normal = |mut x: Vec<f64>| {
            let length = (x.iter().map(|x| x * x).sum::<f64>() + f64::from(EPS)).sqrt();
            x.iter_mut().for_each(|x| *x /= length);
            x
        };
        let mut out = vec![0.0; self.rows * n_v * v_dim];
        for h in 0..n_v {
            let (j, _) = self.key_head(h);
            let mut state = vec![0.0_f64; k_dim * v_dim];
            for row in 0..self.rows {
                let q = normal((0..k_dim).map(|d| conv(row, j * k_dim + d)).collect());
                let k = normal((0..k_dim).map(|d| conv(row, (n_k + j) * k_dim + d)).collect());
                let alpha = f64::from(self.alpha[row * n_v + h]) + f64::from(self.dt_bias[h]);
                let decay = (f64::from(self.a[h]) * alpha.exp().ln_1p()).exp();
                state.iter_mut().for_each(|s| *s *= decay);
                for c in 0..v_dim {
                    let v = conv(row, 2 * n_k * k_dim + h * v_dim + c);
                    let held: f64 = (0..k_dim).map(|d| state[d * v_dim + c] * k[d]).sum();
                    let delta = (v - held) * sigmoid(f64::from(self.beta[row * n_v + h]));
                    (0..k_dim).for_each(|d| state[d * v_dim + c] += k[d] * delta);
                    let read: f64 = (0..k_dim).map(|d| state[d * v_dim + c] * q[d]).sum();
                    out[(row * n_v + h) * v_dim + c] = read / (k_dim as f64).sqrt();
                }
            }
        }
        out
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (n_k_heads, n_v_heads, k_dim, v_dim, conv_width) in
        [(2, 4, 32, 32, 4), (1, 3, 16, 48, 4), (4, 4, 12, 20, 2), (2, 6, 40, 33, 1), (1, 2, 128, 72, 5)]
    {
        for heads in [HeadOrder::Grouped, HeadOrder::Tiled] {
            for per_key_head in [false, true] {
                let shape = DeltaShape { n_k_heads, n_v_heads, k_dim, v_dim, conv_width, heads };
                cases.push(Case::new(shape, per_key_head, 41));
            }
        }
    }
    cases
}

#[test]
fn convolution_and_delta_rule_match_the_recurrence_in_double_precision() {
    for case in cases() {
        let got = case.run(&Cpu::new(2), &mut DeltaState::new(&case.shape), &[case.rows]);
        for (i, (got, want)) in got.iter().zip(case.reference()).enumerate() {
            assert!(
                (f64::from(*got) - want).abs() < 1e-5,
                "{got} instead of {want} at {i} of {:?}",
                case.shape
            );
        }
    }
}

#[test]
fn rows_have_the_same_bits_however_they_are_cut_on_any_threads_and_in_scalar_code() {
    for case in cases() {
        let want = case.run(&Cpu::scalar(1), &mut DeltaState::new(&case.shape), &[case.rows]);
        for threads in [1, 2, 3] {
            let cpu = Cpu::new(threads);
            for cuts in [&[41][..], &[1; 41], &[7, 7, 7, 7, 7, 6], &[0, 2, 1, 0, 30, 3, 5]] {
                let got = case.run(&cpu, &mut DeltaState::new(&case.shape), cuts);
                assert!(got == want, "{cuts:?} on {threads} threads, {:?}", case.shape);
            }
        }
    }
}

#[test]
fn many_channels_and_rows_have_the_bits_of_the_scalar_twin() {
    let shape = DeltaShape {
        n_k_heads: 8,
        n_v_heads: 16,
        k_dim: 64,
        v_dim: 64,
        conv_width: 4,
        heads: HeadOrder::Tiled,
    };
    let case = Case::new(shape, false, 70);
    let want = case.run(&Cpu::scalar(1), &mut DeltaState::new(&shape), &[70]);
    assert!(case.run(&Cpu::new(2), &mut DeltaState::new(&shape), &[70]) == want);
    assert!(case.run(&Cpu::new(3), &mut DeltaState::new(&shape), &[1, 68, 1]) == want);
}

#[test]
fn a_copied_state_continues_as_the_original_and_a_reset_one_starts_anew() {
    let case = &cases()[0];
    let cpu = Cpu::new(2);
    let mut state = DeltaState::new(&case.shape);
    let first = case.run(&cpu, &mut state, &[case.rows]);
    let mut copy = state.clone();
    let second = case.run(&cpu, &mut state, &[case.rows]);
    assert_ne!(first, second, "the state matters");
    assert_eq!(case.run(&cpu, &mut copy, &[20, 21]), second);
    copy.reset();
    assert_eq!(case.run(&cpu, &mut copy, &[case.rows]), first);
}

#[test]
fn a_broken_value_stays_in_its_column_and_is_not_hidden() {
    let mut case = Case::new(cases()[0].shape, false, 6);
    let (n_v, v_dim) = (case.shape.n_v_heads, case.shape.v_dim);
    let want = case.run(&Cpu::new(1), &mut DeltaState::new(&case.shape), &[6]);
    let column = 2 * case.shape.n_k_heads * case.shape.k_dim + v_dim + 3;
    case.x[2 * case.shape.channels() + column] = f32::NAN;
    for cpu in [Cpu::new(2), Cpu::scalar(1)] {
        let got = case.run(&cpu, &mut DeltaState::new(&case.shape), &[6]);
        for (i, (got, want)) in got.iter().zip(&want).enumerate() {
            let broken = i / (n_v * v_dim) >= 2 && i % (n_v * v_dim) == v_dim + 3;
            assert!(if broken { got.is_nan() } else { got == want }, "{got} at {i}");
        }
    }
}

#[test]
fn bytes_are_those_of_tail_and_heads_and_never_overflow() {
    let mut shape = cases()[0].shape;
    assert_eq!(DeltaState::bytes_for(&shape), 4 * (3 * 256 + 4 * 32 * 32));
    shape.k_dim = usize::MAX / 2;
    assert_eq!(DeltaState::bytes_for(&shape), usize::MAX);
}
