//! Exponential, activations and norms, eight lanes at a time, step for step as their scalar twins.

use crate::scalar::{self, EXP_HIGH, EXP_LOW, EXP_POLY, GELU_CUBIC, GELU_SCALE, LN2_HIGH, LN2_LOW};
use core::arch::x86_64::*;

/// The sum of eight lanes as a tree of halves.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn sum8(v: __m256) -> f32 {
    let four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
}

/// `e^x`, as [`scalar::exp`].
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(crate) fn exp(x: __m256) -> __m256 {
    let n = _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(_mm256_mul_ps(
        x,
        _mm256_set1_ps(std::f32::consts::LOG2_E),
    ));
    let r = _mm256_fmadd_ps(n, _mm256_set1_ps(-LN2_HIGH), x);
    let r = _mm256_fmadd_ps(n, _mm256_set1_ps(-LN2_LOW), r);
    let mut p = _mm256_set1_ps(EXP_POLY[0]);
    for c in &EXP_POLY[1..] {
        p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(*c));
    }
    let y = _mm256_add_ps(_mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r), _mm256_set1_ps(1.0));
    let n = _mm256_cvtps_epi32(n);
    let half = _mm256_srai_epi32::<1>(n);
    let power = |e: __m256i| {
        _mm256_castsi256_ps(_mm256_slli_epi32::<23>(_mm256_add_epi32(e, _mm256_set1_epi32(127))))
    };
    let y = _mm256_mul_ps(_mm256_mul_ps(y, power(half)), power(_mm256_sub_epi32(n, half)));
    let y = _mm256_blendv_ps(y, _mm256_setzero_ps(), _mm256_cmp_ps::<_CMP_LT_OQ>(x, _mm256_set1_ps(EXP_LOW)));
    let y = _mm256_blendv_ps(
        y,
        _mm256_set1_ps(f32::INFINITY),
        _mm256_cmp_ps::<_CMP_GT_OQ>(x, _mm256_set1_ps(EXP_HIGH)),
    );
    _mm256_blendv_ps(y, x, _mm256_cmp_ps::<_CMP_UNORD_Q>(x, x))
}

/// `gate = silu(gate) · up`.
#[target_feature(enable = "avx2,fma")]
pub(crate) fn silu_mul(gate: &mut [f32], up: &[f32]) {
    let one = _mm256_set1_ps(1.0);
    let silu = |x| {
        let e = exp(_mm256_xor_ps(x, _mm256_set1_ps(-0.0)));
        _mm256_div_ps(x, _mm256_add_ps(one, e))
    };
    gated(gate, up, silu, scalar::silu);
}

/// `gate = gelu(gate) · up`, tanh form.
#[target_feature(enable = "avx2,fma")]
pub(crate) fn gelu_mul(gate: &mut [f32], up: &[f32]) {
    let one = _mm256_set1_ps(1.0);
    let gelu = |x| {
        let cubic = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_set1_ps(GELU_CUBIC), x), x, one);
        let e = exp(_mm256_mul_ps(_mm256_mul_ps(x, cubic), _mm256_set1_ps(GELU_SCALE)));
        _mm256_div_ps(x, _mm256_add_ps(one, e))
    };
    gated(gate, up, gelu, scalar::gelu_tanh);
}

/// `gate = f(gate) · up`, eight elements at a time; the rest by the scalar twin.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn gated(gate: &mut [f32], up: &[f32], f: impl Fn(__m256) -> __m256, twin: impl Fn(f32) -> f32) {
    let (gates, tail) = gate.as_chunks_mut::<8>();
    let (ups, up_tail) = up.as_chunks::<8>();
    for (g, u) in gates.iter_mut().zip(ups) {
        // SAFETY: both are eight floats.
        unsafe {
            let y = _mm256_mul_ps(f(_mm256_loadu_ps(g.as_ptr())), _mm256_loadu_ps(u.as_ptr()));
            _mm256_storeu_ps(g.as_mut_ptr(), y);
        }
    }
    tail.iter_mut().zip(up_tail).for_each(|(g, u)| *g = twin(*g) * u);
}

/// `1 / sqrt(mean(x²) + eps)`, as [`scalar::rms_scale`].
#[target_feature(enable = "avx2,fma")]
pub(crate) fn rms_scale(x: &[f32], eps: f32) -> f32 {
    let (chunks, tail) = x.as_chunks::<8>();
    let mut acc = _mm256_setzero_ps();
    for c in chunks {
        // SAFETY: eight floats.
        let v = unsafe { _mm256_loadu_ps(c.as_ptr()) };
        acc = _mm256_fmadd_ps(v, v, acc);
    }
    if !tail.is_empty() {
        // Zeros add nothing to the chains that the tail does not reach.
        let mut last = [0.0_f32; 8];
        last[..tail.len()].copy_from_slice(tail);
        // SAFETY: eight floats.
        let v = unsafe { _mm256_loadu_ps(last.as_ptr()) };
        acc = _mm256_fmadd_ps(v, v, acc);
    }
    1.0 / (sum8(acc) / x.len() as f32 + eps).sqrt()
}
