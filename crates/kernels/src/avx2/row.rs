//! One row of activations times quantised weights, read where they lie.
//!
//! Eight output columns share a register: their products with a block of 32 activations are reduced to eight
//! integers by one tree of shuffles, so the float part of a block is a handful of instructions for all eight.

use super::formats::{Factors, Format};
use crate::matrix::Mat;
use crate::pool::SharedMut;
use crate::quantized::{BLOCK, QuantRows};
use core::arch::x86_64::*;
use std::ops::Range;

/// Output columns `range` of the single row in `rows`.
///
/// # Safety
/// No other thread uses these columns of `out` meanwhile.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn columns<F: Format>(
    w: &Mat<'_>,
    rows: &QuantRows,
    range: Range<usize>,
    out: &SharedMut<f32>,
) {
    assert!(w.row_bytes == w.k / (F::PER * BLOCK) * F::BYTES && range.end <= w.n && rows.k == w.k);
    let mut column = range.start;
    while column < range.end {
        let columns = (range.end - column).min(8);
        // A short group repeats its last column and drops the copies' results.
        let pointers: [*const u8; 8] = std::array::from_fn(|i| w.row(column + i.min(columns - 1)).as_ptr());
        let mut sums = [0.0_f32; 8];
        // SAFETY: each pointer starts a row of `k` weights, and the sums are eight floats.
        unsafe { _mm256_storeu_ps(sums.as_mut_ptr(), eight::<F>(&pointers, w.row_bytes, rows)) };
        // SAFETY: the caller's promise.
        unsafe { out.slice(column, columns) }.copy_from_slice(&sums[..columns]);
        column += columns;
    }
}

/// # Safety
/// Each of `weights` points to a row of `rows.k` weights in `row_bytes` bytes.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn eight<F: Format>(weights: &[*const u8; 8], row_bytes: usize, rows: &QuantRows) -> __m256 {
    let stored = rows.k / (BLOCK * F::PER);
    let mut acc = _mm256_setzero_ps();
    let mut factors = Factors::ZERO;
    let mut at = *weights;
    for s in 0..stored {
        // SAFETY: `s` is below the number of stored blocks of a row; `rows` holds one row of `k` codes and its blocks.
        unsafe {
            F::factors(&at, &mut factors);
            for j in 0..F::PER {
                let b = s * F::PER + j;
                let x = _mm256_loadu_si256(rows.q.as_ptr().add(b * BLOCK).cast());
                let sums = *rows.sums.get_unchecked(b);
                let integer = reduce::<F>(|i| F::codes(at[i], j), x, sums, &factors.scale[j]);
                let d = _mm256_mul_ps(
                    _mm256_loadu_ps(factors.d[j].as_ptr()),
                    _mm256_set1_ps(*rows.d.get_unchecked(b)),
                );
                acc = _mm256_fmadd_ps(_mm256_cvtepi32_ps(integer), d, acc);
                let scaled = rows.scaled.get_unchecked(b);
                if F::MINS == 1 {
                    let min = _mm256_loadu_ps(factors.min[j][0].as_ptr());
                    acc = _mm256_fmadd_ps(min, _mm256_set1_ps(scaled[2]), acc);
                } else if F::MINS == 2 {
                    let min = _mm256_loadu_ps(factors.min[j][0].as_ptr());
                    acc = _mm256_fmadd_ps(min, _mm256_set1_ps(scaled[0]), acc);
                    let min = _mm256_loadu_ps(factors.min[j][1].as_ptr());
                    acc = _mm256_fmadd_ps(min, _mm256_set1_ps(scaled[1]), acc);
                }
            }
            for at in &mut at {
                // The rows of the next group follow this one's: fetch them while this one is worked on.
                _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(8 * row_bytes).cast());
                if F::BYTES > 64 {
                    _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(8 * row_bytes + 64).cast());
                }
                if F::BYTES > 128 {
                    _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(8 * row_bytes + 128).cast());
                }
                *at = at.wrapping_add(F::BYTES);
            }
        }
    }
    acc
}

/// The exact integer block sums of eight columns.
///
/// # Safety
/// `codes` may be called for 0..8; the processor has AVX2.
#[inline(always)]
unsafe fn reduce<F: Format>(
    codes: impl Fn(usize) -> __m256i,
    x: __m256i,
    sums: [i16; 2],
    scale: &[[i32; 8]; 2],
) -> __m256i {
    // SAFETY: register arithmetic; the loads are of eight integers each.
    unsafe {
        let ones = _mm256_set1_epi16(1);
        // Sixteen sums of two products. They may be added to each other 8, 4 or 2 times before 16 bits overflow
        // (codes of 4, 5 and 6 bits); products of signed 8-bit codes must widen at once.
        let pairs = |i: usize| {
            let c = codes(i);
            if F::BITS == 8 {
                _mm256_maddubs_epi16(_mm256_abs_epi8(c), _mm256_sign_epi8(x, c))
            } else {
                _mm256_maddubs_epi16(c, x)
            }
        };
        // Each level adds neighbours of two registers; `wide` says that lanes are 32 bits already.
        let add = |a: __m256i, b: __m256i, wide: bool| {
            if wide { _mm256_add_epi32(a, b) } else { _mm256_add_epi16(a, b) }
        };
        let widen = |v: __m256i, now: bool| if now { _mm256_madd_epi16(v, ones) } else { v };
        let one = |i: usize| {
            let (a, b) = (widen(pairs(i), F::BITS == 8), widen(pairs(i + 1), F::BITS == 8));
            let v = add(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b), F::BITS == 8);
            widen(v, F::BITS == 6)
        };
        let two = |i: usize| {
            let (a, b) = (one(i), one(i + 2));
            let v = add(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b), F::BITS >= 6);
            widen(v, F::BITS == 5 || (F::HALVED && F::BITS < 6))
        };
        let (a, b) = (two(0), two(4));
        let first = _mm256_permute2x128_si256::<0x20>(a, b);
        let second = _mm256_permute2x128_si256::<0x31>(a, b);
        if F::HALVED {
            let half = |v: __m256i, h: usize| {
                let offset = _mm256_set1_epi32(i32::from(F::OFFSET) * i32::from(sums[h]));
                let scale = _mm256_loadu_si256(scale[h].as_ptr().cast());
                _mm256_mullo_epi32(_mm256_sub_epi32(v, offset), scale)
            };
            return _mm256_add_epi32(half(first, 0), half(second, 1));
        }
        let v = widen(add(first, second, F::BITS >= 5), F::BITS == 4);
        if F::OFFSET == 0 {
            return v;
        }
        let offset = i32::from(F::OFFSET) * (i32::from(sums[0]) + i32::from(sums[1]));
        _mm256_sub_epi32(v, _mm256_set1_epi32(offset))
    }
}
