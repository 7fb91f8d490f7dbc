//! Many rows of activations times quantised weights.
//!
//! Sixteen output columns are unpacked, a stretch of the inputs at a time, to unsigned codes interleaved by four inputs, so that one
//! register holds eight columns and one multiply meets four activations of a row, broadcast. The products of a
//! block of 32 are added in 16 bits as often as the codes' width allows, then widened, scaled and added to the float sums in
//! block order. Signed 8-bit codes are split into two planes of four bits.

use super::formats::{Factors, Format};
use crate::matrix::{Mat, TILE_COLUMNS};
use crate::pool::SharedMut;
use crate::quantized::{BLOCK, QuantRows};
use core::arch::x86_64::*;
use std::cell::RefCell;
use std::ops::Range;

/// Eight columns of one block of 32.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
struct TileBlock {
    /// `[plane][step][column, 4 inputs]`.
    codes: [[[u8; 32]; 8]; 2],
    d: [f32; 8],
    min: [[f32; 8]; 2],
    /// Integer scales of each half, twice a column, to meet the pairs of 16-bit sums.
    scale: [[i16; 16]; 2],
    /// Minus the offset times the scales, `[column][half]`, to meet the activations' half sums.
    offset: [i16; 16],
}

/// Registers of eight columns in a tile.
const GROUPS: usize = TILE_COLUMNS / 8;
/// Blocks of 32 inputs that are unpacked at a time: a tile of them stays in the first-level cache.
const STRETCH: usize = 24;

thread_local! {
    static TILE: RefCell<Vec<[TileBlock; GROUPS]>> = const { RefCell::new(Vec::new()) };
}

/// Output columns `range` (at most [`TILE_COLUMNS`]) for every row of `rows`.
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
    assert!(w.row_bytes == w.k / (F::PER * BLOCK) * F::BYTES && rows.k == w.k);
    assert!(range.end <= w.n && range.len() <= TILE_COLUMNS && !range.is_empty());
    let blocks = w.k / BLOCK;
    TILE.with_borrow_mut(|tile| {
        // SAFETY: a tile is plain numbers, for which zeros are valid.
        tile.resize(STRETCH + 8, unsafe { std::mem::zeroed() });
        let mut start = 0;
        while start < blocks {
            let len = (blocks - start).min(STRETCH);
            for g in 0..GROUPS {
                // Columns past the end repeat the last one; their results are dropped.
                let pointers: [*const u8; 8] = std::array::from_fn(|i| {
                    let column = (range.start + 8 * g + i).min(range.end - 1);
                    w.row(column)[start / F::PER * F::BYTES..].as_ptr()
                });
                // SAFETY: each pointer has `len / PER` stored blocks before its row ends.
                unsafe { unpack::<F>(&pointers, &mut tile[..len], g) };
            }
            let mut row = 0;
            while row < rows.m {
                let left = rows.m - row;
                // SAFETY: `row + R <= m`, and the caller's promise.
                unsafe {
                    if left >= 4 && F::BITS == 4 && !F::HALVED {
                        stretch::<F, 4>(w.n, rows, row, start, &tile[..len], &range, out);
                        row += 4;
                    } else if left >= 3 {
                        stretch::<F, 3>(w.n, rows, row, start, &tile[..len], &range, out);
                        row += 3;
                    } else {
                        stretch::<F, 1>(w.n, rows, row, start, &tile[..len], &range, out);
                        row += 1;
                    }
                }
            }
            start += len;
        }
    });
}

/// Transposes eight registers of eight 32-bit lanes.
///
/// # Safety
/// The processor has AVX2.
#[inline(always)]
pub(super) unsafe fn transpose(r: [__m256i; 8]) -> [__m256i; 8] {
    // SAFETY: register arithmetic.
    unsafe {
        let pair = |i: usize| (_mm256_unpacklo_epi32(r[i], r[i + 1]), _mm256_unpackhi_epi32(r[i], r[i + 1]));
        let quad = |i: usize| {
            let ((a, b), (c, d)) = (pair(i), pair(i + 2));
            [
                _mm256_unpacklo_epi64(a, c),
                _mm256_unpackhi_epi64(a, c),
                _mm256_unpacklo_epi64(b, d),
                _mm256_unpackhi_epi64(b, d),
            ]
        };
        let (top, bottom) = (quad(0), quad(4));
        std::array::from_fn(|i| {
            if i < 4 {
                _mm256_permute2x128_si256::<0x20>(top[i], bottom[i])
            } else {
                _mm256_permute2x128_si256::<0x31>(top[i - 4], bottom[i - 4])
            }
        })
    }
}

/// Unpacks eight columns of a stretch into group `g` of the tile.
///
/// # Safety
/// Each of `weights` points to the stored blocks of `tile.len()` blocks of 32.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn unpack<F: Format>(weights: &[*const u8; 8], tile: &mut [[TileBlock; GROUPS]], g: usize) {
    let mut factors = Factors::ZERO;
    for (s, tile) in tile.chunks_mut(F::PER).enumerate() {
        let at = weights.map(|w| w.wrapping_add(s * F::BYTES));
        // SAFETY: the caller's promise.
        unsafe { F::factors(&at, &mut factors) };
        for (j, block) in tile.iter_mut().enumerate() {
            let block = &mut block[g];
            block.d = factors.d[j];
            block.min = factors.min[j];
            if F::HALVED {
                for (column, offset) in block.offset.chunks_mut(2).enumerate() {
                    for half in 0..2 {
                        let scale = factors.scale[j][half][column] as i16;
                        block.scale[half][2 * column..2 * column + 2].fill(scale);
                        offset[half] = -F::OFFSET * scale;
                    }
                }
            }
            // SAFETY: the caller's promise; the stores are of 32 bytes each.
            unsafe {
                let rows = transpose(std::array::from_fn(|i| F::codes(at[i], j)));
                for (step, v) in rows.into_iter().enumerate() {
                    if F::BITS == 8 {
                        let v = _mm256_xor_si256(v, _mm256_set1_epi8(-128));
                        let low = _mm256_and_si256(v, _mm256_set1_epi8(15));
                        let high = _mm256_and_si256(_mm256_srli_epi16::<4>(v), _mm256_set1_epi8(15));
                        _mm256_store_si256(block.codes[0][step].as_mut_ptr().cast(), low);
                        _mm256_store_si256(block.codes[1][step].as_mut_ptr().cast(), high);
                    } else {
                        _mm256_store_si256(block.codes[0][step].as_mut_ptr().cast(), v);
                    }
                }
            }
        }
    }
}

/// Multiplies `R` rows from `row` on with a stretch that starts at block `start`, continuing the sums in `out`.
///
/// # Safety
/// `row + R <= rows.m`, the stretch lies within the rows, and no other thread uses the columns `range` of `out`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn stretch<F: Format, const R: usize>(
    n: usize,
    rows: &QuantRows,
    row: usize,
    start: usize,
    tile: &[[TileBlock; GROUPS]],
    range: &Range<usize>,
    out: &SharedMut<f32>,
) {
    let blocks = rows.k / BLOCK;
    debug_assert!(row + R <= rows.m && start + tile.len() <= blocks);
    let columns = range.len();
    let mut sums = [[0.0_f32; TILE_COLUMNS]; R];
    if start > 0 {
        for (r, sums) in sums.iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            sums[..columns].copy_from_slice(unsafe { out.slice((row + r) * n + range.start, columns) });
        }
    }
    // SAFETY: every index stays within the rows by the caller's promise, and `sums` holds R · GROUPS registers.
    unsafe {
        let mut acc: [[__m256; GROUPS]; R] =
            std::array::from_fn(|r| std::array::from_fn(|g| _mm256_loadu_ps(sums[r].as_ptr().add(8 * g))));
        let x: [*const u8; R] =
            std::array::from_fn(|r| rows.q.as_ptr().add((row + r) * rows.k + start * BLOCK).cast());
        let first: [usize; R] = std::array::from_fn(|r| (row + r) * blocks + start);
        for (b, tile) in tile.iter().enumerate() {
            let integer = block_sums::<F, R>(tile, &x, b, rows, &first);
            for r in 0..R {
                let d = _mm256_set1_ps(*rows.d.as_ptr().add(first[r] + b));
                let scaled = rows.scaled.as_ptr().add(first[r] + b);
                for g in 0..GROUPS {
                    let factor = _mm256_mul_ps(_mm256_load_ps(tile[g].d.as_ptr()), d);
                    acc[r][g] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(integer[r][g]), factor, acc[r][g]);
                    if F::MINS == 1 {
                        let min = _mm256_load_ps(tile[g].min[0].as_ptr());
                        acc[r][g] = _mm256_fmadd_ps(min, _mm256_set1_ps((*scaled)[2]), acc[r][g]);
                    } else if F::MINS == 2 {
                        for h in 0..2 {
                            let min = _mm256_load_ps(tile[g].min[h].as_ptr());
                            acc[r][g] = _mm256_fmadd_ps(min, _mm256_set1_ps((*scaled)[h]), acc[r][g]);
                        }
                    }
                }
            }
        }
        for (r, sums) in sums.iter_mut().enumerate() {
            for g in 0..GROUPS {
                _mm256_storeu_ps(sums.as_mut_ptr().add(8 * g), acc[r][g]);
            }
            out.slice((row + r) * n + range.start, columns).copy_from_slice(&sums[..columns]);
        }
    }
}

/// The exact integer sums of block `b`, `[row][group]` of eight columns.
///
/// # Safety
/// `x[r]` points to the stretch's codes of row `r`, `first[r]` is the index of its first block in `rows`.
#[inline(always)]
unsafe fn block_sums<F: Format, const R: usize>(
    tile: &[TileBlock; GROUPS],
    x: &[*const u8; R],
    b: usize,
    rows: &QuantRows,
    first: &[usize; R],
) -> [[__m256i; GROUPS]; R] {
    // Steps of four inputs whose sums fit 16 bits: 8 · 2 · 15 · 127, 4 · 2 · 31 · 127 and 2 · 2 · 63 · 127 do.
    let steps = match F::BITS {
        5 => 4,
        6 => 2,
        _ if F::HALVED => 4,
        _ => 8,
    };
    // SAFETY: the caller's promise.
    unsafe {
        let ones = _mm256_set1_epi16(1);
        let mut total = [[_mm256_setzero_si256(); GROUPS]; R];
        let mut fresh = true;
        let planes = if F::BITS == 8 { 2 } else { 1 };
        for plane in 0..planes {
            let mut step = 0;
            while step < 8 {
                let mut sums = [[_mm256_setzero_si256(); GROUPS]; R];
                for s in step..step + steps {
                    let w: [__m256i; GROUPS] =
                        std::array::from_fn(|g| _mm256_load_si256(tile[g].codes[plane][s].as_ptr().cast()));
                    for r in 0..R {
                        let x = _mm256_set1_epi32(x[r].add(b * BLOCK + 4 * s).cast::<i32>().read_unaligned());
                        for g in 0..GROUPS {
                            let p = _mm256_maddubs_epi16(w[g], x);
                            sums[r][g] = if s == step { p } else { _mm256_add_epi16(sums[r][g], p) };
                        }
                    }
                }
                for r in 0..R {
                    for g in 0..GROUPS {
                        let factor = if F::HALVED {
                            _mm256_load_si256(tile[g].scale[step / 4].as_ptr().cast())
                        } else if plane == 1 {
                            _mm256_set1_epi16(16)
                        } else {
                            ones
                        };
                        let wide = _mm256_madd_epi16(sums[r][g], factor);
                        total[r][g] = if fresh { wide } else { _mm256_add_epi32(total[r][g], wide) };
                    }
                }
                fresh = false;
                step += steps;
            }
        }
        let offset = if F::BITS == 8 { 128 } else { F::OFFSET };
        if offset != 0 {
            for r in 0..R {
                let halves = rows.sums.as_ptr().add(first[r] + b).cast::<i32>().read_unaligned();
                let halves = _mm256_set1_epi32(halves);
                for g in 0..GROUPS {
                    let factor = if F::HALVED {
                        _mm256_load_si256(tile[g].offset.as_ptr().cast())
                    } else {
                        _mm256_set1_epi16(-offset)
                    };
                    total[r][g] = _mm256_add_epi32(total[r][g], _mm256_madd_epi16(halves, factor));
                }
            }
        }
        total
    }
}
