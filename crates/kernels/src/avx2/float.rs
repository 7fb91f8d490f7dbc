//! Products with F32, F16 and BF16 weights: eight lanes over the inputs, one register an output.

use super::math::sum8;
use crate::matrix::Mat;
use crate::pool::SharedMut;
use core::arch::x86_64::*;
use std::ops::Range;

/// A float format: how eight consecutive weights are loaded.
pub(super) trait Element {
    const BYTES: usize;
    /// # Safety
    /// `p` points to eight readable elements, and the processor has AVX2 and F16C.
    unsafe fn load(p: *const u8) -> __m256;
}

pub(super) struct F32;
pub(super) struct F16;
pub(super) struct Bf16;

impl Element for F32 {
    const BYTES: usize = 4;
    #[inline(always)]
    unsafe fn load(p: *const u8) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_loadu_ps(p.cast()) }
    }
}

impl Element for F16 {
    const BYTES: usize = 2;
    #[inline(always)]
    unsafe fn load(p: *const u8) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(p.cast())) }
    }
}

impl Element for Bf16 {
    const BYTES: usize = 2;
    #[inline(always)]
    unsafe fn load(p: *const u8) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe {
            let wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(p.cast()));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(wide))
        }
    }
}

/// # Safety
/// As [`super::columns`].
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn columns<E: Element>(
    w: &Mat<'_>,
    x: &[f32],
    m: usize,
    range: Range<usize>,
    out: &SharedMut<f32>,
) {
    let mut column = range.start;
    while column < range.end {
        let columns = (range.end - column).min(4);
        let mut row = 0;
        while row < m {
            let rows = (m - row).min(3);
            // A short tile repeats its last row or column and drops the copy's results.
            let w_rows: [&[u8]; 4] = std::array::from_fn(|c| w.row(column + c.min(columns - 1)));
            let x_rows: [&[f32]; 3] = std::array::from_fn(|r| {
                let r = row + r.min(rows - 1);
                &x[r * w.k..(r + 1) * w.k]
            });
            let sums = if rows == 1 {
                let one = tile::<E, 1>(&w_rows, &[x_rows[0]]);
                [one[0], [0.0; 4], [0.0; 4]]
            } else {
                tile::<E, 3>(&w_rows, &x_rows)
            };
            for (r, sums) in sums.iter().take(rows).enumerate() {
                // SAFETY: the caller's promise.
                let out = unsafe { out.slice((row + r) * w.n + column, columns) };
                out.copy_from_slice(&sums[..columns]);
            }
            row += rows;
        }
        column += columns;
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn tile<E: Element, const R: usize>(w: &[&[u8]; 4], x: &[&[f32]; R]) -> [[f32; 4]; R] {
    let k = x[0].len();
    assert!(w.iter().all(|w| w.len() == k * E::BYTES) && x.iter().all(|x| x.len() == k));
    let mut acc = [[_mm256_setzero_ps(); 4]; R];
    let whole = k / 8 * 8;
    for at in (0..whole).step_by(8) {
        // SAFETY: `at + 8 <= k`, the length of every row.
        unsafe {
            let w: [__m256; 4] = std::array::from_fn(|c| E::load(w[c].as_ptr().add(at * E::BYTES)));
            for (acc, x) in acc.iter_mut().zip(x) {
                let x = _mm256_loadu_ps(x.as_ptr().add(at));
                for (acc, w) in acc.iter_mut().zip(&w) {
                    *acc = _mm256_fmadd_ps(*w, x, *acc);
                }
            }
        }
    }
    if whole < k {
        // Zeros past the end: they add nothing to the chains that the tail does not reach.
        let mut w_tail = [[0_u8; 32]; 4];
        for (tail, w) in w_tail.iter_mut().zip(w) {
            tail[..(k - whole) * E::BYTES].copy_from_slice(&w[whole * E::BYTES..]);
        }
        for (acc, x) in acc.iter_mut().zip(x) {
            let mut x_tail = [0.0_f32; 8];
            x_tail[..k - whole].copy_from_slice(&x[whole..]);
            for (acc, w) in acc.iter_mut().zip(&w_tail) {
                // SAFETY: eight elements each.
                *acc =
                    unsafe { _mm256_fmadd_ps(E::load(w.as_ptr()), _mm256_loadu_ps(x_tail.as_ptr()), *acc) };
            }
        }
    }
    acc.map(|acc| acc.map(|v| sum8(v)))
}
