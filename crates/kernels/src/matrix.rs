//! Products of activations with weight matrices as the file stores them.
//!
//! One row runs a fused kernel that reads the blocks where they lie. Several rows run a tile kernel: a few
//! output columns are unpacked once and used for every row. Both add in the same order (see the crate's head), so a
//! row's result does not depend on which one ran. Products of different matrices with different rows of one input run as
//! one region: that is what a mixture of experts is made of.

use crate::cpu::{Cpu, Isa};
use crate::pool::SharedMut;
use crate::quantized::QuantRows;
use crate::scalar;
use smallvec::SmallVec;
use std::ops::Range;
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

    /// The bytes of row `row`.
    pub(crate) fn row(&self, row: usize) -> &'a [u8] {
        &self.data[row * self.row_bytes..(row + 1) * self.row_bytes]
    }

    /// Whether activations meet this matrix as f32 instead of int8.
    pub(crate) fn is_float(&self) -> bool {
        matches!(self.block_type, BlockType::F32 | BlockType::F16 | BlockType::BF16)
    }
}

/// One product: `out[rows, n] = x[rows, k] · w[n, k]ᵀ`.
pub struct MatJob<'a> {
    /// The weights.
    pub w: Mat<'a>,
    /// The rows of the region's input that meet them.
    pub rows: Range<usize>,
    /// `[rows, n]`, overwritten.
    pub out: &'a mut [f32],
}

/// One entry for each product of a region. A single row's products, those of its experts among them, need no memory of the system.
pub(crate) type PerJob<T> = SmallVec<[T; 32]>;

/// Buffers that products reuse.
#[derive(Default)]
pub struct MatScratch {
    rows: QuantRows,
    picked: Vec<f32>,
}

impl MatScratch {
    /// Bytes of `rows` rows of `k` elements on their way to quantised weights.
    pub fn bytes_for(rows: usize, k: usize) -> usize {
        QuantRows::bytes_for(rows, k)
    }

    /// Bytes held now.
    pub fn bytes(&self) -> usize {
        self.rows.bytes() + self.picked.capacity() * size_of::<f32>()
    }
}

/// The rows that one product is for.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    /// `[m, k]`, for float weights.
    pub(crate) x: &'a [f32],
    /// The region's quantised rows, of which this product's begin at `first`.
    pub(crate) rows: &'a QuantRows,
    pub(crate) first: usize,
    pub(crate) m: usize,
}

/// Output columns `start..end` of a product, with what the reader of its weights may know.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The same thread will probably go on up to this column.
    pub(crate) until: usize,
    /// Whether the same thread has not come from the columns before.
    pub(crate) first: bool,
}

/// A matrix cut into tasks of `step` output columns, which have the numbers `tasks` of their region.
struct Cut<'a> {
    w: Mat<'a>,
    step: usize,
    tasks: Range<usize>,
}

impl Cut<'_> {
    /// The column at which task `task` begins: the last column's end for one past the last task.
    fn column(&self, task: usize) -> usize {
        ((task.clamp(self.tasks.start, self.tasks.end) - self.tasks.start) * self.step).min(self.w.n)
    }
}

/// Most bytes that an idle thread fetches ahead: well within a second-level cache.
const FETCH_BYTES: usize = 128 << 10;
/// Most tasks a thread that a product of a single row is cut into.
const TASKS: usize = 128;
/// Fewest bytes of weights that such a task reads: enough to hide the cost of taking it.
const TASK_BYTES: usize = 8 << 10;
/// Columns that one tile of a many-row product covers; a multiple of every kernel's width.
pub(crate) const TILE_COLUMNS: usize = 16;

impl Cpu {
    /// Runs products with rows of the input `x` `[m, k]` as one parallel region.
    ///
    /// # Panics
    /// Where a job's `k` differs from the others', its rows are not in `x`, or its output has another shape.
    pub fn matmul(&self, scratch: &mut MatScratch, x: &[f32], jobs: &mut [MatJob<'_>]) {
        self.products(scratch, x, None, jobs);
    }

    /// As [`Cpu::matmul`], where row `i` of a job's `rows` is row `picked[i]` of `x`: rows that meet the same matrix need not be
    /// neighbours.
    ///
    /// # Panics
    /// As [`Cpu::matmul`], and where a picked row is not in `x`.
    pub fn matmul_picked(
        &self,
        scratch: &mut MatScratch,
        x: &[f32],
        picked: &[u32],
        jobs: &mut [MatJob<'_>],
    ) {
        self.products(scratch, x, Some(picked), jobs);
    }

    fn products(&self, scratch: &mut MatScratch, x: &[f32], picked: Option<&[u32]>, jobs: &mut [MatJob<'_>]) {
        let Some(k) = jobs.first().map(|j| j.w.k) else { return };
        let m = picked.map_or(x.len() / k, <[u32]>::len);
        assert!(x.len().is_multiple_of(k), "input of the wrong shape");
        for job in jobs.iter() {
            assert!(
                job.w.k == k && job.rows.end <= m && job.out.len() == job.rows.len() * job.w.n,
                "product of the wrong shape"
            );
        }
        if jobs.iter().any(|j| !j.w.is_float()) {
            scratch.rows.fill(self, x, picked, m, k);
        }
        let mut x = x;
        if let Some(picked) = picked
            && jobs.iter().any(|j| j.w.is_float())
        {
            scratch.picked.clear();
            scratch.picked.reserve_exact(m * k);
            picked.iter().for_each(|&row| scratch.picked.extend_from_slice(&x[row as usize * k..][..k]));
            x = &scratch.picked;
        }
        let inputs: PerJob<Input<'_>> = jobs
            .iter()
            .map(|j| Input {
                x: if j.w.is_float() { &x[j.rows.start * k..j.rows.end * k] } else { &[] },
                rows: &scratch.rows,
                first: j.rows.start,
                m: j.rows.len(),
            })
            .collect();
        let cuts: PerJob<Cut<'_>> = self.cut(jobs.iter().map(|j| (j.w, j.rows.len()))).collect();
        let outs: PerJob<SharedMut<f32>> = jobs.iter_mut().map(|j| SharedMut::new(j.out)).collect();
        let tasks = cuts.last().map_or(0, |c| c.tasks.end);
        self.pool.run_shares(tasks, &|part, place| {
            let from = cuts.partition_point(|c| c.tasks.end <= part.start);
            for ((cut, input), out) in cuts.iter().zip(&inputs).zip(&outs).skip(from) {
                let mine = part.start.max(cut.tasks.start)..part.end.min(cut.tasks.end);
                if cut.tasks.start >= part.end {
                    break;
                }
                let until = cut.column(place.until);
                // A single row's tasks are merged into one span; a tile is always one task.
                let merged = if input.m == 1 { mine.len().max(1) } else { 1 };
                for task in mine.step_by(merged) {
                    let span = Span {
                        start: cut.column(task),
                        end: cut.column(task + merged),
                        until,
                        first: place.first || task == cut.tasks.start,
                    };
                    self.columns(&cut.w, input, span, out);
                }
            }
        });
    }

    /// Cuts matrices, each with its number of rows, into tasks of about the same size. A matrix without rows has no task.
    fn cut<'a, I: Iterator<Item = (Mat<'a>, usize)> + Clone>(
        &self,
        mats: I,
    ) -> impl Iterator<Item = Cut<'a>> + use<'a, I> {
        let bytes: usize = mats.clone().map(|(w, _)| w.data.len()).sum();
        let task_bytes = (bytes / (TASKS * self.threads())).max(TASK_BYTES);
        mats.scan(0, move |next, (w, m)| {
            let step =
                if m == 1 { (task_bytes / w.row_bytes).next_multiple_of(8).max(8) } else { TILE_COLUMNS };
            let start = *next;
            *next += if m == 0 { 0 } else { w.n.div_ceil(step) };
            Some(Cut { w, step, tasks: start..*next })
        })
    }

    /// Says which product of one row will probably follow the next one, so that idle threads may fetch the parts of its weights
    /// that they will read. Never changes a result.
    pub fn expect(&self, weights: &[Mat<'_>]) {
        let cuts: PerJob<Cut<'_>> = self.cut(weights.iter().map(|&w| (w, 1))).collect();
        let tasks = cuts.last().map_or(0, |c| c.tasks.end);
        let parts = (0..self.threads()).map(|thread| {
            let first = tasks * thread / self.threads();
            let Some(cut) = cuts.iter().find(|c| c.tasks.contains(&first)) else { return [].as_slice() };
            let bytes = &cut.w.data[cut.column(first) * cut.w.row_bytes..];
            &bytes[..bytes.len().min(FETCH_BYTES)]
        });
        self.pool.expect(parts);
    }

    /// Output columns `span` of one product for all its rows.
    fn columns(&self, w: &Mat<'_>, input: &Input<'_>, span: Span, out: &SharedMut<f32>) {
        match self.isa {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this set is chosen only where the processor has it; tasks own disjoint columns of `out`.
            Isa::Avx2 => unsafe { crate::avx2::columns(w, input, span, out) },
            _ => {
                for row in 0..input.m {
                    // SAFETY: tasks own disjoint columns of `out`.
                    let y = unsafe { out.slice(row * w.n + span.start, span.end - span.start) };
                    for (y, column) in y.iter_mut().zip(span.start..span.end) {
                        *y = if w.is_float() {
                            scalar::dot_float(
                                w.block_type,
                                w.row(column),
                                &input.x[row * w.k..(row + 1) * w.k],
                            )
                        } else {
                            scalar::dot_quantized(w.block_type, w.row(column), input.rows, input.first + row)
                        };
                    }
                }
            }
        }
    }
}
