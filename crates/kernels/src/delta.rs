//! The gated delta net: a layer whose memory is a matrix a head instead of a row a position.
//!
//! Rows are consecutive positions of one sequence. A row's result depends on the state before it and on nothing else: each
//! value column of a head is one chain of operations over positions, so neither the cuts of a prompt into calls nor the number of
//! threads changes a bit. For a prompt, the state is cut into tiles of columns that stay in the first-level cache while all
//! rows pass; `docs/findings.md`, "the delta rule's step form", says why there is no chunked form beside it.

use crate::cpu::{Cpu, Isa};
use crate::pool::SharedMut;
use crate::scalar;

/// Value columns of a state tile: four registers, 16 KB of state with keys of 128.
const TILE: usize = 32;
/// Channels that a step of the convolution takes together.
const CONV_BLOCK: usize = 64;

/// Sizes of a gated delta net.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaShape {
    /// Heads of queries and keys.
    pub n_k_heads: usize,
    /// Heads of values, of which each has its own state; a multiple of `n_k_heads`.
    pub n_v_heads: usize,
    /// Elements of a query or key head.
    pub k_dim: usize,
    /// Elements of a value head.
    pub v_dim: usize,
    /// Positions that the convolution sees, its own included; at least one.
    pub conv_width: usize,
    /// Which key head serves a value head.
    pub heads: HeadOrder,
}

/// Which key head serves value head `h`, where there are `r` value heads a key head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadOrder {
    /// Head `h / r`: consecutive value heads share a key head.
    Grouped,
    /// Head `h % n_k_heads`: the key heads repeat.
    Tiled,
}

impl DeltaShape {
    /// Elements of a row of queries, keys and values: what the convolution runs over.
    pub fn channels(&self) -> usize {
        2 * self.n_k_heads * self.k_dim + self.n_v_heads * self.v_dim
    }

    /// Value heads a key head.
    fn ratio(&self) -> usize {
        self.n_v_heads / self.n_k_heads
    }

    /// Columns of a head's state as stored.
    fn columns(&self) -> usize {
        self.v_dim.next_multiple_of(8)
    }

    fn check(&self) {
        assert!(
            self.n_k_heads > 0 && self.n_v_heads > 0 && self.n_v_heads.is_multiple_of(self.n_k_heads),
            "value heads are no multiple of key heads"
        );
        assert!(self.k_dim > 0 && self.v_dim > 0 && self.conv_width > 0, "an empty delta net");
    }
}

/// What a sequence leaves behind in one layer: the last inputs of the convolution and the heads' matrices. A copy is a checkpoint.
#[derive(Clone)]
pub struct DeltaState {
    shape: DeltaShape,
    /// `[conv_width - 1, channels]`, oldest first.
    conv: Vec<f32>,
    /// `[n_v_heads, tiles, k_dim, columns of the tile]`, the columns of a head padded to a multiple of eight.
    heads: Vec<f32>,
}

impl DeltaState {
    /// The state before the first position: zeros.
    ///
    /// # Panics
    /// Where the shape is empty or its value heads are no multiple of its key heads.
    pub fn new(shape: &DeltaShape) -> Self {
        shape.check();
        Self {
            shape: *shape,
            conv: vec![0.0; (shape.conv_width - 1) * shape.channels()],
            heads: vec![0.0; shape.n_v_heads * shape.k_dim * shape.columns()],
        }
    }

    /// Bytes of a state of this shape; `usize::MAX` where they are past counting.
    pub fn bytes_for(shape: &DeltaShape) -> usize {
        let product = |factors: &[usize]| factors.iter().fold(1_usize, |p, f| p.saturating_mul(*f));
        let channels = product(&[2, shape.n_k_heads, shape.k_dim])
            .saturating_add(product(&[shape.n_v_heads, shape.v_dim]));
        let columns = shape.v_dim.checked_next_multiple_of(8).unwrap_or(usize::MAX);
        product(&[channels, shape.conv_width.saturating_sub(1), size_of::<f32>()]).saturating_add(product(&[
            shape.n_v_heads,
            shape.k_dim,
            columns,
            size_of::<f32>(),
        ]))
    }

    /// Forgets everything: the state before the first position.
    pub fn reset(&mut self) {
        self.conv.fill(0.0);
        self.heads.fill(0.0);
    }
}

/// The projections that gate the state, before their activations.
#[derive(Clone, Copy)]
pub enum DeltaGates<'a> {
    /// One tensor each.
    Split {
        /// `[rows, n_v_heads]`: how far a value replaces what is held, before the sigmoid.
        beta: &'a [f32],
        /// `[rows, n_v_heads]`: how much is forgotten, before bias and softplus.
        alpha: &'a [f32],
    },
    /// `[rows, n_k_heads, 2, value heads a key head]`: for each key head its betas, then its alphas.
    PerKeyHead(&'a [f32]),
}

/// Parameters of the delta rule.
#[derive(Clone, Copy)]
pub struct DeltaWeights<'a> {
    /// `[n_v_heads]`: `-exp(A_log)`, never positive.
    pub a: &'a [f32],
    /// `[n_v_heads]`: added to alpha before the softplus.
    pub dt_bias: &'a [f32],
    /// Added to the squared length of a query or key before the root (1e-6 in the released models).
    pub eps: f32,
}

/// The factors of one position and value head.
#[derive(Clone, Copy, Default)]
pub(crate) struct Step {
    /// What is left of the state.
    pub(crate) decay: f32,
    /// Factor of the state's product with the raw key: decay over the key's length.
    pub(crate) held: f32,
    pub(crate) beta: f32,
    /// One over the key's length.
    pub(crate) k_scale: f32,
    /// Product of the raw query with the normalised key.
    pub(crate) kq: f32,
    /// One over the query's length and the root of its dimension.
    pub(crate) q_scale: f32,
}

/// What the factors of one row come from.
pub(crate) struct PrepareRow<'a> {
    shape: &'a DeltaShape,
    weights: &'a DeltaWeights<'a>,
    /// The whole batch's.
    gates: DeltaGates<'a>,
    row: usize,
    qkv: &'a [f32],
}

impl PrepareRow<'_> {
    /// Fills the factors `[n_v_heads]`; `dots(q, k)` is `[q·q, k·k, q·k]`. Inlined into a caller with wider registers.
    #[inline(always)]
    pub(crate) fn run(&self, dots: impl Fn(&[f32], &[f32]) -> [f32; 3], out: &mut [Step]) {
        let DeltaShape { n_k_heads: n_k, n_v_heads: n_v, k_dim, .. } = *self.shape;
        let ratio = self.shape.ratio();
        let (q, k) = self.qkv[..2 * n_k * k_dim].split_at(n_k * k_dim);
        for (j, (q, k)) in q.chunks_exact(k_dim).zip(k.chunks_exact(k_dim)).enumerate() {
            let [qq, kk, qk] = dots(q, k);
            let k_scale = 1.0 / (kk + self.weights.eps).sqrt();
            let q_scale = 1.0 / (qq + self.weights.eps).sqrt() / (k_dim as f32).sqrt();
            for i in 0..ratio {
                let h = match self.shape.heads {
                    HeadOrder::Grouped => j * ratio + i,
                    HeadOrder::Tiled => i * n_k + j,
                };
                let (beta, alpha) = match self.gates {
                    DeltaGates::Split { beta, alpha } => {
                        (beta[self.row * n_v + h], alpha[self.row * n_v + h])
                    }
                    DeltaGates::PerKeyHead(both) => {
                        let at = 2 * (self.row * n_v + j * ratio) + i;
                        (both[at], both[at + ratio])
                    }
                };
                let decay =
                    scalar::exp(self.weights.a[h] * scalar::softplus(alpha + self.weights.dt_bias[h]));
                out[h] = Step {
                    decay,
                    held: decay * k_scale,
                    beta: 1.0 / (1.0 + scalar::exp(-beta)),
                    k_scale,
                    kq: qk * k_scale,
                    q_scale,
                };
            }
        }
    }
}

impl Cpu {
    /// A causal convolution of every channel over positions, then SiLU, in place: `x[t, c]` becomes
    /// `silu(Σ_j weight[c, j] · x[t - conv_width + 1 + j, c])`. `x` is `[rows, channels]`, `weight` `[channels, conv_width]`; inputs
    /// before the first row come from `state`, which keeps the last ones.
    ///
    /// # Panics
    /// Where a length or the state's shape disagrees with `shape`.
    pub fn delta_conv(&self, shape: &DeltaShape, state: &mut DeltaState, weight: &[f32], x: &mut [f32]) {
        let (channels, width) = (shape.channels(), shape.conv_width);
        assert_eq!(state.shape, *shape, "a state of another shape");
        assert_eq!(weight.len(), channels * width, "convolution weight of the wrong length");
        assert!(x.len().is_multiple_of(channels), "convolution of the wrong shape");
        let rows = x.len() / channels;
        let (x, tail) = (SharedMut::new(x), SharedMut::new(&mut state.conv));
        let isa = self.isa;
        let least = 4 * CONV_BLOCK * 64_usize.div_ceil(rows.max(1));
        self.split(channels, least, &|part| {
            let mut buffer = vec![0.0_f32; (2 * width - 1) * CONV_BLOCK];
            for start in part.clone().step_by(CONV_BLOCK) {
                let n = CONV_BLOCK.min(part.end - start);
                let (taps, rest) = buffer.split_at_mut(width * n);
                let history = &mut rest[..(width - 1) * n];
                for (c, weight) in weight[start * width..(start + n) * width].chunks_exact(width).enumerate()
                {
                    weight.iter().enumerate().for_each(|(tap, w)| taps[tap * n + c] = *w);
                }
                for (at, history) in history.chunks_exact_mut(n).enumerate() {
                    // SAFETY: the channels of a part are its own.
                    history.copy_from_slice(unsafe { tail.slice(at * channels + start, n) });
                }
                for row in 0..rows {
                    // SAFETY: as above.
                    let x = unsafe { x.slice(row * channels + start, n) };
                    match isa {
                        #[cfg(target_arch = "x86_64")]
                        // SAFETY: this set is chosen only where the processor has it.
                        Isa::Avx2 if n.is_multiple_of(8) => unsafe {
                            crate::avx2::delta::conv_step(taps, history, x);
                        },
                        _ => scalar::conv_step(taps, history, x),
                    }
                }
                for (at, history) in history.chunks_exact(n).enumerate() {
                    // SAFETY: as above.
                    unsafe { tail.slice(at * channels + start, n) }.copy_from_slice(history);
                }
            }
        });
    }

    /// The gated delta rule (Yang et al. 2024, "Gated Delta Networks"). For each value head with state `S`
    /// `[k_dim, v_dim]`, position after position:
    ///
    /// ```text
    /// S   = exp(a · softplus(alpha + dt_bias)) · S
    /// S  += k ⊗ sigmoid(beta) · (v - Sᵀ k)
    /// out = Sᵀ q
    /// ```
    ///
    /// with `k` and `q` divided by `sqrt(|·|² + eps)` and `q` by `sqrt(k_dim)` besides. `qkv` is `[rows, channels]` (query heads, key
    /// heads, value heads, as [`Cpu::delta_conv`] leaves them), `out` `[rows, n_v_heads, v_dim]`.
    ///
    /// # Panics
    /// Where a length or the state's shape disagrees with `shape`.
    pub fn delta_rule(
        &self,
        shape: &DeltaShape,
        state: &mut DeltaState,
        weights: &DeltaWeights<'_>,
        qkv: &[f32],
        gates: DeltaGates<'_>,
        out: &mut [f32],
    ) {
        let DeltaShape { n_k_heads: n_k, n_v_heads: n_v, k_dim, v_dim, .. } = *shape;
        let channels = shape.channels();
        assert_eq!(state.shape, *shape, "a state of another shape");
        assert!(qkv.len().is_multiple_of(channels), "queries, keys and values of the wrong shape");
        let rows = qkv.len() / channels;
        let gates_fit = match gates {
            DeltaGates::Split { beta, alpha } => beta.len() == rows * n_v && alpha.len() == rows * n_v,
            DeltaGates::PerKeyHead(both) => both.len() == 2 * rows * n_v,
        };
        assert!(
            gates_fit && weights.a.len() == n_v && weights.dt_bias.len() == n_v,
            "gates of the wrong length"
        );
        assert_eq!(out.len(), rows * n_v * v_dim, "delta rule output of the wrong shape");
        let steps = self.delta_steps(shape, weights, qkv, gates);
        let (heads, out) = (SharedMut::new(&mut state.heads), SharedMut::new(out));
        let (tiles, columns) = (v_dim.div_ceil(TILE), shape.columns());
        self.pool.run(n_v * tiles, &|task| {
            let (h, first) = (task / tiles, task % tiles * TILE);
            let j = match shape.heads {
                HeadOrder::Grouped => h / shape.ratio(),
                HeadOrder::Tiled => h % n_k,
            };
            let (width, n) = (TILE.min(columns - first), TILE.min(v_dim - first));
            // SAFETY: a tile of a head belongs to one task.
            let state = unsafe { heads.slice((h * columns + first) * k_dim, width * k_dim) };
            for (row, qkv) in qkv.chunks_exact(channels).enumerate() {
                let (q, k) = (&qkv[j * k_dim..][..k_dim], &qkv[(n_k + j) * k_dim..][..k_dim]);
                let v = &qkv[2 * n_k * k_dim + h * v_dim + first..][..n];
                let step = &steps[row * n_v + h];
                // SAFETY: as are its columns of the output.
                let out = unsafe { out.slice((row * n_v + h) * v_dim + first, n) };
                match self.isa {
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: this set is chosen only where the processor has it.
                    Isa::Avx2 => unsafe { crate::avx2::delta::step(state, q, k, v, step, out) },
                    _ => scalar::delta_step(state, q, k, v, step, out),
                }
            }
        });
    }

    /// The factors of every row and value head, `[rows, n_v_heads]`.
    fn delta_steps(
        &self,
        shape: &DeltaShape,
        weights: &DeltaWeights<'_>,
        qkv: &[f32],
        gates: DeltaGates<'_>,
    ) -> Vec<Step> {
        let (channels, n_v) = (shape.channels(), shape.n_v_heads);
        let rows = qkv.len() / channels;
        let mut steps = vec![Step::default(); rows * n_v];
        let shared = SharedMut::new(&mut steps);
        self.split(rows, 8, &|part| {
            for row in part {
                // SAFETY: parts of one split are disjoint rows.
                let out = unsafe { shared.slice(row * n_v, n_v) };
                let job = PrepareRow { shape, weights, gates, row, qkv: &qkv[row * channels..][..channels] };
                match self.isa {
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: this set is chosen only where the processor has it.
                    Isa::Avx2 => unsafe { crate::avx2::delta::prepare(&job, out) },
                    _ => job.run(scalar::delta_dots, out),
                }
            }
        });
        steps
    }
}
