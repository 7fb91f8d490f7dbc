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
        let group = n_heads / n_kv;
        let blocks = same_cache_blocks(rows);
        let out = SharedMut::new(out);
        if blocks.len() * n_kv >= 2 * self.threads() || self.threads() == 1 {
            // Later blocks see more positions: taking them first evens the ends out.
            self.pool.run(blocks.len() * n_kv, &|i| {
                let (block, head) = (&blocks[blocks.len() - 1 - i / n_kv], i % n_kv);
                BUFFERS.with_borrow_mut(|b| {
                    b.total.clear();
                    b.total.resize(block.len() * group * (v_dim + 2), f32::NAN);
                    let mut total = std::mem::take(&mut b.total);
                    let pages = page_range(params, &rows[block.clone()]);
                    self.walk(
                        params,
                        q,
                        rows,
                        block,
                        head,
                        group,
                        pages.clone(),
                        b,
                        &mut |page, query, part| {
                            let total = &mut total[query * (v_dim + 2)..][..v_dim + 2];
                            let first = first_seen(params, rows[block.start + query / group].position) / PAGE;
                            if page == first {
                                total.copy_from_slice(part);
                            } else {
                                merge(self.isa, total, part);
                            }
                        },
                    );
                    finish(&total, v_dim, group, n_heads, block, head, &out);
                    b.total = total;
                });
            });
            return;
        }
        // Few rows: pages are shared out, and the parts merged in order afterwards.
        struct Piece {
            block: usize,
            head: usize,
            page: usize,
            at: usize,
        }
        let mut pieces = Vec::new();
        let mut len = 0;
        for (b, block) in blocks.iter().enumerate() {
            for head in 0..n_kv {
                for page in page_range(params, &rows[block.clone()]) {
                    pieces.push(Piece { block: b, head, page, at: len });
                    len += block.len() * group * (v_dim + 2);
                }
            }
        }
        scratch.parts.clear();
        scratch.parts.resize(len, f32::NAN);
        let parts = SharedMut::new(&mut scratch.parts);
        let per_task = pieces.len().div_ceil(4 * self.threads());
        self.pool.run(pieces.len().div_ceil(per_task), &|i| {
            BUFFERS.with_borrow_mut(|b| {
                for piece in &pieces[i * per_task..((i + 1) * per_task).min(pieces.len())] {
                    let block = &blocks[piece.block];
                    let pages = piece.page..piece.page + 1;
                    self.walk(params, q, rows, block, piece.head, group, pages, b, &mut |_, query, part| {
                        // SAFETY: each piece has its own part of the buffer.
                        unsafe { parts.slice(piece.at + query * (v_dim + 2), v_dim + 2) }
                            .copy_from_slice(part);
                    });
                }
            });
        });
        let mut pieces = pieces.iter().peekable();
        while let Some(piece) = pieces.next() {
            let block = &blocks[piece.block];
            let size = block.len() * group * (v_dim + 2);
            // SAFETY: the region is over; each piece's part is taken once.
            let total = unsafe { parts.slice(piece.at, size) };
            while let Some(next) = pieces.next_if(|n| n.block == piece.block && n.head == piece.head) {
                // SAFETY: as above; another part than `total`.
                let part = unsafe { parts.slice(next.at, size) };
                for (query, (t, p)) in total.chunks_mut(v_dim + 2).zip(part.chunks(v_dim + 2)).enumerate() {
                    let position = rows[block.start + query / group].position;
                    let seen = first_seen(params, position) / PAGE..=position / PAGE;
                    if next.page == *seen.start() {
                        t.copy_from_slice(p);
                    } else if seen.contains(&next.page) {
                        merge(self.isa, t, p);
                    }
                }
            }
            finish(total, v_dim, group, n_heads, block, piece.head, &out);
        }
    }

    /// Runs each page of `pages` for the queries of `block` under KV head `head` and gives every part to `sink(page,
    /// query, part)`, where the query counts rows first, then heads of the group.
    #[allow(clippy::too_many_arguments)]
    fn walk(
        &self,
        params: &AttnParams,
        q: &[f32],
        rows: &[AttnRow<'_>],
        block: &Range<usize>,
        head: usize,
        group: usize,
        pages: Range<usize>,
        b: &mut TaskBuffers,
        sink: &mut dyn FnMut(usize, usize, &[f32]),
    ) {
        let kv = rows[block.start].kv;
        let (k_dim, v_dim) = (kv.k_dim, kv.v_dim);
        for page in pages {
            b.q.clear();
            b.seen.clear();
            b.who.clear();
            for row in block.clone() {
                let position = rows[row].position;
                let from = first_seen(params, position).max(page * PAGE);
                let to = (position + 1).min((page + 1) * PAGE);
                if from >= to {
                    continue;
                }
                for g in 0..group {
                    let at = (row * params.n_heads + head * group + g) * k_dim;
                    b.q.extend(q[at..at + k_dim].iter().map(|x| x * params.scale));
                    b.seen.push(from - page * PAGE..to - page * PAGE);
                    b.who.push((row - block.start) * group + g);
                }
            }
            b.part.resize(b.who.len() * (v_dim + 2), 0.0);
            let mut data = kv.page(page, head);
            if let PageData::F16 { k, v } = data
                && b.who.len() >= 8
                && self.isa != Isa::Scalar
            {
                // Many queries: one conversion serves them all. It is exact, so the bits stay the same.
                b.page.resize(k.len() + v.len(), 0.0);
                let (k32, v32) = b.page.split_at_mut(k.len());
                use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
                k.reinterpret_cast::<half::f16>().convert_to_f32_slice(k32);
                v.reinterpret_cast::<half::f16>().convert_to_f32_slice(v32);
                data = PageData::F32 { k: k32, v: v32 };
            }
            let mut job = PageJob { page: data, k_dim, v_dim, q: &b.q, seen: &b.seen, out: &mut b.part };
            match self.isa {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: this set is chosen only where the processor has it.
                Isa::Avx2 => unsafe { crate::avx2::attention::page(&mut job) },
                _ => scalar::attend_page(&mut job),
            }
            for (who, part) in b.who.iter().zip(b.part.chunks(v_dim + 2)) {
                sink(page, *who, part);
            }
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

/// Divides the totals of a block's queries by their sums and stores them.
fn finish(
    total: &[f32],
    v_dim: usize,
    group: usize,
    n_heads: usize,
    block: &Range<usize>,
    head: usize,
    out: &SharedMut<f32>,
) {
    for (query, total) in total.chunks(v_dim + 2).enumerate() {
        let (row, g) = (block.start + query / group, query % group);
        // SAFETY: a (row, head) belongs to one task.
        let out = unsafe { out.slice((row * n_heads + head * group + g) * v_dim, v_dim) };
        let inverse = 1.0 / total[v_dim + 1];
        out.iter_mut().zip(total).for_each(|(o, t)| *o = t * inverse);
    }
}
