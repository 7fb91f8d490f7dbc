//! One row of activations times quantised weights, read where they lie.
//!
//! Eight output columns share a register: their products with a block of 32 activations are reduced to eight
//! integers by one tree of shuffles, so the float part of a block is a handful of instructions for all eight.

use super::formats::{Factors, Format, Rows};
use crate::matrix::{Input, Mat, Span};
use crate::pool::SharedMut;
use crate::quantized::BLOCK;
use core::arch::x86_64::*;

/// Bytes between what is fetched into the first-level and into the second-level cache.
const FAR: usize = 8 << 10;

/// Bytes that are fetched at once where a range starts.
const FIRST: usize = 6 << 10;

/// One quantised row: its codes, scales and sums, and how many blocks of each there are.
#[derive(Clone, Copy)]
struct Row<'a> {
    q: &'a [i8],
    d: &'a [f32],
    sums: &'a [[i16; 2]],
    scaled: &'a [[f32; 3]],
}

/// Output columns `span` of the single row of `input`.
///
/// # Safety
/// No other thread uses these columns of `out` meanwhile.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn columns<F: Format>(w: &Mat<'_>, input: &Input<'_>, span: Span, out: &SharedMut<f32>) {
    assert!(w.row_bytes == w.k / (F::PER * BLOCK) * F::BYTES && span.end <= w.n && input.rows.k == w.k);
    let blocks = w.k / BLOCK;
    let at = input.first * blocks;
    let row = Row {
        q: &input.rows.q[at * BLOCK..][..w.k],
        d: &input.rows.d[at..][..blocks],
        sums: &input.rows.sums[at..][..blocks],
        scaled: &input.rows.scaled[at..][..blocks],
    };
    let end = w.data[..span.until * w.row_bytes].as_ptr_range().end;
    if span.first {
        // All of the first group at once: line by line, each would wait for the one before.
        let start = w.row(span.start).as_ptr();
        for line in (0..(8 * w.row_bytes).min(FIRST)).step_by(64) {
            _mm_prefetch::<_MM_HINT_NTA>(start.wrapping_add(line).cast());
        }
    }
    let mut column = span.start;
    while column < span.end {
        let columns = (span.end - column).min(8);
        // A short group repeats its last column and drops the copies' results.
        let pointers: [*const u8; 8] = std::array::from_fn(|i| w.row(column + i.min(columns - 1)).as_ptr());
        // SAFETY: each pointer starts a row of `k` weights.
        let sums = unsafe { eight::<F>(&pointers, w.row_bytes, end, row) };
        // SAFETY: the caller's promise.
        super::store(sums, unsafe { out.slice(column, columns) });
        column += columns;
    }
}

/// # Safety
/// Each of `weights` points to a row of as many weights as `row` has codes in `row_bytes` bytes; rows up to `end` will follow.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn eight<F: Format>(
    weights: &[*const u8; 8],
    row_bytes: usize,
    end: *const u8,
    row: Row<'_>,
) -> __m256 {
    let stored = row.d.len() / F::PER;
    let mut acc = _mm256_setzero_ps();
    let mut factors = Factors::ZERO;
    // The next group's rows follow this one's in memory: fetch them in order while this group is worked on, and
    // ask the second-level cache for what comes after them. What lies past the range is another thread's: there,
    // lines that are at hand already are asked for again, which is cheaper than a branch.
    let within = |p: *const u8| if p < end { p } else { weights[0] };
    let next = weights[0].wrapping_add(8 * row_bytes);
    let (near, far) =
        (within(next), within(next.wrapping_add(8 * row_bytes + FAR)).wrapping_sub(8 * row_bytes));
    let mut waiting = None;
    for s in 0..stored {
        let at = Rows { starts: weights, skip: s * F::BYTES };
        let b = s * F::PER;
        // SAFETY: `s` is below the number of stored blocks of a row; a row has codes for all of them.
        unsafe {
            // A processor looks ahead by two blocks or three. One block's sums are added up after the next one's products,
            // so that what it sees is not all one chain.
            let mut sums = products::<F, 0>(at, b, row);
            if let Some(sums) = waiting {
                acc = if F::PER == 8 {
                    add_block::<F, 7>(sums, b - 1, row, &factors, acc)
                } else {
                    add_block::<F, 0>(sums, b - 1, row, &factors, acc)
                };
            }
            F::factors(at, &mut factors);
            if F::PER == 8 {
                (sums, acc) = step::<F, 0, 1>(at, sums, b, row, &factors, acc);
                (sums, acc) = step::<F, 1, 2>(at, sums, b, row, &factors, acc);
                (sums, acc) = step::<F, 2, 3>(at, sums, b, row, &factors, acc);
                (sums, acc) = step::<F, 3, 4>(at, sums, b, row, &factors, acc);
                (sums, acc) = step::<F, 4, 5>(at, sums, b, row, &factors, acc);
                (sums, acc) = step::<F, 5, 6>(at, sums, b, row, &factors, acc);
                (sums, acc) = step::<F, 6, 7>(at, sums, b, row, &factors, acc);
            }
            waiting = Some(sums);
            for line in (0..8 * F::BYTES).step_by(64) {
                let line = s * 8 * F::BYTES + line;
                _mm_prefetch::<_MM_HINT_NTA>(near.wrapping_add(line).cast());
                _mm_prefetch::<_MM_HINT_T1>(far.wrapping_add(line).cast());
            }
        }
    }
    if let Some(sums) = waiting {
        let last = row.d.len() - 1;
        // SAFETY: something waits, so there is a block.
        acc = unsafe {
            if F::PER == 8 {
                add_block::<F, 7>(sums, last, row, &factors, acc)
            } else {
                add_block::<F, 0>(sums, last, row, &factors, acc)
            }
        };
    }
    acc
}

/// The products of block `NEXT`, then the sum with block `J`, of the stored block that begins with block `b`. `J` and `NEXT` are
/// constants, so that a format's shifts are.
///
/// # Safety
/// `at` points to stored blocks of more than `NEXT` blocks of 32, and `row` has these.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn step<F: Format, const J: usize, const NEXT: usize>(
    at: Rows<'_>,
    sums: [__m256i; 4],
    b: usize,
    row: Row<'_>,
    factors: &Factors,
    acc: __m256,
) -> ([__m256i; 4], __m256) {
    // SAFETY: the caller's promise.
    unsafe {
        let next = products::<F, NEXT>(at, b + NEXT, row);
        (next, add_block::<F, J>(sums, b + J, row, factors, acc))
    }
}

/// Adds the [`products`] of block `b`, which is block `J` of the stored block that has `factors`.
///
/// # Safety
/// `row` has more than `b` blocks.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn add_block<F: Format, const J: usize>(
    sums: [__m256i; 4],
    b: usize,
    row: Row<'_>,
    factors: &Factors,
    acc: __m256,
) -> __m256 {
    // SAFETY: the caller's promise.
    unsafe {
        // The block's two sums of codes, side by side in each lane.
        let codes = _mm256_set1_epi32(row.sums.as_ptr().add(b).cast::<i32>().read_unaligned());
        let integer = if F::NIBBLES > 0 {
            reduce_paired::<F>(sums)
        } else {
            reduce::<F>(sums, codes, &factors.scale[J])
        };
        let integer = if F::HALVED || F::OFFSET == 0 {
            integer
        } else {
            _mm256_sub_epi32(integer, _mm256_madd_epi16(codes, _mm256_set1_epi16(F::OFFSET)))
        };
        let d =
            _mm256_mul_ps(_mm256_loadu_ps(factors.d[J].as_ptr()), _mm256_set1_ps(*row.d.get_unchecked(b)));
        let mut acc = _mm256_fmadd_ps(_mm256_cvtepi32_ps(integer), d, acc);
        let scaled = row.scaled.get_unchecked(b);
        if F::MINS == 1 {
            let min = _mm256_loadu_ps(factors.min[J][0].as_ptr());
            acc = _mm256_fmadd_ps(min, _mm256_set1_ps(scaled[2]), acc);
        } else if F::MINS == 2 {
            let min = _mm256_loadu_ps(factors.min[J][0].as_ptr());
            acc = _mm256_fmadd_ps(min, _mm256_set1_ps(scaled[0]), acc);
            let min = _mm256_loadu_ps(factors.min[J][1].as_ptr());
            acc = _mm256_fmadd_ps(min, _mm256_set1_ps(scaled[1]), acc);
        }
        acc
    }
}

/// The products of eight columns' codes with block `b` of the row, which is block `J` of the stored blocks, added up as far as four
/// registers: in each, the sums of two rows lie in turn, or with [`Format::NIBBLES`] those of rows `i` and `i + 4` in the halves.
///
/// # Safety
/// `at` points to stored blocks of more than `J` blocks of 32, and `row` has more than `b`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn products<F: Format, const J: usize>(at: Rows<'_>, b: usize, row: Row<'_>) -> [__m256i; 4] {
    // A register holds sixteen sums of two products. Such sums may be added to each other 8, 4 or 2 times before 16 bits
    // overflow (codes of 4, 5 and 6 bits); products of signed 8-bit codes must widen at once. Each level here and below
    // adds the neighbours of two registers, and widens to 32 bits when the next one would overflow.
    let mut sums = [_mm256_setzero_si256(); 4];
    // SAFETY: the caller's promise; with `NIBBLES`, a stored block has 16 bytes from there on.
    unsafe {
        let q = row.q.as_ptr().add(b * BLOCK);
        if F::NIBBLES > 0 {
            let (x_low, x_high) = (broadcast_half(q), broadcast_half(q.add(16)));
            for (i, v) in sums.iter_mut().enumerate() {
                let (low_row, high_row) = (at.at(i).add(F::NIBBLES), at.at(i + 4).add(F::NIBBLES));
                let both = _mm256_loadu2_m128i(high_row.cast(), low_row.cast());
                let mask = _mm256_set1_epi8(15);
                let low = F::of_nibbles(_mm256_and_si256(both, mask));
                let high = F::of_nibbles(_mm256_and_si256(_mm256_srli_epi16::<4>(both), mask));
                *v = _mm256_add_epi16(_mm256_maddubs_epi16(low, x_low), _mm256_maddubs_epi16(high, x_high));
            }
        } else {
            let x = _mm256_loadu_si256(q.cast());
            for (i, v) in sums.iter_mut().enumerate() {
                let (a, b) = (pairs::<F>(at.at(2 * i), J, x), pairs::<F>(at.at(2 * i + 1), J, x));
                *v = add(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b), F::BITS == 8);
                if F::BITS == 6 {
                    *v = widen(*v);
                }
            }
        }
    }
    sums
}

/// Sums of two products of one row's codes with `x`.
///
/// # Safety
/// `block` points to a stored block of more than `j` blocks of 32.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn pairs<F: Format>(block: *const u8, j: usize, x: __m256i) -> __m256i {
    // SAFETY: the caller's promise.
    let c = unsafe { F::codes(block, j) };
    if F::BITS == 8 {
        widen(_mm256_maddubs_epi16(_mm256_abs_epi8(c), _mm256_sign_epi8(x, c)))
    } else {
        _mm256_maddubs_epi16(c, x)
    }
}

/// The exact integer block sums of eight columns, of unpaired [`products`]; less the offset only where half blocks have scales.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn reduce<F: Format>(fours: [__m256i; 4], codes: __m256i, scale: &[[i32; 8]; 2]) -> __m256i {
    let mut eights = [_mm256_setzero_si256(); 2];
    for (i, v) in eights.iter_mut().enumerate() {
        let (a, b) = (fours[2 * i], fours[2 * i + 1]);
        *v = add(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b), F::BITS >= 6);
        if F::BITS == 5 || (F::HALVED && F::BITS < 6) {
            *v = widen(*v);
        }
    }
    let crossed = _mm256_permute2x128_si256::<0x21>(eights[0], eights[1]);
    if F::HALVED {
        let first = _mm256_blend_epi32::<0xf0>(eights[0], crossed);
        let second = _mm256_blend_epi32::<0xf0>(crossed, eights[1]);
        let offset =
            |mask: i32| _mm256_madd_epi16(codes, _mm256_set1_epi32(mask & (i32::from(F::OFFSET) * 0x1_0001)));
        return _mm256_add_epi32(
            scaled_half(first, offset(0xffff), &scale[0]),
            scaled_half(second, offset(-0x1_0000), &scale[1]),
        );
    }
    let v = add(_mm256_blend_epi32::<0xf0>(eights[0], eights[1]), crossed, F::BITS >= 5);
    if F::BITS == 4 { widen(v) } else { v }
}

/// The exact integer block sums of eight columns, of paired [`products`].
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn reduce_paired<F: Format>(pairs: [__m256i; 4]) -> __m256i {
    let mut fours = [_mm256_setzero_si256(); 2];
    for (i, v) in fours.iter_mut().enumerate() {
        let (a, b) = (pairs[2 * i], pairs[2 * i + 1]);
        *v = _mm256_add_epi16(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
        if F::BITS > 4 {
            *v = widen(*v);
        }
    }
    let (first, second) =
        (_mm256_unpacklo_epi64(fours[0], fours[1]), _mm256_unpackhi_epi64(fours[0], fours[1]));
    let v = add(first, second, F::BITS > 4);
    if F::BITS > 4 { v } else { widen(v) }
}

/// 16 codes in both halves.
///
/// # Safety
/// `q` points to 16 codes.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn broadcast_half(q: *const i8) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(q.cast())) }
}

/// Sums of two neighbouring 16-bit lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn widen(v: __m256i) -> __m256i {
    _mm256_madd_epi16(v, _mm256_set1_epi16(1))
}

#[inline]
#[target_feature(enable = "avx2")]
fn add(a: __m256i, b: __m256i, wide: bool) -> __m256i {
    if wide { _mm256_add_epi32(a, b) } else { _mm256_add_epi16(a, b) }
}

/// A half block's sums less their offset, times the integer scales.
#[inline]
#[target_feature(enable = "avx2")]
fn scaled_half(v: __m256i, offset: __m256i, scale: &[i32; 8]) -> __m256i {
    // SAFETY: eight integers.
    let scale = unsafe { _mm256_loadu_si256(scale.as_ptr().cast()) };
    _mm256_mullo_epi32(_mm256_sub_epi32(v, offset), scale)
}
