//! How each quantised format lies in memory: the codes of 32 weights as one register, and the factors of eight rows.
//!
//! Everything else (the products, the tiles) is written once over [`Format`]. The meaning of codes, scales, offsets and
//! minima is that of [`crate::scalar::CanonicalBlock`].

use crate::scalar::{iq4_xs_scale, q3_scale};
use core::arch::x86_64::*;
use turbospark_format::{FP4_VALUES, IQ4_NL_VALUES};

/// Factors of eight rows for the (at most eight) blocks of 32 in a stored block: `[block][row]`.
#[repr(C, align(32))]
pub(super) struct Factors {
    pub(super) d: [[f32; 8]; 8],
    /// Negative minima: one a block, or one a half block.
    pub(super) min: [[[f32; 8]; 2]; 8],
    /// Integer scales of the half blocks, for formats that have them.
    pub(super) scale: [[[i32; 8]; 2]; 8],
}

impl Factors {
    pub(super) const ZERO: Self = Self { d: [[0.0; 8]; 8], min: [[[0.0; 8]; 2]; 8], scale: [[[0; 8]; 2]; 8] };
}

/// The same stored block of eight rows.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    /// Where the rows start.
    pub(super) starts: &'a [*const u8; 8],
    /// Bytes before the stored block.
    pub(super) skip: usize,
}

impl Rows<'_> {
    /// The stored block of row `i`.
    #[inline(always)]
    pub(super) fn at(&self, i: usize) -> *const u8 {
        self.starts[i].wrapping_add(self.skip)
    }
}

/// A quantised format.
///
/// # Safety
/// `codes` and `factors` may read `BYTES` bytes behind each pointer and no more.
pub(super) unsafe trait Format {
    /// Bytes of a stored block.
    const BYTES: usize;
    /// Blocks of 32 in a stored block.
    const PER: usize;
    /// Bits of a code: unsigned up to 6, signed for 8.
    const BITS: u32;
    /// Subtracted from each code (times its half block's scale).
    const OFFSET: i16 = 0;
    /// Minima of a block of 32.
    const MINS: usize = 0;
    /// Whether half blocks have integer scales.
    const HALVED: bool = false;
    /// Where a stored block of 32 has 16 bytes of nibbles that hold whole codes; 0 where it has not. Two rows then share a register.
    const NIBBLES: usize = 0;

    /// The 32 codes of block `j` of the stored block, in order.
    ///
    /// # Safety
    /// `block` points to a stored block; the processor has AVX2.
    unsafe fn codes(block: *const u8, j: usize) -> __m256i;

    /// The codes that nibbles stand for, in formats that have [`Format::NIBBLES`].
    ///
    /// # Safety
    /// The processor has AVX2.
    unsafe fn of_nibbles(nibbles: __m256i) -> __m256i {
        nibbles
    }

    /// The factors of the stored blocks at `rows`.
    ///
    /// # Safety
    /// Each of `rows` points to a stored block; the processor has AVX2 and F16C.
    unsafe fn factors(rows: Rows<'_>, f: &mut Factors);
}

/// The low and the high nibbles of 16 bytes, in that order.
#[inline(always)]
unsafe fn nibbles(p: *const u8) -> __m256i {
    // SAFETY: the caller points to 16 readable bytes.
    unsafe {
        let twice = _mm256_broadcastsi128_si256(_mm_loadu_si128(p.cast()));
        let shifted = _mm256_srlv_epi32(twice, _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4));
        _mm256_and_si256(shifted, _mm256_set1_epi8(15))
    }
}

/// 32 bytes, each `0x10` where its bit of the word at `p` is set.
#[inline(always)]
unsafe fn fifth_bits(p: *const u8) -> __m256i {
    // SAFETY: the caller points to four readable bytes.
    unsafe {
        let word = _mm256_set1_epi32(p.cast::<i32>().read_unaligned());
        let spread = _mm256_shuffle_epi8(
            word,
            _mm256_setr_epi64x(0, 0x0101_0101_0101_0101, 0x0202_0202_0202_0202, 0x0303_0303_0303_0303),
        );
        let bit = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64.cast_signed());
        let set = _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit), bit);
        _mm256_and_si256(set, _mm256_set1_epi8(16))
    }
}

/// A table of 16 bytes looked up by 32 nibbles.
#[inline(always)]
unsafe fn look_up(table: &[i8; 16], nibbles: __m256i) -> __m256i {
    // SAFETY: the table is 16 bytes.
    unsafe {
        let table = _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast()));
        _mm256_shuffle_epi8(table, nibbles)
    }
}

/// Bits `shift..shift + width` of each of 32 bytes; `shift` is a multiple of the field's width.
#[inline(always)]
unsafe fn field(p: *const u8, shift: usize, mask: i8) -> __m256i {
    // SAFETY: the caller points to 32 readable bytes.
    unsafe {
        let v = _mm256_loadu_si256(p.cast());
        let v = _mm256_srl_epi16(v, _mm_cvtsi32_si128(shift as i32));
        _mm256_and_si256(v, _mm256_set1_epi8(mask))
    }
}

/// The f16 at byte `at` behind each pointer.
#[inline(always)]
unsafe fn halves(rows: Rows<'_>, at: usize) -> __m256 {
    // SAFETY: the caller's pointers reach two bytes past `at`.
    unsafe {
        let h = |i: usize| rows.at(i).add(at).cast::<i16>().read_unaligned();
        _mm256_cvtph_ps(_mm_setr_epi16(h(0), h(1), h(2), h(3), h(4), h(5), h(6), h(7)))
    }
}

/// The two f16 at bytes 0 and 2 behind each pointer.
#[inline(always)]
unsafe fn half_pairs(rows: Rows<'_>) -> (__m256, __m256) {
    // SAFETY: the caller's pointers reach four bytes.
    unsafe {
        let w = |i: usize| rows.at(i).cast::<i32>().read_unaligned();
        let (a, b) = (_mm_setr_epi32(w(0), w(1), w(2), w(3)), _mm_setr_epi32(w(4), w(5), w(6), w(7)));
        let low = _mm_set1_epi32(0xffff);
        let first = _mm_packus_epi32(_mm_and_si128(a, low), _mm_and_si128(b, low));
        let second = _mm_packus_epi32(_mm_srli_epi32::<16>(a), _mm_srli_epi32::<16>(b));
        (_mm256_cvtph_ps(first), _mm256_cvtph_ps(second))
    }
}

/// The first byte of each stored block, widened.
#[inline(always)]
unsafe fn first_bytes(rows: Rows<'_>) -> __m256i {
    // SAFETY: the caller's stored blocks are a byte and more.
    unsafe {
        let e = |i: usize| (*rows.at(i)).cast_signed();
        let bytes = _mm_setr_epi8(e(0), e(1), e(2), e(3), e(4), e(5), e(6), e(7), 0, 0, 0, 0, 0, 0, 0, 0);
        _mm256_cvtepu8_epi32(bytes)
    }
}

#[inline(always)]
unsafe fn store(to: &mut [f32; 8], v: __m256) {
    // SAFETY: eight floats.
    unsafe { _mm256_storeu_ps(to.as_mut_ptr(), v) }
}

/// Stores the 16 byte columns of eight rows of 16 bytes as `scale[j][half]`, each byte mapped by `f`.
#[inline(always)]
unsafe fn store_scales(rows: [__m128i; 8], scale: &mut [[[i32; 8]; 2]; 8], f: impl Fn(__m128i) -> __m256i) {
    // SAFETY: register arithmetic and stores of eight integers each.
    unsafe {
        let mut r = rows;
        for _ in 0..3 {
            // Three perfect shuffles of rows i and i + 4 put each column's bytes in row order.
            r = [
                _mm_unpacklo_epi8(r[0], r[4]),
                _mm_unpackhi_epi8(r[0], r[4]),
                _mm_unpacklo_epi8(r[1], r[5]),
                _mm_unpackhi_epi8(r[1], r[5]),
                _mm_unpacklo_epi8(r[2], r[6]),
                _mm_unpackhi_epi8(r[2], r[6]),
                _mm_unpacklo_epi8(r[3], r[7]),
                _mm_unpackhi_epi8(r[3], r[7]),
            ];
        }
        for (r, scale) in r.into_iter().zip(scale) {
            _mm256_storeu_si256(scale[0].as_mut_ptr().cast(), f(r));
            _mm256_storeu_si256(scale[1].as_mut_ptr().cast(), f(_mm_srli_si128::<8>(r)));
        }
    }
}

macro_rules! simple {
    ($name:ident, $bytes:literal, $bits:literal, $offset:literal, $mins:literal, |$p:ident| $codes:expr, |$rows:ident, $f:ident| $factors:expr $(, $nibbles:literal, $of_nibbles:expr)?) => {
        #[allow(non_camel_case_types)]
        pub(super) struct $name;
        // SAFETY: both functions stay within `BYTES` behind their pointers.
        unsafe impl Format for $name {
            const BYTES: usize = $bytes;
            const PER: usize = 1;
            const BITS: u32 = $bits;
            const OFFSET: i16 = $offset;
            const MINS: usize = $mins;
            $(const NIBBLES: usize = $nibbles;)?
            #[inline(always)]
            unsafe fn codes($p: *const u8, _: usize) -> __m256i {
                // SAFETY: the caller's promise.
                unsafe { $codes }
            }
            $(
                #[inline(always)]
                unsafe fn of_nibbles(nibbles: __m256i) -> __m256i {
                    // SAFETY: the caller's promise.
                    unsafe { $of_nibbles(nibbles) }
                }
            )?
            #[inline(always)]
            unsafe fn factors($rows: Rows<'_>, $f: &mut Factors) {
                // SAFETY: the caller's promise.
                unsafe { $factors }
            }
        }
    };
}

simple!(Q4_0, 18, 4, 8, 0, |p| nibbles(p.add(2)), |rows, f| store(&mut f.d[0], halves(rows, 0)), 2, plain);
simple!(
    Q4_1,
    20,
    4,
    0,
    1,
    |p| nibbles(p.add(4)),
    |rows, f| {
        let (d, m) = half_pairs(rows);
        store(&mut f.d[0], d);
        store(&mut f.min[0][0], m);
    },
    4,
    plain
);
simple!(Q5_0, 22, 5, 16, 0, |p| _mm256_or_si256(nibbles(p.add(6)), fifth_bits(p.add(2))), |rows, f| store(
    &mut f.d[0],
    halves(rows, 0)
));
simple!(Q5_1, 24, 5, 0, 1, |p| _mm256_or_si256(nibbles(p.add(8)), fifth_bits(p.add(4))), |rows, f| {
    let (d, m) = half_pairs(rows);
    store(&mut f.d[0], d);
    store(&mut f.min[0][0], m);
});
simple!(Q8_0, 34, 8, 0, 0, |p| _mm256_loadu_si256(p.add(2).cast()), |rows, f| store(
    &mut f.d[0],
    halves(rows, 0)
));
simple!(Iq4Nl, 18, 8, 0, 0, |p| look_up(&IQ4_NL_VALUES, nibbles(p.add(2))), |rows, f| store(
    &mut f.d[0],
    halves(rows, 0)
));
simple!(
    Mxfp4,
    17,
    5,
    12,
    0,
    |p| look_up(&FP4_PLUS_12, nibbles(p.add(1))),
    |rows, f| {
        // 2^(e - 128) is subnormal for e = 0 and 1, where the second line is the greater one and exact.
        let e = first_bytes(rows);
        let normal = _mm256_add_epi32(_mm256_slli_epi32::<23>(e), _mm256_set1_epi32(-1 << 23));
        let subnormal = _mm256_add_epi32(_mm256_slli_epi32::<21>(e), _mm256_set1_epi32(1 << 21));
        let bits = _mm256_max_epi32(normal, subnormal);
        store(&mut f.d[0], _mm256_castsi256_ps(bits));
    },
    1,
    look_up_fp4
);

#[inline(always)]
unsafe fn look_up_fp4(nibbles: __m256i) -> __m256i {
    // SAFETY: the caller's processor has AVX2.
    unsafe { look_up(&FP4_PLUS_12, nibbles) }
}

/// Nibbles that are codes themselves.
#[inline(always)]
unsafe fn plain(nibbles: __m256i) -> __m256i {
    nibbles
}

/// Twice the FP4 values, made unsigned by their offset.
const FP4_PLUS_12: [i8; 16] = {
    let mut table = FP4_VALUES;
    let mut i = 0;
    while i < 16 {
        table[i] += 12;
        i += 1;
    }
    table
};

/// The factors of Q4_K and Q5_K: two f16, then eight 6-bit scales and minima in 12 bytes. Lanes are rows throughout.
#[inline(always)]
unsafe fn k_factors(rows: Rows<'_>, f: &mut Factors) {
    // SAFETY: the caller's pointers reach 16 bytes.
    unsafe {
        let both = |i: usize| _mm256_loadu2_m128i(rows.at(i + 4).cast(), rows.at(i).cast());
        let (r0, r1, r2, r3) = (both(0), both(1), both(2), both(3));
        let (low_a, low_b) = (_mm256_unpacklo_epi32(r0, r1), _mm256_unpacklo_epi32(r2, r3));
        let (high_a, high_b) = (_mm256_unpackhi_epi32(r0, r1), _mm256_unpackhi_epi32(r2, r3));
        let halves = _mm256_unpacklo_epi64(low_a, low_b);
        // Words of the 12 bytes: low six bits of four scales, of four minima, and low nibbles of the other four pairs.
        let a = _mm256_unpackhi_epi64(low_a, low_b);
        let b = _mm256_unpacklo_epi64(high_a, high_b);
        let c = _mm256_unpackhi_epi64(high_a, high_b);
        let low = _mm256_and_si256(halves, _mm256_set1_epi32(0xffff));
        let float = |v: __m256i| {
            let (first, second) = (_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v));
            _mm256_cvtph_ps(_mm_packus_epi32(first, second))
        };
        let d = float(low);
        let dmin = _mm256_xor_ps(float(_mm256_srli_epi32::<16>(halves)), _mm256_set1_ps(-0.0));
        let bits = |v: __m256i, shift: i32, mask: i32| {
            let shifted = _mm256_srl_epi32(v, _mm_cvtsi32_si128(shift));
            _mm256_and_si256(shifted, _mm256_set1_epi32(mask))
        };
        let (mut scale, mut min) = ([_mm256_setzero_si256(); 8], [_mm256_setzero_si256(); 8]);
        for j in 0..4 {
            let at = 8 * j as i32;
            scale[j] = bits(a, at, 63);
            min[j] = bits(b, at, 63);
            scale[j + 4] = _mm256_or_si256(bits(c, at, 15), bits(a, at + 2, 0x30));
            min[j + 4] = _mm256_or_si256(bits(c, at + 4, 15), bits(b, at + 2, 0x30));
        }
        for j in 0..8 {
            store(&mut f.d[j], _mm256_mul_ps(_mm256_cvtepi32_ps(scale[j]), d));
            store(&mut f.min[j][0], _mm256_mul_ps(_mm256_cvtepi32_ps(min[j]), dmin));
        }
    }
}

/// Copies each row's one `d` to all blocks.
#[inline(always)]
unsafe fn same_d(d: __m256, f: &mut Factors) {
    for to in &mut f.d {
        // SAFETY: eight floats.
        unsafe { store(to, d) }
    }
}

macro_rules! k_format {
    ($name:ident, $bytes:literal, $bits:literal, $offset:literal, $mins:literal, $halved:literal, |$p:ident, $j:ident| $codes:expr, |$rows:ident, $f:ident| $factors:expr) => {
        pub(super) struct $name;
        // SAFETY: both functions stay within `BYTES` behind their pointers.
        unsafe impl Format for $name {
            const BYTES: usize = $bytes;
            const PER: usize = 8;
            const BITS: u32 = $bits;
            const OFFSET: i16 = $offset;
            const MINS: usize = $mins;
            const HALVED: bool = $halved;
            #[inline(always)]
            unsafe fn codes($p: *const u8, $j: usize) -> __m256i {
                // SAFETY: the caller's promise.
                unsafe { $codes }
            }
            #[inline(always)]
            unsafe fn factors($rows: Rows<'_>, $f: &mut Factors) {
                // SAFETY: the caller's promise.
                unsafe { $factors }
            }
        }
    };
}

k_format!(Q4K, 144, 4, 0, 1, false, |p, j| field(p.add(16 + j / 2 * 32), 4 * (j % 2), 15), |rows, f| {
    k_factors(rows, f);
});
k_format!(
    Q5K,
    176,
    5,
    0,
    1,
    false,
    |p, j| {
        let high = _mm256_slli_epi16::<4>(field(p.add(16), j, 1));
        _mm256_or_si256(field(p.add(48 + j / 2 * 32), 4 * (j % 2), 15), high)
    },
    |rows, f| {
        k_factors(rows, f);
    }
);
k_format!(
    Q6K,
    210,
    6,
    32,
    0,
    true,
    |p, j| {
        let low = field(p.add(j / 4 * 64 + j % 2 * 32), j % 4 / 2 * 4, 15);
        let high = field(p.add(128 + j / 4 * 32), 2 * (j % 4), 3);
        _mm256_or_si256(low, _mm256_slli_epi16::<4>(high))
    },
    |rows, f| {
        same_d(halves(rows, 208), f);
        let scales: [__m128i; 8] = std::array::from_fn(|i| _mm_loadu_si128(rows.at(i).add(192).cast()));
        store_scales(scales, &mut f.scale, |b| _mm256_cvtepi8_epi32(b));
    }
);
k_format!(
    Q3K,
    110,
    6,
    4,
    0,
    true,
    |p, j| {
        let low = field(p.add(32 + j / 4 * 32), 2 * (j % 4), 3);
        _mm256_or_si256(low, _mm256_slli_epi16::<2>(field(p, j, 1)))
    },
    |rows, f| {
        same_d(halves(rows, 108), f);
        for i in 0..8 {
            let row = rows.at(i);
            let packed = std::slice::from_raw_parts(row.add(96), 12);
            for j in 0..16 {
                f.scale[j / 2][j % 2][i] = q3_scale(packed, j);
            }
        }
    }
);
k_format!(Q2K, 84, 4, 0, 2, true, |p, j| field(p.add(16 + j / 4 * 32), 2 * (j % 4), 3), |rows, f| {
    same_d(halves(rows, 80), f);
    let mut dmin = [0.0; 8];
    store(&mut dmin, halves(rows, 82));
    for i in 0..8 {
        let row = rows.at(i);
        for j in 0..16 {
            let packed = *row.add(j);
            f.scale[j / 2][j % 2][i] = i32::from(packed & 15);
            f.min[j / 2][j % 2][i] = -(dmin[i] * f32::from(packed >> 4));
        }
    }
});
k_format!(
    Iq4Xs,
    136,
    8,
    0,
    0,
    false,
    |p, j| look_up(&IQ4_NL_VALUES, nibbles(p.add(8 + 16 * j))),
    |rows, f| {
        let mut d = [0.0; 8];
        store(&mut d, halves(rows, 0));
        for i in 0..8 {
            let row = rows.at(i);
            let head = std::slice::from_raw_parts(row, 8);
            for j in 0..8 {
                f.d[j][i] = d[i] * iq4_xs_scale(head, j) as f32;
            }
        }
    }
);
