//! Cached keys and values of one layer of one sequence.
//!
//! Positions are kept in pages of 64. In a page each KV head has its keys as `[8 blocks, k_dim, 8 positions]`, so
//! that eight scores are eight lanes and no transposition is needed, then its values as `[64 positions, v_dim]`. Pages
//! are added as positions are written: memory follows use, not the context's limit.

use crate::cpu::Cpu;
use crate::pool::SharedMut;
use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};

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

enum Pages {
    F16(Vec<Box<[u16]>>),
    F32(Vec<Box<[f32]>>),
}

/// Keys and values of one KV head in one page.
#[derive(Clone, Copy)]
pub(crate) enum PageData<'a> {
    F16 { k: &'a [u16], v: &'a [u16] },
    F32 { k: &'a [f32], v: &'a [f32] },
}

/// Keys and values of one layer of one sequence.
pub struct KvLayer {
    n_kv_heads: usize,
    pub(crate) k_dim: usize,
    pub(crate) v_dim: usize,
    pages: Pages,
}

impl KvLayer {
    /// An empty cache of `n_kv_heads` heads with keys of `k_dim` and values of `v_dim` elements.
    pub fn new(kind: KvKind, n_kv_heads: usize, k_dim: usize, v_dim: usize) -> Self {
        let pages = match kind {
            KvKind::F16 => Pages::F16(Vec::new()),
            KvKind::F32 => Pages::F32(Vec::new()),
        };
        Self { n_kv_heads, k_dim, v_dim, pages }
    }

    /// Heads that have keys and values of their own.
    pub fn n_kv_heads(&self) -> usize {
        self.n_kv_heads
    }

    /// Bytes that a cache of `positions` positions takes.
    pub fn bytes_for(kind: KvKind, n_kv_heads: usize, k_dim: usize, v_dim: usize, positions: usize) -> usize {
        positions.next_multiple_of(PAGE) * n_kv_heads * (k_dim + v_dim) * kind.bytes()
    }

    /// Frees the pages past the first `positions` positions.
    pub fn truncate(&mut self, positions: usize) {
        let keep = positions.div_ceil(PAGE);
        match &mut self.pages {
            Pages::F16(p) => p.truncate(keep),
            Pages::F32(p) => p.truncate(keep),
        }
    }

    /// Positions for which there is memory.
    pub fn capacity(&self) -> usize {
        PAGE * match &self.pages {
            Pages::F16(p) => p.len(),
            Pages::F32(p) => p.len(),
        }
    }

    /// Elements of one head in a page.
    fn head_len(&self) -> usize {
        PAGE * (self.k_dim + self.v_dim)
    }

    pub(crate) fn page(&self, page: usize, head: usize) -> PageData<'_> {
        let start = head * self.head_len();
        let (mid, end) = (start + PAGE * self.k_dim, start + self.head_len());
        match &self.pages {
            Pages::F16(p) => PageData::F16 { k: &p[page][start..mid], v: &p[page][mid..end] },
            Pages::F32(p) => PageData::F32 { k: &p[page][start..mid], v: &p[page][mid..end] },
        }
    }

    fn grow(&mut self, positions: usize) {
        let (need, len) = (positions.div_ceil(PAGE), self.n_kv_heads * self.head_len());
        match &mut self.pages {
            Pages::F16(p) if p.len() < need => p.resize_with(need, || vec![0; len].into_boxed_slice()),
            Pages::F32(p) if p.len() < need => p.resize_with(need, || vec![0.0; len].into_boxed_slice()),
            _ => {}
        }
    }
}

/// Stores one position of one head: `(page, head, position in the page, k, v)`.
type Put<'a> = dyn Fn(usize, usize, usize, &[f32], &[f32]) + Sync + 'a;

impl Cpu {
    /// Writes consecutive positions from `start` on: `k` `[rows, n_kv_heads, k_dim]`, `v` `[rows, n_kv_heads, v_dim]`.
    ///
    /// # Panics
    /// Where `k` and `v` have different numbers of rows.
    pub fn kv_write(&self, layer: &mut KvLayer, start: usize, k: &[f32], v: &[f32]) {
        let (heads, k_dim, v_dim) = (layer.n_kv_heads, layer.k_dim, layer.v_dim);
        let rows = k.len() / (heads * k_dim);
        assert!(
            k.len() == rows * heads * k_dim && v.len() == rows * heads * v_dim,
            "keys and values of the wrong shape"
        );
        if rows == 0 {
            return;
        }
        layer.grow(start + rows);
        let first = start / PAGE;
        let count = (start + rows).div_ceil(PAGE) - first;
        let head_len = layer.head_len();
        let run = |put: &Put<'_>| {
            // One task a (page, head): its part of the page is contiguous and nobody else's.
            let task = |i: usize| {
                let (page, head) = (i / heads, i % heads);
                let from = ((first + page) * PAGE).max(start);
                let to = ((first + page + 1) * PAGE).min(start + rows);
                for position in from..to {
                    let row = position - start;
                    let (k, v) = (
                        &k[(row * heads + head) * k_dim..][..k_dim],
                        &v[(row * heads + head) * v_dim..][..v_dim],
                    );
                    put(page, head, position % PAGE, k, v);
                }
            };
            if rows < 8 { (0..count * heads).for_each(task) } else { self.pool.run(count * heads, &task) }
        };
        match &mut layer.pages {
            Pages::F16(pages) => {
                let pages: Vec<_> = pages[first..].iter_mut().map(|p| SharedMut::new(p)).collect();
                run(&|page, head, at, k, v| {
                    // SAFETY: each (page, head) belongs to one task.
                    let part = unsafe { pages[page].slice(head * head_len, head_len) };
                    let (keys, values) = part.split_at_mut(PAGE * k_dim);
                    for (chunk, k) in k.chunks(32).enumerate() {
                        let mut half = [f16::ZERO; 32];
                        half[..k.len()].convert_from_f32_slice(k);
                        for (d, h) in half[..k.len()].iter().enumerate() {
                            keys[(at / 8 * k_dim + chunk * 32 + d) * 8 + at % 8] = h.to_bits();
                        }
                    }
                    values[at * v_dim..(at + 1) * v_dim]
                        .reinterpret_cast_mut::<f16>()
                        .convert_from_f32_slice(v);
                });
            }
            Pages::F32(pages) => {
                let pages: Vec<_> = pages[first..].iter_mut().map(|p| SharedMut::new(p)).collect();
                run(&|page, head, at, k, v| {
                    // SAFETY: each (page, head) belongs to one task.
                    let part = unsafe { pages[page].slice(head * head_len, head_len) };
                    let (keys, values) = part.split_at_mut(PAGE * k_dim);
                    for (d, k) in k.iter().enumerate() {
                        keys[(at / 8 * k_dim + d) * 8 + at % 8] = *k;
                    }
                    values[at * v_dim..(at + 1) * v_dim].copy_from_slice(v);
                });
            }
        }
    }
}
