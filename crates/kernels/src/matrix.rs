//! Products of activations with weight matrices as the file stores them.
//!
//! One row runs a fused kernel that reads the blocks where they lie. Several rows run a tile kernel: a few
//! output columns are unpacked once and used for every row. Both add in the same order (see the crate's head), so a
//! row's result does not depend on which one ran.

use crate::cpu::{Cpu, Isa};
use crate::pool::SharedMut;
use crate::quantized::QuantRows;
use crate::scalar;
use turbospark_format::BlockType;

/// A weight matrix: `n` outputs of `k` inputs each, row-major, in the file's block format.
#[derive(Clone, Copy)]
pub struct Mat<'a> {
    pub(crate) block_type: BlockType,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) data: &'a [u8],
    pub(crate) row_bytes: usize,
}

impl<'a> Mat<'a> {
    /// A matrix over `data`, or `None` where `k` is no multiple of the format's block or `data` has another size
    /// than `n` rows of `k`.
    pub fn new(block_type: BlockType, n: usize, k: usize, data: &'a [u8]) -> Option<Self> {
        let row_bytes = block_type.row_bytes(k)?;
        (n.checked_mul(row_bytes)? == data.len() && k > 0).then_some(Self {
            block_type,
            n,
            k,
            data,
            row_bytes,
        })
    }

    /// Outputs.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Inputs.
    pub fn k(&self) -> usize {
        self.k
    }

    /// The bytes of row `row`.
    pub(crate) fn row(&self, row: usize) -> &'a [u8] {
        &self.data[row * self.row_bytes..(row + 1) * self.row_bytes]
    }

    /// Whether activations meet this matrix as f32 instead of int8.
    pub(crate) fn is_float(&self) -> bool {
        matches!(self.block_type, BlockType::F32 | BlockType::F16 | BlockType::BF16)
    }
}

/// One product: `out[m, n] = x[m, k] · w[n, k]ᵀ`.
pub struct MatJob<'a> {
    /// The weights.
    pub w: Mat<'a>,
    /// `[m, n]`, overwritten.
    pub out: &'a mut [f32],
}

/// Buffers that products reuse.
#[derive(Default)]
pub struct MatScratch {
    rows: QuantRows,
}

/// A run of output columns of one job.
struct Task {
    job: usize,
    start: usize,
    end: usize,
}

/// Fewest bytes of weights that a task of a single row reads: enough to hide a ticket's cost.
const TASK_BYTES: usize = 8 << 10;
/// Columns that one tile of a many-row product covers; a multiple of every kernel's width.
pub(crate) const TILE_COLUMNS: usize = 16;

impl Cpu {
    /// Runs products that share the input `x` `[m, k]` as one parallel region.
    ///
    /// # Panics
    /// Where a job's `k` differs from `x`'s or its output is not `[m, n]`.
    pub fn matmul(&self, scratch: &mut MatScratch, x: &[f32], m: usize, jobs: &mut [MatJob<'_>]) {
        let Some(k) = jobs.first().map(|j| j.w.k) else { return };
        assert_eq!(x.len(), m * k, "input of the wrong shape");
        for job in jobs.iter() {
            assert!(job.w.k == k && job.out.len() == m * job.w.n, "product of the wrong shape");
        }
        if m == 0 {
            return;
        }
        if jobs.iter().any(|j| !j.w.is_float()) {
            scratch.rows.fill(self, x, m, k);
        }
        let rows = &scratch.rows;
        let mut tasks = Vec::new();
        let bytes = |j: &MatJob<'_>| j.w.n * j.w.row_bytes;
        let mut left: usize = jobs.iter().map(bytes).sum();
        for (job, j) in jobs.iter().enumerate() {
            let mut start = 0;
            while start < j.w.n {
                let step = if m == 1 {
                    // Long parts first: reads are sequential within a part and cold at its start. Short ones at the
                    // end let the threads finish together.
                    let part = (left / (2 * self.threads())).max(TASK_BYTES);
                    (part / j.w.row_bytes.max(1)).next_multiple_of(8).max(8)
                } else {
                    TILE_COLUMNS
                };
                let end = (start + step).min(j.w.n);
                tasks.push(Task { job, start, end });
                left -= (end - start) * j.w.row_bytes;
                start = end;
            }
        }
        let outs: Vec<(Mat<'_>, SharedMut<f32>)> =
            jobs.iter_mut().map(|j| (j.w, SharedMut::new(j.out))).collect();
        self.pool.run(tasks.len(), &|i| {
            let Task { job, start, end } = tasks[i];
            let (w, out) = &outs[job];
            self.columns(w, x, rows, m, start..end, out);
        });
    }

    /// Output columns `range` of one product for all rows.
    fn columns(
        &self,
        w: &Mat<'_>,
        x: &[f32],
        rows: &QuantRows,
        m: usize,
        range: std::ops::Range<usize>,
        out: &SharedMut<f32>,
    ) {
        match self.isa {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this set is chosen only where the processor has it; tasks own disjoint columns of `out`.
            Isa::Avx2 => unsafe { crate::avx2::columns(w, x, rows, m, range, out) },
            _ => {
                for row in 0..m {
                    // SAFETY: tasks own disjoint columns of `out`.
                    let y = unsafe { out.slice(row * w.n + range.start, range.len()) };
                    for (y, column) in y.iter_mut().zip(range.clone()) {
                        *y = if w.is_float() {
                            scalar::dot_float(w.block_type, w.row(column), &x[row * w.k..(row + 1) * w.k])
                        } else {
                            scalar::dot_quantized(w.block_type, w.row(column), rows, row)
                        };
                    }
                }
            }
        }
    }
}
