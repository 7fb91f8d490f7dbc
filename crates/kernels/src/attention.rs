//! Attention over cached positions, for any mixture of rows.
//!
//! A context is cut into the cache's pages. Each page gives a query a maximum, a sum and a weighted sum of values
//! (one step of online softmax, Milakov & Gimelshein 2018); the parts are merged in page order. The cuts depend on
//! positions alone, so it makes no difference to a row's bits whether one thread walks all pages for a block of
//! prompt rows or many threads take pages of a single row.

mod shared;

use crate::cpu::{Cpu, Isa};
use crate::kv::{KvLayer, PAGE, PageData, Values};
use crate::pool::SharedMut;
use crate::scalar;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::ops::Range;

/// What a layer's attention looks like.
#[derive(Clone, Copy, Debug)]
pub struct AttnParams<'a> {
    /// Query heads; a multiple of the cache's KV heads, which serve consecutive query heads each.
    pub n_heads: usize,
    /// Factor of the scores.
    pub scale: f32,
    /// A row sees this many positions, its own included; `None` for all.
    pub window: Option<usize>,
    /// `[n_heads]`: a logit per query head that takes its share of the softmax and adds no value (after Xiao
    /// et al. 2024, "Efficient Streaming Language Models with Attention Sinks"). `scale` does not apply to it.
    pub sinks: Option<&'a [f32]>,
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
    totals: Vec<f32>,
    pieces: Vec<shared::Piece>,
}

impl AttnScratch {
    /// The most bytes that attention of this shape takes besides its arguments, on all threads together.
    pub fn bytes_for(threads: usize, n_heads: usize, n_kv_heads: usize, k_dim: usize, v_dim: usize) -> usize {
        let (group, part_len) = (n_heads / n_kv_heads.max(1), v_dim + 2);
        let queries = block_rows(group, k_dim, part_len) * group;
        let floats = queries * (k_dim.next_multiple_of(8) + 2 * part_len) + PAGE * (k_dim + v_dim);
        let own = size_of::<f32>() * floats + queries * (size_of::<Range<usize>>() + size_of::<usize>());
        // Pages are shared out only where there are fewer blocks than that.
        let blocks = if threads == 1 { 0 } else { (2 * threads - 1) / n_kv_heads.max(1) };
        let totals = blocks * n_kv_heads * queries * part_len;
        let parts = if blocks == 0 { 0 } else { (shared::ROUND_FLOATS * threads).max(queries * part_len) };
        threads * own + size_of::<f32>() * (totals + parts)
    }

    /// Bytes held now, without those of the threads.
    pub fn bytes(&self) -> usize {
        size_of::<f32>() * (self.parts.capacity() + self.totals.capacity())
    }
}

/// Queries that meet one page of one KV head.
pub(crate) struct PageJob<'a> {
    pub(crate) page: PageData<'a>,
    /// Elements of a query and of a key; where `latent`, a multiple of eight.
    pub(crate) k_dim: usize,
    pub(crate) v_dim: usize,
    /// Whether the keys are `[64, k_dim]` and their leading elements the values.
    pub(crate) latent: bool,
    /// `[queries, k_dim]`, scaled.
    pub(crate) q: &'a [f32],
    /// Positions of the page that each query sees, never empty.
    pub(crate) seen: &'a [Range<usize>],
    /// `[queries, v_dim + 2]`: weighted values, maximum, sum.
    pub(crate) out: &'a mut [f32],
}

/// Rows of one sequence that a task takes together: enough to share a page's conversion.
const BLOCK_ROWS: usize = 32;
/// Floats of the queries and parts of such rows, about: heads of many hundred elements would leave the cache.
const BLOCK_FLOATS: usize = 1 << 18;

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
    /// Where shapes disagree, a row's position is past its cache, or it sees a position that its cache has forgotten.
    pub fn attend(
        &self,
        scratch: &mut AttnScratch,
        params: &AttnParams<'_>,
        q: &[f32],
        rows: &[AttnRow<'_>],
        out: &mut [f32],
    ) {
        let Some(first) = rows.first() else { return };
        let (k_dim, values, n_kv) = (first.kv.k_dim, first.kv.values, first.kv.n_kv_heads());
        let v_dim = values.dim();
        let n_heads = params.n_heads;
        assert!(
            n_heads.is_multiple_of(n_kv) && q.len() == rows.len() * n_heads * k_dim,
            "queries of the wrong shape"
        );
        assert_eq!(out.len(), rows.len() * n_heads * v_dim, "attention output of the wrong shape");
        assert!(params.sinks.is_none_or(|s| s.len() == n_heads), "sinks of the wrong shape");
        for row in rows {
            assert!(row.position < row.kv.capacity(), "a row's position is past its cache");
            assert!(
                first_seen(params, row.position) >= row.kv.oldest(),
                "a row sees a position that its cache has forgotten"
            );
            assert!(
                row.kv.k_dim == k_dim && row.kv.values == values && row.kv.n_kv_heads() == n_kv,
                "caches differ"
            );
        }
        let (group, part_len) = (n_heads / n_kv, v_dim + 2);
        let call = Call {
            cpu: self,
            params,
            q,
            rows,
            blocks: same_cache_blocks(rows, block_rows(group, k_dim, part_len)),
            n_kv,
            group,
            part_len,
            out: SharedMut::new(out),
        };
        if call.blocks.len() * n_kv >= 2 * self.threads() || self.threads() == 1 {
            call.blocks_in_parallel();
        } else {
            call.pages_in_parallel(scratch);
        }
    }
}

/// Runs of rows; those of a token in decoding need no memory of the system.
type Blocks = SmallVec<[Range<usize>; 8]>;

/// One call of [`Cpu::attend`].
struct Call<'a> {
    cpu: &'a Cpu,
    params: &'a AttnParams<'a>,
    q: &'a [f32],
    rows: &'a [AttnRow<'a>],
    /// Rows that are taken together.
    blocks: Blocks,
    n_kv: usize,
    /// Query heads that share a KV head.
    group: usize,
    /// Floats of a query's part: its values, maximum and sum.
    part_len: usize,
    out: SharedMut<f32>,
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
                for (query, total) in total.chunks_exact(self.part_len).enumerate() {
                    self.finish(total, block, head, query);
                }
                b.total = total;
            });
        });
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
        let (k_dim, v_dim) = (kv.key_len(), kv.values.dim());
        let latent = matches!(kv.values, Values::OfKeys(_));
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
                let at = (row * self.params.n_heads + head * self.group + g) * kv.k_dim;
                b.q.extend(self.q[at..at + kv.k_dim].iter().map(|x| x * self.params.scale));
                b.q.resize((b.who.len() + 1) * k_dim, 0.0);
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
            widen(self.cpu.isa, k, k32);
            widen(self.cpu.isa, v, v32);
            data = PageData::F32 { k: k32, v: v32 };
        }
        let mut job = PageJob { page: data, k_dim, v_dim, latent, q: &b.q, seen: &b.seen, out: &mut b.part };
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

    /// Divides a query's total by its sum, the sink's share included, and stores it.
    fn finish(&self, total: &[f32], block: &Range<usize>, head: usize, query: usize) {
        let v_dim = self.part_len - 2;
        let (row, query_head) = (block.start + query / self.group, head * self.group + query % self.group);
        // SAFETY: a (row, head) belongs to one task.
        let out = unsafe { self.out.slice((row * self.params.n_heads + query_head) * v_dim, v_dim) };
        let (maximum, sum) = (total[v_dim], total[v_dim + 1]);
        let factor = match self.params.sinks.map(|s| s[query_head]) {
            None => 1.0 / sum,
            Some(sink) if sink > maximum => {
                let old = scalar::exp(maximum - sink);
                old / (sum * old + 1.0)
            }
            Some(sink) => 1.0 / (sum + scalar::exp(sink - maximum)),
        };
        out.iter_mut().zip(total).for_each(|(o, t)| *o = t * factor);
    }
}

/// Rows that are taken together where `group` query heads share a KV head.
fn block_rows(group: usize, k_dim: usize, part_len: usize) -> usize {
    (BLOCK_FLOATS / (group * (k_dim + 2 * part_len)).max(1)).clamp(1, BLOCK_ROWS)
}

/// The first position that a row at `position` sees.
fn first_seen(params: &AttnParams<'_>, position: usize) -> usize {
    params.window.map_or(0, |w| (position + 1).saturating_sub(w))
}

/// Pages that any of `rows` sees.
fn page_range(params: &AttnParams<'_>, rows: &[AttnRow<'_>]) -> Range<usize> {
    let from = rows.iter().map(|r| first_seen(params, r.position)).min().unwrap_or(0);
    let to = rows.iter().map(|r| r.position).max().unwrap_or(0);
    from / PAGE..to / PAGE + 1
}

/// Cuts `rows` into runs on the same cache, of at most `most`.
fn same_cache_blocks(rows: &[AttnRow<'_>], most: usize) -> Blocks {
    let mut blocks = Blocks::new();
    for (i, row) in rows.iter().enumerate() {
        match blocks.last_mut() {
            Some(last) if last.len() < most && std::ptr::eq(rows[last.start].kv, row.kv) => {
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

/// Converts the bits of f16 numbers.
fn widen(isa: Isa, from: &[u16], to: &mut [f32]) {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this set is chosen only where the processor has it.
        Isa::Avx2 => unsafe { crate::avx2::attention::widen(from, to) },
        _ => from.reinterpret_cast::<half::f16>().convert_to_f32_slice(to),
    }
}
