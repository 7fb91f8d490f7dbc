//! Many rows of activations times quantised weights.
//!
//! Sixteen output columns are unpacked, a stretch of the inputs at a time, to unsigned codes interleaved by four inputs, so that one
//! register holds eight columns and one multiply meets four activations of a row, broadcast. The products of a
//! block of 32 are added in 16 bits as often as the codes' width allows, then widened, scaled and added to the float sums in
//! block order. Signed 8-bit codes are split into two planes of four bits.

use super::formats::{Factors, Format, Rows};
use crate::matrix::{Input, Mat, TILE_COLUMNS};
use crate::pool::SharedMut;
use crate::quantized::{BLOCK, QuantRows};
use core::arch::x86_64::*;
use std::cell::RefCell;
use std::ops::Range;

/// The codes of eight columns of one block of 32: `[step][column, 4 inputs]`.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
struct Codes([[u8; 32]; 8]);

/// Float factors of eight columns of one block.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
struct Floats {
    d: [f32; 8],
    min: [[f32; 8]; 2],
}

/// Integer factors of eight columns of one block.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
struct Integers {
    /// Scales of each half, twice a column, to meet the pairs of 16-bit sums.
    scale: [[i16; 16]; 2],
    /// Minus the offset times the scales, `[column][half]`, to meet the activations' half sums.
    offset: [i16; 16],
}

/// A stretch of unpacked columns. Apart from each other, since most formats use only some of the three, and what is used
/// should be dense in the first-level cache.
struct Tile {
    /// `[block, group, plane]`.
    codes: [Codes; STRETCH * GROUPS * 2],
    /// `[block, group]`.
    floats: [Floats; STRETCH * GROUPS],
    /// `[block, group]`.
    integers: [Integers; STRETCH * GROUPS],
}

impl Tile {
    const ZERO: Self = Self {
        codes: [Codes([[0; 32]; 8]); STRETCH * GROUPS * 2],
        floats: [Floats { d: [0.0; 8], min: [[0.0; 8]; 2] }; STRETCH * GROUPS],
        integers: [Integers { scale: [[0; 16]; 2], offset: [0; 16] }; STRETCH * GROUPS],
    };
}

/// Planes of codes of a format.
const fn planes<F: Format>() -> usize {
    if F::BITS == 8 { 2 } else { 1 }
}

/// Registers of eight columns in a tile.
const GROUPS: usize = TILE_COLUMNS / 8;
/// Blocks of 32 inputs that are unpacked at a time: a tile of them stays in the first-level cache.
const STRETCH: usize = 24;

/// Bytes that memory gives at once.
const LINE: usize = 64;

thread_local! {
    static TILE: RefCell<Box<Tile>> = RefCell::new(Box::new(Tile::ZERO));
}

/// Output columns `range` (at most [`TILE_COLUMNS`]) for every row of `input`.
///
/// # Safety
/// No other thread uses these columns of `out` meanwhile.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn columns<F: Format>(
    w: &Mat<'_>,
    input: &Input<'_>,
    range: Range<usize>,
    out: &SharedMut<f32>,
) {
    assert!(w.row_bytes == w.k / (F::PER * BLOCK) * F::BYTES && input.rows.k == w.k);
    assert!(input.first + input.m <= input.rows.m);
    assert!(range.end <= w.n && range.len() <= TILE_COLUMNS && !range.is_empty());
    let blocks = w.k / BLOCK;
    let out = Output { all: out, n: w.n, range: range.clone() };
    TILE.with_borrow_mut(|tile| {
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
                unsafe { unpack::<F>(&pointers, tile, len, g) };
            }
            // What is unpacked next is fetched meanwhile: few rows don't hide its way from memory, and eight short streams are not
            // foreseen by the processor.
            let (first, from) =
                if start + len < blocks { (range.start, start + len) } else { (range.end, 0) };
            let until = w.k.div_ceil(BLOCK).min(from + STRETCH);
            let (from, until) = (from / F::PER * F::BYTES, until.div_ceil(F::PER) * F::BYTES);
            let columns = first..(first + TILE_COLUMNS).min(w.n);
            let each = columns.len() * (until - from).div_ceil(LINE) / input.m.div_ceil(4).max(1) + 1;
            let mut ahead = columns.flat_map(|column| w.row(column)[from..until].chunks(LINE));
            let mut row = 0;
            while row < input.m {
                let left = input.m - row;
                for line in ahead.by_ref().take(each) {
                    _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast());
                }
                // SAFETY: `row + R <= m`, and the caller's promise.
                unsafe {
                    if left >= 4 && F::BITS == 4 && !F::HALVED {
                        stretch::<F, 4>(tile, start, len, input, row, &out);
                        row += 4;
                    } else if left >= 3 {
                        stretch::<F, 3>(tile, start, len, input, row, &out);
                        row += 3;
                    } else {
                        stretch::<F, 1>(tile, start, len, input, row, &out);
                        row += 1;
                    }
                }
            }
            start += len;
        }
    });
}

/// The tile's columns of the product `[m, n]`.
struct Output<'a> {
    all: &'a SharedMut<f32>,
    n: usize,
    range: Range<usize>,
}

impl Output<'_> {
    /// The columns in row `row`.
    ///
    /// # Safety
    /// Nobody else uses them meanwhile.
    #[allow(clippy::mut_from_ref)]
    unsafe fn row(&self, row: usize) -> &mut [f32] {
        // SAFETY: the caller's promise.
        unsafe { self.all.slice(row * self.n + self.range.start, self.range.len()) }
    }
}

/// Transposes eight registers of eight 32-bit lanes.
///
/// # Safety
/// The processor has AVX2.
#[inline(always)]
pub(super) unsafe fn transpose(r: [__m256i; 8]) -> [__m256i; 8] {
    // SAFETY: register arithmetic.
    unsafe {
        let mut out = r;
        let mut quads = [[r[0]; 4]; 2];
        for (half, quad) in quads.iter_mut().enumerate() {
            let r = &r[4 * half..4 * half + 4];
            let (a, b) = (_mm256_unpacklo_epi32(r[0], r[1]), _mm256_unpackhi_epi32(r[0], r[1]));
            let (c, d) = (_mm256_unpacklo_epi32(r[2], r[3]), _mm256_unpackhi_epi32(r[2], r[3]));
            quad[0] = _mm256_unpacklo_epi64(a, c);
            quad[1] = _mm256_unpackhi_epi64(a, c);
            quad[2] = _mm256_unpacklo_epi64(b, d);
            quad[3] = _mm256_unpackhi_epi64(b, d);
        }
        for i in 0..4 {
            out[i] = _mm256_permute2x128_si256::<0x20>(quads[0][i], quads[1][i]);
            out[i + 4] = _mm256_permute2x128_si256::<0x31>(quads[0][i], quads[1][i]);
        }
        out
    }
}

/// Unpacks eight columns of `len` blocks into group `g` of the tile.
///
/// # Safety
/// Each of `weights` points to the stored blocks of `len` blocks of 32.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn unpack<F: Format>(weights: &[*const u8; 8], tile: &mut Tile, len: usize, g: usize) {
    let mut factors = Factors::ZERO;
    for b in 0..len {
        let j = b % F::PER;
        let at = Rows { starts: weights, skip: b / F::PER * F::BYTES };
        if j == 0 {
            // SAFETY: the caller's promise.
            unsafe { F::factors(at, &mut factors) };
        }
        let index = b * GROUPS + g;
        let floats = &mut tile.floats[index];
        floats.d = factors.d[j];
        floats.min = factors.min[j];
        if F::HALVED {
            let Integers { scale, offset } = &mut tile.integers[index];
            for half in 0..2 {
                for (column, factor) in factors.scale[j][half].iter().enumerate() {
                    let factor = *factor as i16;
                    scale[half][2 * column..2 * column + 2].fill(factor);
                    offset[2 * column + half] = -F::OFFSET * factor;
                }
            }
        }
        let codes = &mut tile.codes[index * planes::<F>()..][..planes::<F>()];
        // SAFETY: the caller's promise; the stores are of 32 aligned bytes each.
        unsafe {
            let rows = transpose(std::array::from_fn(|i| F::codes(at.at(i), j)));
            for (step, v) in rows.into_iter().enumerate() {
                if F::BITS == 8 {
                    let v = _mm256_xor_si256(v, _mm256_set1_epi8(-128));
                    let low = _mm256_and_si256(v, _mm256_set1_epi8(15));
                    let high = _mm256_and_si256(_mm256_srli_epi16::<4>(v), _mm256_set1_epi8(15));
                    _mm256_store_si256(codes[0].0[step].as_mut_ptr().cast(), low);
                    _mm256_store_si256(codes[1].0[step].as_mut_ptr().cast(), high);
                } else {
                    _mm256_store_si256(codes[0].0[step].as_mut_ptr().cast(), v);
                }
            }
        }
    }
}

/// Multiplies `R` rows from `row` on with a stretch that starts at block `start`, continuing the sums in `out`.
///
/// # Safety
/// `row + R <= input.m`, the stretch lies within the rows, and no other thread uses the columns of `out`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn stretch<F: Format, const R: usize>(
    tile: &Tile,
    start: usize,
    len: usize,
    input: &Input<'_>,
    row: usize,
    out: &Output<'_>,
) {
    let rows = input.rows;
    let blocks = rows.k / BLOCK;
    debug_assert!(row + R <= input.m && start + len <= blocks && len <= STRETCH);
    let stored = input.first + row;
    let mut acc = [[_mm256_setzero_ps(); GROUPS]; R];
    if start == 0 {
        for r in 0..R {
            // A store that misses would hold up every later one, the kernel's own spills among them.
            // SAFETY: the caller's promise; a prefetch reads nothing.
            let row = unsafe { out.row(row + r) }.as_ptr();
            _mm_prefetch::<_MM_HINT_T0>(row.cast());
            _mm_prefetch::<_MM_HINT_T0>(row.wrapping_add(TILE_COLUMNS - 1).cast());
        }
    }
    if start > 0 {
        for (r, acc) in acc.iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            load(unsafe { out.row(row + r) }, acc);
        }
    }
    // SAFETY: every index stays within the rows and the tile by the caller's promise.
    unsafe {
        let x: [*const u8; R] =
            std::array::from_fn(|r| rows.q.as_ptr().add((stored + r) * rows.k + start * BLOCK).cast());
        let first: [usize; R] = std::array::from_fn(|r| (stored + r) * blocks + start);
        // A constant that the compiler can't see: unrolled, the steps would be reordered row by row, and the
        // weights, loaded again for each row, would leave the registers.
        let more = std::hint::black_box(steps_in_16_bits::<F>());
        for b in 0..len {
            let integer = block_sums::<F, R>(tile, &x, b, rows, &first, more);
            let floats = tile.floats.as_ptr().add(b * GROUPS);
            for r in 0..R {
                let d = _mm256_set1_ps(*rows.d.as_ptr().add(first[r] + b));
                let scaled = rows.scaled.as_ptr().add(first[r] + b);
                for g in 0..GROUPS {
                    let factor = _mm256_mul_ps(_mm256_load_ps((*floats.add(g)).d.as_ptr()), d);
                    acc[r][g] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(integer[r][g]), factor, acc[r][g]);
                    if F::MINS == 1 {
                        let min = _mm256_load_ps((*floats.add(g)).min[0].as_ptr());
                        acc[r][g] = _mm256_fmadd_ps(min, _mm256_set1_ps((*scaled)[2]), acc[r][g]);
                    } else if F::MINS == 2 {
                        for h in 0..2 {
                            let min = _mm256_load_ps((*floats.add(g)).min[h].as_ptr());
                            acc[r][g] = _mm256_fmadd_ps(min, _mm256_set1_ps((*scaled)[h]), acc[r][g]);
                        }
                    }
                }
            }
        }
        for (r, acc) in acc.iter().enumerate() {
            for (acc, to) in acc.iter().zip(out.row(row + r).chunks_mut(8)) {
                super::store(*acc, to);
            }
        }
    }
}

/// The columns' sums so far; lanes past the last column are zero.
#[inline]
#[target_feature(enable = "avx2")]
fn load(from: &[f32], acc: &mut [__m256; GROUPS]) {
    let mut padded = [0.0_f32; TILE_COLUMNS];
    padded[..from.len()].copy_from_slice(from);
    for (acc, lanes) in acc.iter_mut().zip(padded.as_chunks::<8>().0) {
        // SAFETY: eight floats.
        *acc = unsafe { _mm256_loadu_ps(lanes.as_ptr()) };
    }
}

/// Steps of four inputs whose sums fit 16 bits: 8 · 2 · 15 · 127, 4 · 2 · 31 · 127 and 2 · 2 · 63 · 127 do.
const fn steps_in_16_bits<F: Format>() -> usize {
    match F::BITS {
        5 => 4,
        6 => 2,
        _ if F::HALVED => 4,
        _ => 8,
    }
}

/// One step of four inputs: `sums[r][g] = join(sums[r][g], products)`.
///
/// # Safety
/// `codes` points to the plane of the block's first group, one of `planes`; `x` and `b` as for [`block_sums`].
#[inline(always)]
unsafe fn products<const R: usize>(
    sums: &mut [[__m256i; GROUPS]; R],
    codes: *const Codes,
    planes: usize,
    step: usize,
    x: &[*const u8; R],
    b: usize,
    join: impl Fn(__m256i, __m256i) -> __m256i,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let load = |g: usize| _mm256_load_si256(codes.add(g * planes).cast::<__m256i>().add(step));
        let w: [__m256i; GROUPS] = [load(0), load(1)];
        for r in 0..R {
            let x = _mm256_set1_epi32(x[r].add(b * BLOCK + 4 * step).cast::<i32>().read_unaligned());
            for g in 0..GROUPS {
                sums[r][g] = join(sums[r][g], _mm256_maddubs_epi16(w[g], x));
            }
        }
    }
}

/// The exact integer sums of block `b`, `[row][group]` of eight columns.
///
/// # Safety
/// `x[r]` points to the stretch's codes of row `r`, `first[r]` is the index of its first block in `rows`, and `more` is
/// [`steps_in_16_bits`].
#[inline(always)]
unsafe fn block_sums<F: Format, const R: usize>(
    tile: &Tile,
    x: &[*const u8; R],
    b: usize,
    rows: &QuantRows,
    first: &[usize; R],
    more: usize,
) -> [[__m256i; GROUPS]; R] {
    let steps = steps_in_16_bits::<F>();
    // SAFETY: the caller's promise.
    unsafe {
        let ones = _mm256_set1_epi16(1);
        let mut total = [[_mm256_setzero_si256(); GROUPS]; R];
        let mut fresh = true;
        let integers = tile.integers.as_ptr().add(b * GROUPS);
        for plane in 0..planes::<F>() {
            let codes = tile.codes.as_ptr().add(b * GROUPS * planes::<F>() + plane);
            let mut step = 0;
            while step < 8 {
                let mut sums = [[_mm256_setzero_si256(); GROUPS]; R];
                products(&mut sums, codes, planes::<F>(), step, x, b, |_, p| p);
                for s in step + 1..step + more {
                    products(&mut sums, codes, planes::<F>(), s, x, b, |sum, p| _mm256_add_epi16(sum, p));
                }
                for r in 0..R {
                    for g in 0..GROUPS {
                        let factor = if F::HALVED {
                            _mm256_load_si256((*integers.add(g)).scale[step / 4].as_ptr().cast())
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
                        _mm256_load_si256((*integers.add(g)).offset.as_ptr().cast())
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
