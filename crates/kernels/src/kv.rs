//! Cached keys and values of one layer of one sequence.
//!
//! Positions are kept in pages of 64, cut at absolute multiples of 64 whatever was forgotten. In a page each KV head has
//! its keys as `[8 blocks, k_dim, 8 positions]`, so that eight scores are eight lanes and no transposition is needed, then
//! its values as `[64 positions, v_dim]`. Where the values are part of the keys there is only `[64 positions, k_dim]`, each
//! row padded to a multiple of eight: the one layout that both products read along their lanes. Pages are added as
//! positions are written and leave when no later row sees them: memory follows use, not the context's limit.
//!
//! A clone shares its pages with the original. Invariant: a page that somebody else holds is never written; who writes to it
//! first takes a copy.

use crate::cpu::Cpu;
use crate::pool::SharedMut;
use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;

/// Positions in a page. Attention cuts a context at multiples of it.
pub(crate) const PAGE: usize = 64;

/// The number format of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KvKind {
    /// Half precision.
    #[default]
    F16,
    /// Single precision.
    F32,
}

impl KvKind {
    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            Self::F16 => 2,
            Self::F32 => 4,
        }
    }
}

/// Where a cache keeps its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Beside the keys, of this many elements.
    Own(usize),
    /// In the keys: this many leading elements of a key are its value, as in the absorbed form of latent attention
    /// ("A Strong, Economical, and Efficient Mixture-of-Experts Language Model", 2024, section 2.1).
    OfKeys(usize),
}

impl Values {
    /// Elements of a value.
    pub fn dim(self) -> usize {
        match self {
            Self::Own(dim) | Self::OfKeys(dim) => dim,
        }
    }

    /// Elements that a head's keys of `k_dim` and its values take in a position.
    fn position_len(self, k_dim: usize) -> usize {
        match self {
            Self::Own(v_dim) => k_dim + v_dim,
            Self::OfKeys(_) => k_dim.next_multiple_of(8),
        }
    }
}

/// Consecutive pages, and those that wait for their next use, which are nobody else's.
#[derive(Default)]
struct Held<T> {
    pages: VecDeque<Arc<[T]>>,
    spare: Vec<Arc<[T]>>,
}

impl<T: Copy + Default> Held<T> {
    /// Puts the `count` oldest pages among the spare ones, as far as nobody else holds them.
    fn forget(&mut self, count: usize) {
        let forgotten = self.pages.drain(..count.min(self.pages.len()));
        self.spare.extend(forgotten.filter(|page| Arc::strong_count(page) == 1));
    }

    /// Keeps the first `count` pages and gives the memory of the others back.
    fn truncate(&mut self, count: usize) {
        self.pages.truncate(count);
        self.spare.clear();
    }

    fn grow(&mut self, count: usize, page_len: usize) {
        while self.pages.len() < count {
            let fresh = || std::iter::repeat_n(T::default(), page_len).collect();
            self.pages.push_back(self.spare.pop().unwrap_or_else(fresh));
        }
    }

    /// Calls `visit(address, bytes)` for each page.
    fn each(&self, visit: &mut dyn FnMut(usize, usize)) {
        for page in &self.pages {
            visit(page.as_ptr().addr(), size_of_val::<[T]>(page));
        }
    }
}

/// Shares the pages; the spare ones stay with the original.
impl<T> Clone for Held<T> {
    fn clone(&self) -> Self {
        Self { pages: self.pages.clone(), spare: Vec::new() }
    }
}

#[derive(Clone)]
enum Pages {
    F16(Held<u16>),
    F32(Held<f32>),
}

/// Keys and values of one KV head in one page. `v` is empty where the values are part of the keys.
#[derive(Clone, Copy)]
pub(crate) enum PageData<'a> {
    F16 { k: &'a [u16], v: &'a [u16] },
    F32 { k: &'a [f32], v: &'a [f32] },
}

/// Keys and values of one layer of one sequence. A clone shares what is held until one of both writes to it.
#[derive(Clone)]
pub struct KvLayer {
    n_kv_heads: usize,
    pub(crate) k_dim: usize,
    pub(crate) values: Values,
    oldest: usize,
    pages: Pages,
}

impl KvLayer {
    /// An empty cache of `n_kv_heads` heads with keys of `k_dim` elements.
    ///
    /// # Panics
    /// Where values are part of keys that are shorter.
    pub fn new(kind: KvKind, n_kv_heads: usize, k_dim: usize, values: Values) -> Self {
        assert!(
            matches!(values, Values::Own(_)) || values.dim() <= k_dim,
            "values are longer than the keys that hold them"
        );
        let pages = match kind {
            KvKind::F16 => Pages::F16(Held::default()),
            KvKind::F32 => Pages::F32(Held::default()),
        };
        Self { n_kv_heads, k_dim, values, oldest: 0, pages }
    }

    /// Elements of a value.
    pub fn v_dim(&self) -> usize {
        self.values.dim()
    }

    /// Heads that have keys and values of their own.
    pub fn n_kv_heads(&self) -> usize {
        self.n_kv_heads
    }

    /// The most positions that a cache holds of `positions` written ones, in whole pages, when no more than `rows` are
    /// written at once and what lies before the `window` of the next row is forgotten before each writing.
    pub fn held_at_most(positions: usize, window: Option<usize>, rows: usize) -> usize {
        let all = positions.next_multiple_of(PAGE);
        window.map_or(all, |w| all.min((w.min(positions) + rows).next_multiple_of(PAGE) + PAGE))
    }

    /// Bytes that a cache takes for `positions` held positions.
    pub fn bytes_for(
        kind: KvKind,
        n_kv_heads: usize,
        k_dim: usize,
        values: Values,
        positions: usize,
    ) -> usize {
        positions.next_multiple_of(PAGE) * n_kv_heads * values.position_len(k_dim) * kind.bytes()
    }

    /// Bytes held now, those of pages that wait for their next use and of shared ones included.
    pub fn bytes(&self) -> usize {
        let (pages, kind) = match &self.pages {
            Pages::F16(held) => (held.pages.len() + held.spare.len(), KvKind::F16),
            Pages::F32(held) => (held.pages.len() + held.spare.len(), KvKind::F32),
        };
        pages * self.page_len() * kind.bytes()
    }

    /// Calls `visit(address, bytes)` for each page in use. Caches that share a page give the same address.
    pub fn each_page(&self, visit: &mut dyn FnMut(usize, usize)) {
        match &self.pages {
            Pages::F16(held) => held.each(visit),
            Pages::F32(held) => held.each(visit),
        }
    }

    /// Drops every page that lies wholly before `position`, which later writings then use again.
    pub fn forget_before(&mut self, position: usize) {
        let cut = position / PAGE * PAGE;
        if cut <= self.oldest {
            return;
        }
        let count = cut / PAGE - self.first_page();
        match &mut self.pages {
            Pages::F16(held) => held.forget(count),
            Pages::F32(held) => held.forget(count),
        }
        self.oldest = cut;
    }

    /// The first position that is still held. A row that sees an older one can't be computed.
    pub fn oldest(&self) -> usize {
        self.oldest
    }

    /// Rewinds the end to the first `positions` positions and frees the pages past them. Before [`KvLayer::oldest`]
    /// nothing is left, and `positions` becomes the oldest: only from 0 can a windowed layer go on from there.
    pub fn truncate(&mut self, positions: usize) {
        let keep = if positions <= self.oldest { 0 } else { positions.div_ceil(PAGE) - self.first_page() };
        self.oldest = self.oldest.min(positions);
        match &mut self.pages {
            Pages::F16(held) => held.truncate(keep),
            Pages::F32(held) => held.truncate(keep),
        }
    }

    /// The position past the last one for which there is memory.
    pub fn capacity(&self) -> usize {
        let pages = match &self.pages {
            Pages::F16(held) => held.pages.len(),
            Pages::F32(held) => held.pages.len(),
        };
        PAGE * (self.first_page() + pages)
    }

    /// Number of the oldest page, counted from position 0.
    fn first_page(&self) -> usize {
        self.oldest / PAGE
    }

    /// Elements of a key as it lies in memory, and of a query that meets it.
    pub(crate) fn key_len(&self) -> usize {
        match self.values {
            Values::Own(_) => self.k_dim,
            Values::OfKeys(_) => self.k_dim.next_multiple_of(8),
        }
    }

    /// Elements of one head in a page.
    fn head_len(&self) -> usize {
        PAGE * self.values.position_len(self.k_dim)
    }

    fn page_len(&self) -> usize {
        self.n_kv_heads * self.head_len()
    }

    /// Page `page`, counted from position 0, of KV head `head`.
    pub(crate) fn page(&self, page: usize, head: usize) -> PageData<'_> {
        let start = head * self.head_len();
        let (mid, end) = (start + PAGE * self.key_len(), start + self.head_len());
        let page = page - self.first_page();
        match &self.pages {
            Pages::F16(held) => {
                PageData::F16 { k: &held.pages[page][start..mid], v: &held.pages[page][mid..end] }
            }
            Pages::F32(held) => {
                PageData::F32 { k: &held.pages[page][start..mid], v: &held.pages[page][mid..end] }
            }
        }
    }
}

/// An element as a cache keeps it.
trait Stored: Copy + Default {
    fn convert(from: &[f32], to: &mut [Self]);
}

/// Bits of an f16.
impl Stored for u16 {
    fn convert(from: &[f32], to: &mut [Self]) {
        to.reinterpret_cast_mut::<f16>().convert_from_f32_slice(from);
    }
}

impl Stored for f32 {
    fn convert(from: &[f32], to: &mut [Self]) {
        to.copy_from_slice(from);
    }
}

/// Stores position `at` of a page of one head, whose elements are `part`.
fn put<T: Stored>(part: &mut [T], at: usize, k: &[f32], v: &[f32], values: Values) {
    let k_dim = k.len();
    if let Values::OfKeys(_) = values {
        let row = &mut part[at * k_dim.next_multiple_of(8)..][..k_dim];
        return T::convert(k, row);
    }
    let (keys, values) = part.split_at_mut(PAGE * k_dim);
    for (chunk, k) in k.chunks(32).enumerate() {
        let mut converted = [T::default(); 32];
        T::convert(k, &mut converted[..k.len()]);
        for (d, element) in converted[..k.len()].iter().enumerate() {
            keys[(at / 8 * k_dim + chunk * 32 + d) * 8 + at % 8] = *element;
        }
    }
    T::convert(v, &mut values[at * v.len()..(at + 1) * v.len()]);
}

/// Consecutive rows that go into the cache: `k` `[rows, heads, k_dim]`, `v` `[rows, heads, v_dim]` or empty.
struct Writing<'a> {
    /// Position of the first row.
    start: usize,
    rows: usize,
    heads: usize,
    k: &'a [f32],
    v: &'a [f32],
    values: Values,
    /// Elements of one head in a page.
    head_len: usize,
}

impl Writing<'_> {
    /// Writes into `held`, whose first page is number `base`.
    fn run<T: Stored + Send>(&self, cpu: &Cpu, held: &mut Held<T>, base: usize) {
        let (first, end) = (self.start / PAGE, self.start + self.rows);
        held.grow(end.div_ceil(PAGE) - base, self.heads * self.head_len);
        let pages: SmallVec<[_; 8]> =
            held.pages.range_mut(first - base..).map(|p| SharedMut::new(Arc::make_mut(p))).collect();
        let row_len = |x: &[f32]| x.len() / (self.rows * self.heads);
        let (k_len, v_len) = (row_len(self.k), row_len(self.v));
        // One task a (page, head): its part of the page is contiguous and nobody else's.
        let task = |i: usize| {
            let (page, head) = (i / self.heads, i % self.heads);
            // SAFETY: each (page, head) belongs to one task.
            let part = unsafe { pages[page].slice(head * self.head_len, self.head_len) };
            let from = ((first + page) * PAGE).max(self.start);
            for position in from..((first + page + 1) * PAGE).min(end) {
                let at = (position - self.start) * self.heads + head;
                let (k, v) = (&self.k[at * k_len..][..k_len], &self.v[at * v_len..][..v_len]);
                put(part, position % PAGE, k, v, self.values);
            }
        };
        let count = end.div_ceil(PAGE) - first;
        if self.rows < 8 {
            (0..count * self.heads).for_each(task);
        } else {
            cpu.pool.run(count * self.heads, &task);
        }
    }
}

impl Cpu {
    /// Writes consecutive positions from `start` on: `k` `[rows, n_kv_heads, k_dim]`, `v` `[rows, n_kv_heads, v_dim]`, or
    /// empty where the values are part of the keys.
    ///
    /// # Panics
    /// Where `k` and `v` have different numbers of rows, or `start` is before [`KvLayer::oldest`].
    pub fn kv_write(&self, layer: &mut KvLayer, start: usize, k: &[f32], v: &[f32]) {
        let heads = layer.n_kv_heads;
        let rows = k.len() / (heads * layer.k_dim);
        let v_dim = if let Values::Own(dim) = layer.values { dim } else { 0 };
        assert!(
            k.len() == rows * heads * layer.k_dim && v.len() == rows * heads * v_dim,
            "keys and values of the wrong shape"
        );
        assert!(start >= layer.oldest, "position {start} is before the oldest that the cache holds");
        if rows == 0 {
            return;
        }
        let (values, head_len, base) = (layer.values, layer.head_len(), layer.first_page());
        let writing = Writing { start, rows, heads, k, v, values, head_len };
        match &mut layer.pages {
            Pages::F16(held) => writing.run(self, held, base),
            Pages::F32(held) => writing.run(self, held, base),
        }
    }
}
