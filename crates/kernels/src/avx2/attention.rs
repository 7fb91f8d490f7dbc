//! One page of attention for several queries, as its scalar twin: lanes are positions for the scores (elements of the head
//! where keys lie in rows), elements of the head for the values.

use super::math::{exp, sum8};
use crate::attention::PageJob;
use crate::kv::{PAGE, PageData};
use core::arch::x86_64::*;

/// How eight cached elements are loaded.
trait Cached: Copy {
    /// # Safety
    /// `p` points to eight readable elements.
    unsafe fn load(p: *const Self) -> __m256;
}

impl Cached for f32 {
    #[inline(always)]
    unsafe fn load(p: *const Self) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_loadu_ps(p) }
    }
}

/// Bits of an f16.
impl Cached for u16 {
    #[inline(always)]
    unsafe fn load(p: *const Self) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(p.cast())) }
    }
}

/// Runs one job.
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) fn page(job: &mut PageJob<'_>) {
    match job.page {
        PageData::F16 { k, v } => typed(k, if job.latent { k } else { v }, job),
        PageData::F32 { k, v } => typed(k, if job.latent { k } else { v }, job),
    }
}

/// Converts f16 bits: exactly, so a page that was converted gives the bits of one that is read as it is.
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) fn widen(from: &[u16], to: &mut [f32]) {
    assert_eq!(from.len(), to.len());
    let (chunks, tail) = from.as_chunks::<8>();
    let (wide, wide_tail) = to.as_chunks_mut::<8>();
    for (c, w) in chunks.iter().zip(wide) {
        // SAFETY: eight elements each.
        unsafe { _mm256_storeu_ps(w.as_mut_ptr(), u16::load(c.as_ptr())) };
    }
    for (h, w) in tail.iter().zip(wide_tail) {
        *w = half::f16::from_bits(*h).to_f32();
    }
}

/// As [`crate::scalar::merge_parts`].
#[target_feature(enable = "avx2,fma")]
pub(crate) fn merge(total: &mut [f32], part: &[f32]) {
    crate::scalar::merge_parts(total, part);
}

type Seen = std::ops::Range<usize>;

/// The page's elements and how they lie.
struct Cache<'a, E> {
    k: &'a [E],
    v: &'a [E],
    k_dim: usize,
    v_dim: usize,
    /// Elements from one position's value to the next one's.
    v_stride: usize,
    latent: bool,
}

#[target_feature(enable = "avx2,fma,f16c")]
fn typed<E: Cached>(k: &[E], v: &[E], job: &mut PageJob<'_>) {
    let PageJob { k_dim, v_dim, latent, .. } = *job;
    let v_stride = if latent { k_dim } else { v_dim };
    assert!(k.len() == PAGE * k_dim && v.len() == PAGE * v_stride && job.q.len() == job.seen.len() * k_dim);
    assert!(!latent || (k_dim.is_multiple_of(8) && v_dim <= k_dim));
    let cache = Cache { k, v, k_dim, v_dim, v_stride, latent };
    let mut at = 0;
    while at < job.seen.len() {
        let n = (job.seen.len() - at).min(4);
        let q = &job.q[at * k_dim..(at + n) * k_dim];
        let seen = &job.seen[at..at + n];
        let out = &mut job.out[at * (v_dim + 2)..(at + n) * (v_dim + 2)];
        match n {
            4 => queries::<E, 4>(&cache, q, seen, out),
            3 => queries::<E, 3>(&cache, q, seen, out),
            2 => queries::<E, 2>(&cache, q, seen, out),
            _ => queries::<E, 1>(&cache, q, seen, out),
        }
        at += n;
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn queries<E: Cached, const N: usize>(cache: &Cache<'_, E>, q: &[f32], seen: &[Seen], out: &mut [f32]) {
    let Cache { k, k_dim, v_dim, latent, .. } = *cache;
    assert!(seen.iter().all(|s| s.start < s.end && s.end <= PAGE) && seen.len() == N && q.len() == N * k_dim);
    let mut weights = [[f32::NEG_INFINITY; PAGE]; N];
    let start = seen.iter().map(|s| s.start).min().unwrap_or(0);
    let end = seen.iter().map(|s| s.end).max().unwrap_or(0);
    let (first, last) = (start / 8, end.div_ceil(8));
    if latent {
        // SAFETY: the page holds the positions before `end`, each of `k_dim` elements, a multiple of eight.
        unsafe { row_scores(k, k_dim, q, start..end, &mut weights) };
    } else {
        // SAFETY: the page holds the blocks before `last`.
        unsafe { block_scores(k, k_dim, q, first..last, &mut weights) };
    }
    for ((weights, seen), out) in weights.iter_mut().zip(seen).zip(out.chunks_exact_mut(v_dim + 2)) {
        weights[first * 8..seen.start].fill(f32::NEG_INFINITY);
        weights[seen.end..last * 8].fill(f32::NEG_INFINITY);
        let range = first * 8..last * 8;
        let (chunks, _) = weights[range].as_chunks_mut::<8>();
        let mut maximum = _mm256_set1_ps(f32::NEG_INFINITY);
        for c in chunks.iter() {
            // SAFETY: eight floats. With the running value second, a NaN score is passed over here and shows in its weight.
            maximum = _mm256_max_ps(unsafe { _mm256_loadu_ps(c.as_ptr()) }, maximum);
        }
        let mut lanes = [0.0_f32; 8];
        // SAFETY: eight floats.
        unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), maximum) };
        let maximum = lanes.into_iter().fold(f32::NEG_INFINITY, f32::max);
        let mut sums = _mm256_setzero_ps();
        for c in chunks {
            // SAFETY: eight floats.
            unsafe {
                let p = exp(_mm256_sub_ps(_mm256_loadu_ps(c.as_ptr()), _mm256_set1_ps(maximum)));
                _mm256_storeu_ps(c.as_mut_ptr(), p);
                sums = _mm256_add_ps(sums, p);
            }
        }
        out[v_dim] = maximum;
        out[v_dim + 1] = sum8(sums);
    }
    weighted_values(cache, &weights, seen, out);
}

/// Scores of the positions of `blocks`, for keys in `[8 blocks, k_dim, 8 positions]`.
///
/// # Safety
/// `k` holds these blocks, and `q` `N` queries.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn block_scores<E: Cached, const N: usize>(
    k: &[E],
    k_dim: usize,
    q: &[f32],
    blocks: Seen,
    weights: &mut [[f32; PAGE]; N],
) {
    let mut block = blocks.start;
    while block < blocks.end {
        // SAFETY: the caller's promise; the arm says how many blocks are left.
        block += unsafe {
            match blocks.end - block {
                4.. if N <= 2 => some_scores::<E, N, 4>(k, k_dim, q, block, weights),
                2.. => some_scores::<E, N, 2>(k, k_dim, q, block, weights),
                _ => some_scores::<E, N, 1>(k, k_dim, q, block, weights),
            }
        };
    }
}

/// Scores of `B` blocks from `block` on; gives `B`. Eight chains keep both multipliers busy, and more would spill.
///
/// # Safety
/// `k` holds these blocks, and `q` `N` queries.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn some_scores<E: Cached, const N: usize, const B: usize>(
    k: &[E],
    k_dim: usize,
    q: &[f32],
    block: usize,
    weights: &mut [[f32; PAGE]; N],
) -> usize {
    let mut acc = [[_mm256_setzero_ps(); B]; N];
    // SAFETY: the caller's promise.
    unsafe {
        let blocks: [*const E; B] = std::array::from_fn(|b| k.as_ptr().add((block + b) * k_dim * 8));
        for d in 0..k_dim {
            let k = blocks.map(|b| E::load(b.add(d * 8)));
            for (i, acc) in acc.iter_mut().enumerate() {
                let q = _mm256_set1_ps(*q.as_ptr().add(i * k_dim + d));
                for (acc, k) in acc.iter_mut().zip(k) {
                    *acc = _mm256_fmadd_ps(q, k, *acc);
                }
            }
        }
        for (weights, acc) in weights.iter_mut().zip(&acc) {
            for (b, acc) in acc.iter().enumerate() {
                _mm256_storeu_ps(weights.as_mut_ptr().add((block + b) * 8), *acc);
            }
        }
    }
    B
}

/// Scores of `positions`, for keys in `[64 positions, k_dim]`.
///
/// # Safety
/// `k` holds these positions, `q` `N` queries, and `k_dim` is a multiple of eight.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn row_scores<E: Cached, const N: usize>(
    k: &[E],
    k_dim: usize,
    q: &[f32],
    positions: Seen,
    weights: &mut [[f32; PAGE]; N],
) {
    let mut position = positions.start;
    while position < positions.end {
        // Three positions by four queries fill the registers. Past the end the last position is computed again.
        let at: [usize; 3] = std::array::from_fn(|j| (position + j).min(positions.end - 1));
        let mut acc = [[_mm256_setzero_ps(); 3]; N];
        // SAFETY: the caller's promise.
        unsafe {
            let rows = at.map(|p| k.as_ptr().add(p * k_dim));
            let mut d = 0;
            while d < k_dim {
                let k = rows.map(|row| E::load(row.add(d)));
                for (i, acc) in acc.iter_mut().enumerate() {
                    let q = _mm256_loadu_ps(q.as_ptr().add(i * k_dim + d));
                    for (acc, k) in acc.iter_mut().zip(k) {
                        *acc = _mm256_fmadd_ps(q, k, *acc);
                    }
                }
                d += 8;
            }
        }
        for (weights, acc) in weights.iter_mut().zip(acc) {
            for (at, acc) in at.into_iter().zip(acc) {
                weights[at] = sum8(acc);
            }
        }
        position += 3;
    }
}

/// The weighted sums of the values.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn weighted_values<E: Cached, const N: usize>(
    cache: &Cache<'_, E>,
    weights: &[[f32; PAGE]; N],
    seen: &[Seen],
    out: &mut [f32],
) {
    let Cache { v, v_dim, v_stride, .. } = *cache;
    let mut d = 0;
    while d + 8 <= v_dim {
        // SAFETY: the arm says how many elements are left.
        d += unsafe {
            match v_dim - d {
                32.. if N <= 2 => some_values::<E, N, 4>(cache, d, weights, seen, out),
                16.. => some_values::<E, N, 2>(cache, d, weights, seen, out),
                _ => some_values::<E, N, 1>(cache, d, weights, seen, out),
            }
        };
    }
    let len = v_dim - d;
    if len == 0 {
        return;
    }
    for (i, weights) in weights.iter().enumerate() {
        let mut acc = _mm256_setzero_ps();
        for p in seen[i].clone() {
            let mut padded = [v[p * v_stride + d]; 8];
            padded[..len].copy_from_slice(&v[p * v_stride + d..][..len]);
            // SAFETY: eight elements.
            acc = unsafe { _mm256_fmadd_ps(_mm256_set1_ps(weights[p]), E::load(padded.as_ptr()), acc) };
        }
        super::store(acc, &mut out[i * (v_dim + 2) + d..][..len]);
    }
}

/// The weighted sums of `8 · W` elements from `d` on; gives their number.
///
/// # Safety
/// Values have as many elements.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn some_values<E: Cached, const N: usize, const W: usize>(
    cache: &Cache<'_, E>,
    d: usize,
    weights: &[[f32; PAGE]; N],
    seen: &[Seen],
    out: &mut [f32],
) -> usize {
    let Cache { v, v_dim, v_stride, .. } = *cache;
    // Positions that every query sees run together; ragged ends run alone. Each query's order stays ascending.
    let joint =
        seen.iter().map(|s| s.start).max().unwrap_or(0)..seen.iter().map(|s| s.end).min().unwrap_or(0);
    let joint = if joint.start < joint.end { joint } else { PAGE..PAGE };
    // SAFETY: the caller's promise; `v` holds all positions.
    unsafe {
        let v = v.as_ptr().add(d);
        let mut acc = [[_mm256_setzero_ps(); W]; N];
        for (i, acc) in acc.iter_mut().enumerate() {
            let before = seen[i].start..joint.start.min(seen[i].end);
            accumulate(v, v_stride, &weights[i], before, acc);
        }
        for p in joint.clone() {
            let row = v.add(p * v_stride);
            let v: [__m256; W] = std::array::from_fn(|j| E::load(row.add(8 * j)));
            for (acc, weights) in acc.iter_mut().zip(weights) {
                let w = _mm256_set1_ps(*weights.get_unchecked(p));
                for (acc, v) in acc.iter_mut().zip(v) {
                    *acc = _mm256_fmadd_ps(w, v, *acc);
                }
            }
        }
        for (i, acc) in acc.iter_mut().enumerate() {
            accumulate(v, v_stride, &weights[i], joint.end..seen[i].end, acc);
            let out = &mut out[i * (v_dim + 2) + d..][..8 * W];
            for (j, acc) in acc.iter().enumerate() {
                _mm256_storeu_ps(out.as_mut_ptr().add(8 * j), *acc);
            }
        }
    }
    8 * W
}

/// Adds `weights[p] · v[p]` for the positions of `range`.
///
/// # Safety
/// `v + p · v_stride` points to `8 · W` readable elements for each `p` of `range`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn accumulate<E: Cached, const W: usize>(
    v: *const E,
    v_stride: usize,
    weights: &[f32; PAGE],
    range: Seen,
    acc: &mut [__m256; W],
) {
    for p in range {
        let w = _mm256_set1_ps(weights[p]);
        for (j, acc) in acc.iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            *acc = _mm256_fmadd_ps(w, unsafe { E::load(v.add(p * v_stride + 8 * j)) }, *acc);
        }
    }
}
