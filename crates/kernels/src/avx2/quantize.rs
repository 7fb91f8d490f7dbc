//! Quantisation of activations, a block of 32 at a time, as its scalar twin.

use core::arch::x86_64::*;

/// Quantises consecutive blocks; `x` has 32 elements for each entry of `d`.
#[target_feature(enable = "avx2,fma")]
pub(crate) fn blocks(x: &[f32], q: &mut [i8], d: &mut [f32], sums: &mut [[i16; 2]], scaled: &mut [[f32; 3]]) {
    let sign = _mm256_set1_epi32(i32::MAX);
    let (xs, qs) = (x.as_chunks::<32>().0, q.as_chunks_mut::<32>().0);
    for ((x, q), ((d, sums), scaled)) in xs.iter().zip(qs).zip(d.iter_mut().zip(sums).zip(scaled)) {
        // SAFETY: 32 floats are four vectors.
        let v: [__m256; 4] = std::array::from_fn(|i| unsafe { _mm256_loadu_ps(x.as_ptr().add(8 * i)) });
        // The bits of magnitudes order like the magnitudes, and put NaN above infinity.
        let bits = v.map(|v| _mm256_and_si256(_mm256_castps_si256(v), sign));
        let m = _mm256_max_epi32(_mm256_max_epi32(bits[0], bits[1]), _mm256_max_epi32(bits[2], bits[3]));
        let m = _mm_max_epi32(_mm256_castsi256_si128(m), _mm256_extracti128_si256::<1>(m));
        let m = _mm_max_epi32(m, _mm_shuffle_epi32::<0b01_00_11_10>(m));
        let m = _mm_max_epi32(m, _mm_shuffle_epi32::<0b10_11_00_01>(m));
        let amax = f32::from_bits(_mm_cvtsi128_si32(m).cast_unsigned());
        if !amax.is_finite() {
            q.fill(0);
            (*d, *sums, *scaled) = (f32::NAN, [0; 2], [f32::NAN; 3]);
            continue;
        }
        *d = amax / 127.0;
        let inverse = if *d > 0.0 { 1.0 / *d } else { 0.0 };
        let inverse = _mm256_set1_ps(if inverse.is_finite() { inverse } else { 0.0 });
        let i = v.map(|v| _mm256_cvtps_epi32(_mm256_mul_ps(v, inverse)));
        let words = [_mm256_packs_epi32(i[0], i[1]), _mm256_packs_epi32(i[2], i[3])];
        let bytes = _mm256_packs_epi16(words[0], words[1]);
        // Packing works within halves of a register: put the groups of four back in order.
        let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
        let bytes = _mm256_permutevar8x32_epi32(bytes, order);
        let bytes = _mm256_max_epi8(bytes, _mm256_set1_epi8(-127));
        // SAFETY: 32 bytes.
        unsafe { _mm256_storeu_si256(q.as_mut_ptr().cast(), bytes) };
        let pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes);
        let fours = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
        let half = |h: __m128i| {
            let h = _mm_add_epi32(h, _mm_shuffle_epi32::<0b01_00_11_10>(h));
            let h = _mm_add_epi32(h, _mm_shuffle_epi32::<0b10_11_00_01>(h));
            _mm_cvtsi128_si32(h) as i16
        };
        *sums = [half(_mm256_castsi256_si128(fours)), half(_mm256_extracti128_si256::<1>(fours))];
        *scaled = [*d * f32::from(sums[0]), *d * f32::from(sums[1]), *d * f32::from(sums[0] + sums[1])];
    }
}
