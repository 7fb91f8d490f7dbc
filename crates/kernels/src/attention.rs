//! Attention over cached positions, for any mixture of rows.
//!
//! A context is cut into the cache's pages. Each page gives a query a maximum, a sum and a weighted sum of values
//! (one step of online softmax, Milakov & Gimelshein 2018); the parts are merged in page order. The cuts depend on
//! positions alone, so it makes no difference to a row's bits whether one thread walks all pages for a block of
//! prompt rows or many threads take pages of a single row.

use crate::cpu::{Cpu, Isa};
use crate::kv::{KvLayer, PAGE, PageData};
use crate::pool::SharedMut;
use crate::scalar;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use std::cell::RefCell;
use std::ops::Range;

/// What a layer's attention looks like.
#[derive(Clone, Copy, Debug)]
pub struct AttnParams {
    /// Query heads; a multiple of the cache's KV heads, which serve consecutive query heads each.
    pub n_heads: usize,
    /// Factor of the scores.
    pub scale: f32,
    /// A row sees this many positions, its own included; `None` for all.
    pub window: Option<usize>,
}

/// One row: where its keys and values are, and the last position that it sees (its own, which must be written).
#[derive(Clone, Copy)]
pub struct AttnRow<'a> {
    /// The cache of the row's sequence.
    pub kv: &'a KvLayer,
    /// The row's position.
    pub position: usize,
}

/// Buffers that attention reuses.
#[derive(Default)]
pub struct AttnScratch {
    parts: Vec<f32>,
}

/// Queries that meet one page of one KV head.
pub(crate) struct PageJob<'a> {
    pub(crate) page: PageData<'a>,
    pub(crate) k_dim: usize,
    pub(crate) v_dim: usize,
    /// `[queries, k_dim]`, scaled.
    pub(crate) q: &'a [f32],
    /// Positions of the page that each query sees, never empty.
    pub(crate) seen: &'a [Range<usize>],
    /// `[queries, v_dim + 2]`: weighted values, maximum, sum.
    pub(crate) out: &'a mut [f32],
}

/// Rows of one sequence that a task takes together: enough to share a page's conversion.
const BLOCK_ROWS: usize = 32;

#[derive(Default)]
struct TaskBuffers {
    q: Vec<f32>,
    seen: Vec<Range<usize>>,
    part: Vec<f32>,
    total: Vec<f32>,
    page: Vec<f32>,
    who: Vec<usize>,
}

thread_local! {
    static BUFFERS: RefCell<TaskBuffers> = RefCell::default();
}

impl Cpu {
    /// `out[row, head] = softmax(scale · q · kᵀ) · v` over the positions that the row sees. `q` is `[rows, n_heads, k_dim]`,
    /// `out` `[rows, n_heads, v_dim]`. All caches have the same shape.
    ///
    /// # Panics
    /// Where shapes disagree or a row's position is past its cache.
    pub fn attend(
        &self,
        scratch: &mut AttnScratch,
        params: &AttnParams,
        q: &[f32],
        rows: &[AttnRow<'_>],
        out: &mut [f32],
    ) {
        let Some(first) = rows.first() else { return };
        let (k_dim, v_dim, n_kv) = (first.kv.k_dim, first.kv.v_dim, first.kv.n_kv_heads());
        let n_heads = params.n_heads;
        assert!(
            n_heads.is_multiple_of(n_kv) && q.len() == rows.len() * n_heads * k_dim,
            "queries of the wrong shape"
        );
        assert_eq!(out.len(), rows.len() * n_heads * v_dim, "attention output of the wrong shape");
        for row in rows {
            assert!(row.position < row.kv.capacity(), "a row's position is past its cache");
            assert!(
                row.kv.k_dim == k_dim && row.kv.v_dim == v_dim && row.kv.n_kv_heads() == n_kv,
                "caches differ"
            );
        }
        let call = Call {
            cpu: self,
            params,
            q,
            rows,
            blocks: same_cache_blocks(rows),
            n_kv,
            group: n_heads / n_kv,
            part_len: v_dim + 2,
            out: SharedMut::new(out),
        };
        if call.blocks.len() * n_kv >= 2 * self.threads() || self.threads() == 1 {
            call.blocks_in_parallel();
        } else {
            call.pages_in_parallel(&mut scratch.parts);
        }
    }
}

/// One call of [`Cpu::attend`].
struct Call<'a> {
    cpu: &'a Cpu,
    params: &'a AttnParams,
    q: &'a [f32],
    rows: &'a [AttnRow<'a>],
    /// Rows that are taken together.
    blocks: Vec<Range<usize>>,
    n_kv: usize,
    /// Query heads that share a KV head.
    group: usize,
    /// Floats of a query's part: its values, maximum and sum.
    part_len: usize,
    out: SharedMut<f32>,
}

/// A page for the queries of a block under one KV head; its parts go to `at`.
struct Piece {
    block: usize,
    head: usize,
    page: usize,
    at: usize,
}

impl Call<'_> {
    /// Many rows: a task walks all pages for one block and KV head.
    fn blocks_in_parallel(&self) {
        // Later blocks see more positions: taking them first evens the ends out.
        self.cpu.pool.run(self.blocks.len() * self.n_kv, &|i| {
            let (block, head) = (&self.blocks[self.blocks.len() - 1 - i / self.n_kv], i % self.n_kv);
            BUFFERS.with_borrow_mut(|b| {
                let mut total = std::mem::take(&mut b.total);
                total.clear();
                total.resize(block.len() * self.group * self.part_len, f32::NAN);
                for page in page_range(self.params, &self.rows[block.clone()]) {
                    self.page(block, head, page, b, &mut |query, part| {
                        let total = &mut total[query * self.part_len..][..self.part_len];
                        self.add(block, query, page, total, part);
                    });
                }
                self.finish(&total, block, head);
                b.total = total;
            });
        });
    }

    /// Few rows: pages are shared out, and the parts added in order afterwards.
    fn pages_in_parallel(&self, parts: &mut Vec<f32>) {
        let mut pieces = Vec::new();
        let mut len = 0;
        for (b, block) in self.blocks.iter().enumerate() {
            for head in 0..self.n_kv {
                for page in page_range(self.params, &self.rows[block.clone()]) {
                    pieces.push(Piece { block: b, head, page, at: len });
                    len += block.len() * self.group * self.part_len;
                }
            }
        }
        parts.clear();
        parts.resize(len, f32::NAN);
        let shared = SharedMut::new(parts);
        let per_task = pieces.len().div_ceil(4 * self.cpu.threads());
        self.cpu.pool.run(pieces.len().div_ceil(per_task), &|i| {
            BUFFERS.with_borrow_mut(|b| {
                for piece in &pieces[i * per_task..((i + 1) * per_task).min(pieces.len())] {
                    self.page(&self.blocks[piece.block], piece.head, piece.page, b, &mut |query, part| {
                        // SAFETY: each piece has its own place in the buffer.
                        unsafe { shared.slice(piece.at + query * self.part_len, self.part_len) }
                            .copy_from_slice(part);
                    });
                }
            });
        });
        for pieces in pieces.chunk_by(|a, b| (a.block, a.head) == (b.block, b.head)) {
            let block = &self.blocks[pieces[0].block];
            let size = block.len() * self.group * self.part_len;
            let (total, rest) = parts[pieces[0].at..][..pieces.len() * size].split_at_mut(size);
            for (piece, parts) in pieces[1..].iter().zip(rest.chunks_exact(size)) {
                for (query, part) in parts.chunks_exact(self.part_len).enumerate() {
                    let total = &mut total[query * self.part_len..][..self.part_len];
                    self.add(block, query, piece.page, total, part);
                }
            }
            self.finish(total, block, pieces[0].head);
        }
    }

    /// Adds a page's part to a query's total; pages come in order. What a query does not see is left out.
    fn add(&self, block: &Range<usize>, query: usize, page: usize, total: &mut [f32], part: &[f32]) {
        let position = self.rows[block.start + query / self.group].position;
        let first = first_seen(self.params, position) / PAGE;
        if page == first {
            total.copy_from_slice(part);
        } else if page > first && page <= position / PAGE {
            merge(self.cpu.isa, total, part);
        }
    }

    /// Runs one page for the queries of `block` under KV head `head` and gives each part to `sink(query, part)`, where the
    /// query counts rows first, then heads of the group.
    fn page(
        &self,
        block: &Range<usize>,
        head: usize,
        page: usize,
        b: &mut TaskBuffers,
        sink: &mut dyn FnMut(usize, &[f32]),
    ) {
        let kv = self.rows[block.start].kv;
        let (k_dim, v_dim) = (kv.k_dim, kv.v_dim);
        b.q.clear();
        b.seen.clear();
        b.who.clear();
        for row in block.clone() {
            let position = self.rows[row].position;
            let from = first_seen(self.params, position).max(page * PAGE);
            let to = (position + 1).min((page + 1) * PAGE);
            if from >= to {
                continue;
            }
            for g in 0..self.group {
                let at = (row * self.params.n_heads + head * self.group + g) * k_dim;
                b.q.extend(self.q[at..at + k_dim].iter().map(|x| x * self.params.scale));
                b.seen.push(from - page * PAGE..to - page * PAGE);
                b.who.push((row - block.start) * self.group + g);
            }
        }
        b.part.resize(b.who.len() * self.part_len, 0.0);
        let mut data = kv.page(page, head);
        if let PageData::F16 { k, v } = data
            && b.who.len() >= 8
            && self.cpu.isa != Isa::Scalar
        {
            // Many queries: one conversion serves them all. It is exact, so the bits stay the same.
            b.page.resize(k.len() + v.len(), 0.0);
            let (k32, v32) = b.page.split_at_mut(k.len());
            k.reinterpret_cast::<half::f16>().convert_to_f32_slice(k32);
            v.reinterpret_cast::<half::f16>().convert_to_f32_slice(v32);
            data = PageData::F32 { k: k32, v: v32 };
        }
        let mut job = PageJob { page: data, k_dim, v_dim, q: &b.q, seen: &b.seen, out: &mut b.part };
        match self.cpu.isa {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this set is chosen only where the processor has it.
            Isa::Avx2 => unsafe { crate::avx2::attention::page(&mut job) },
            _ => scalar::attend_page(&mut job),
        }
        for (who, part) in b.who.iter().zip(b.part.chunks_exact(self.part_len)) {
            sink(*who, part);
        }
    }

    /// Divides the totals of a block's queries by their sums and stores them.
    fn finish(&self, total: &[f32], block: &Range<usize>, head: usize) {
        let v_dim = self.part_len - 2;
        for (query, total) in total.chunks_exact(self.part_len).enumerate() {
            let (row, g) = (block.start + query / self.group, query % self.group);
            let at = (row * self.params.n_heads + head * self.group + g) * v_dim;
            // SAFETY: a (row, head) belongs to one task.
            let out = unsafe { self.out.slice(at, v_dim) };
            let inverse = 1.0 / total[v_dim + 1];
            out.iter_mut().zip(total).for_each(|(o, t)| *o = t * inverse);
        }
    }
}

/// The first position that a row at `position` sees.
fn first_seen(params: &AttnParams, position: usize) -> usize {
    params.window.map_or(0, |w| (position + 1).saturating_sub(w))
}

/// Pages that any of `rows` sees.
fn page_range(params: &AttnParams, rows: &[AttnRow<'_>]) -> Range<usize> {
    let from = rows.iter().map(|r| first_seen(params, r.position)).min().unwrap_or(0);
    let to = rows.iter().map(|r| r.position).max().unwrap_or(0);
    from / PAGE..to / PAGE + 1
}

/// Cuts `rows` into runs on the same cache, of at most [`BLOCK_ROWS`].
fn same_cache_blocks(rows: &[AttnRow<'_>]) -> Vec<Range<usize>> {
    let mut blocks: Vec<Range<usize>> = Vec::new();
    for (i, row) in rows.iter().enumerate() {
        match blocks.last_mut() {
            Some(last) if last.len() < BLOCK_ROWS && std::ptr::eq(rows[last.start].kv, row.kv) => {
                last.end += 1;
            }
            _ => blocks.push(i..i + 1),
        }
    }
    blocks
}

/// Adds a page's part to the total of the pages before it. Both are `[v_dim values, maximum, sum]`.
fn merge(isa: Isa, total: &mut [f32], part: &[f32]) {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this set is chosen only where the processor has it.
        Isa::Avx2 => unsafe { crate::avx2::attention::merge(total, part) },
        _ => scalar::merge_parts(total, part),
    }
}
