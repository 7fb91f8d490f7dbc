//! The gated delta net: a layer whose memory is a matrix a head instead of a row a position.
//!
//! Rows are consecutive positions of one sequence. A row's result depends on the state before it and on nothing else: each
//! value column of a head is one chain of operations over positions, so neither the cuts of a prompt into calls nor the number of
//! threads changes a bit. For a prompt, the state is cut into tiles of columns that stay in the first-level cache while all
//! rows pass; `docs/findings.md`, "the delta rule's step form", says why there is no chunked form beside it.

use crate::cpu::{Cpu, Isa};
use crate::pool::SharedMut;
use crate::scalar;
use std::cell::RefCell;
use std::ops::Range;

/// Value columns of a state tile: four registers, 16 KB of state with keys of 128.
const TILE: usize = 32;
/// Rows whose copies wait in the second-level cache beside the state of a key head.
const BLOCK_ROWS: usize = 32;

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

    /// Bytes that each thread takes for the delta rule.
    pub fn bytes_per_thread(&self) -> usize {
        let row = 2 * self.k_dim + self.ratio() * self.v_dim;
        BLOCK_ROWS * (size_of::<f32>() * row + size_of::<Step>() * self.ratio())
    }

    /// Value head `i` of those that key head `j` serves.
    fn v_head(&self, j: usize, i: usize) -> usize {
        match self.heads {
            HeadOrder::Grouped => j * self.ratio() + i,
            HeadOrder::Tiled => i * self.n_k_heads + j,
        }
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
    pub(crate) shape: DeltaShape,
    /// `[conv_width - 1, channels]`, oldest first.
    pub(crate) conv: Vec<f32>,
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

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        size_of_val(self.conv.as_slice()) + size_of_val(self.heads.as_slice())
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

/// What gates one position and value head.
pub(crate) struct Gate {
    a: f32,
    /// With its bias.
    alpha: f32,
    beta: f32,
}

impl Step {
    /// The factors of the value heads under one key head, from `[q·q, k·k, q·k]`. Inlined into a caller with wider registers.
    #[inline(always)]
    pub(crate) fn fill(
        [qq, kk, qk]: [f32; 3],
        k_dim: usize,
        eps: f32,
        gates: impl Iterator<Item = Gate>,
        out: &mut [Self],
    ) {
        let k_scale = 1.0 / (kk + eps).sqrt();
        let q_scale = 1.0 / (qq + eps).sqrt() / (k_dim as f32).sqrt();
        for (out, gate) in out.iter_mut().zip(gates) {
            let decay = scalar::exp(gate.a * scalar::softplus(gate.alpha));
            *out = Self {
                decay,
                held: decay * k_scale,
                beta: 1.0 / (1.0 + scalar::exp(-gate.beta)),
                k_scale,
                kq: qk * k_scale,
                q_scale,
            };
        }
    }
}

/// Copies of a block of rows for one key head, and their factors.
#[derive(Default)]
struct Block {
    /// `[rows, 2, k_dim]`: query, key.
    qk: Vec<f32>,
    /// `[value heads of the key head, rows, v_dim]`: values, then results.
    x: Vec<f32>,
    /// `[rows, value heads of the key head]`.
    steps: Vec<Step>,
}

thread_local! {
    static BLOCK: RefCell<Block> = RefCell::default();
}

impl Cpu {
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
        let DeltaShape { n_k_heads: n_k, n_v_heads: n_v, v_dim, .. } = *shape;
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
        let call = Call {
            isa: self.isa,
            shape,
            weights,
            gates,
            qkv,
            heads: SharedMut::new(&mut state.heads),
            out: SharedMut::new(out),
        };
        // More parts repeat the copies of queries and keys, fewer leave threads without work.
        let tiles = shape.ratio() * v_dim.div_ceil(TILE);
        let parts = (8 * self.threads()).div_ceil(n_k).min(tiles);
        self.pool.run(n_k * parts, &|task| {
            let (j, part) = (task / parts, task % parts);
            let tiles = tiles * part / parts..tiles * (part + 1) / parts;
            BLOCK.with_borrow_mut(|block| {
                for start in (0..rows).step_by(BLOCK_ROWS) {
                    call.block(j, tiles.clone(), start..rows.min(start + BLOCK_ROWS), block);
                }
            });
        });
    }
}

/// One call of [`Cpu::delta_rule`].
struct Call<'a> {
    isa: Isa,
    shape: &'a DeltaShape,
    weights: &'a DeltaWeights<'a>,
    gates: DeltaGates<'a>,
    qkv: &'a [f32],
    heads: SharedMut<f32>,
    out: SharedMut<f32>,
}

impl Call<'_> {
    /// Takes `rows` through some state tiles of the value heads under key head `j`; tiles count heads first. A row of the batch
    /// is so long that its neighbours' elements fall into the same few sets of the caches, hence the copies.
    fn block(&self, j: usize, tiles: Range<usize>, rows: Range<usize>, block: &mut Block) {
        let DeltaShape { n_k_heads: n_k, n_v_heads: n_v, k_dim, v_dim, .. } = *self.shape;
        let (ratio, columns, per_head) = (self.shape.ratio(), self.shape.columns(), v_dim.div_ceil(TILE));
        let members = tiles.start / per_head..tiles.end.div_ceil(per_head);
        let Block { qk, x, steps } = block;
        qk.resize(rows.len() * 2 * k_dim, 0.0);
        x.resize(ratio * rows.len() * v_dim, 0.0);
        steps.resize(rows.len() * ratio, Step::default());
        for (at, row) in rows.clone().enumerate() {
            let qkv = &self.qkv[row * self.shape.channels()..][..self.shape.channels()];
            let (q, k) = qk[2 * at * k_dim..][..2 * k_dim].split_at_mut(k_dim);
            q.copy_from_slice(&qkv[j * k_dim..][..k_dim]);
            k.copy_from_slice(&qkv[(n_k + j) * k_dim..][..k_dim]);
            for i in members.clone() {
                let v = &qkv[2 * n_k * k_dim + self.shape.v_head(j, i) * v_dim..][..v_dim];
                x[(i * rows.len() + at) * v_dim..][..v_dim].copy_from_slice(v);
            }
            self.prepare(q, k, row, j, &mut steps[at * ratio..][..ratio]);
        }
        for tile in tiles {
            let (i, first) = (tile / per_head, tile % per_head * TILE);
            let (width, n) = (TILE.min(columns - first), TILE.min(v_dim - first));
            let at = (self.shape.v_head(j, i) * columns + first) * k_dim;
            // SAFETY: a tile of a head belongs to one task.
            let state = unsafe { self.heads.slice(at, width * k_dim) };
            for (row, (qk, steps)) in qk.chunks_exact(2 * k_dim).zip(steps.chunks_exact(ratio)).enumerate() {
                let (q, k) = qk.split_at(k_dim);
                let x = &mut x[(i * rows.len() + row) * v_dim + first..][..n];
                match self.isa {
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: this set is chosen only where the processor has it.
                    Isa::Avx2 => unsafe { crate::avx2::delta::step(state, q, k, &steps[i], x) },
                    _ => scalar::delta_step(state, q, k, &steps[i], x),
                }
                let at = ((rows.start + row) * n_v + self.shape.v_head(j, i)) * v_dim + first;
                // SAFETY: and so do its columns of the output.
                unsafe { self.out.slice(at, n) }.copy_from_slice(x);
            }
        }
    }

    /// The factors of `row` for the value heads under key head `j`.
    fn prepare(&self, q: &[f32], k: &[f32], row: usize, j: usize, out: &mut [Step]) {
        let (n_v, ratio) = (self.shape.n_v_heads, self.shape.ratio());
        let gates = (0..ratio).map(|i| {
            let h = self.shape.v_head(j, i);
            let (beta, alpha) = match self.gates {
                DeltaGates::Split { beta, alpha } => (beta[row * n_v + h], alpha[row * n_v + h]),
                DeltaGates::PerKeyHead(both) => {
                    let at = 2 * (row * n_v + j * ratio) + i;
                    (both[at], both[at + ratio])
                }
            };
            Gate { a: self.weights.a[h], alpha: alpha + self.weights.dt_bias[h], beta }
        });
        match self.isa {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this set is chosen only where the processor has it.
            Isa::Avx2 => unsafe { crate::avx2::delta::prepare(q, k, self.weights.eps, gates, out) },
            _ => Step::fill(scalar::delta_dots(q, k), q.len(), self.weights.eps, gates, out),
        }
    }
}
