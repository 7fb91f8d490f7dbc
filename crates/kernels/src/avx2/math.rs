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

/// `x · sigmoid(x)`, as [`scalar::silu`].
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn silu8(x: __m256) -> __m256 {
    _mm256_div_ps(x, one_plus_exp(_mm256_xor_ps(x, _mm256_set1_ps(-0.0))))
}

/// `1 + e^x`.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn one_plus_exp(x: __m256) -> __m256 {
    _mm256_add_ps(_mm256_set1_ps(1.0), exp(x))
}

/// `gate = silu(gate) · up`.
#[target_feature(enable = "avx2,fma")]
pub(crate) fn silu_mul(gate: &mut [f32], up: &[f32]) {
    zip(gate, up, |g, u| _mm256_mul_ps(silu8(g), u), |g, u| scalar::silu(g) * u);
}

/// `gate = gelu(gate) · up`, tanh form.
#[target_feature(enable = "avx2,fma")]
pub(crate) fn gelu_mul(gate: &mut [f32], up: &[f32]) {
    let gelu = |x| {
        let cubic = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_set1_ps(GELU_CUBIC), x), x, _mm256_set1_ps(1.0));
        let u = _mm256_mul_ps(_mm256_mul_ps(x, cubic), _mm256_set1_ps(GELU_SCALE));
        _mm256_div_ps(x, one_plus_exp(u))
    };
    zip(gate, up, |g, u| _mm256_mul_ps(gelu(g), u), |g, u| scalar::gelu_tanh(g) * u);
}

/// `gate = swiglu_clamped(gate, up)`, as [`scalar::swiglu_clamped`]: where an operand is NaN, minimum and maximum give their second.
#[target_feature(enable = "avx2,fma")]
pub(crate) fn swiglu_clamped(gate: &mut [f32], up: &[f32], limit: f32, alpha: f32) {
    let swiglu = |g, u| {
        let g = _mm256_min_ps(_mm256_set1_ps(limit), g);
        let u = _mm256_max_ps(_mm256_set1_ps(-limit), _mm256_min_ps(_mm256_set1_ps(limit), u));
        let g = _mm256_div_ps(g, one_plus_exp(_mm256_mul_ps(_mm256_set1_ps(-alpha), g)));
        _mm256_mul_ps(_mm256_add_ps(u, _mm256_set1_ps(1.0)), g)
    };
    zip(gate, up, swiglu, |g, u| scalar::swiglu_clamped(g, u, limit, alpha));
}

/// `x = x · sigmoid(gate)`.
#[target_feature(enable = "avx2,fma")]
pub(crate) fn sigmoid_mul(x: &mut [f32], gate: &[f32]) {
    let minus = _mm256_set1_ps(-0.0);
    zip(
        x,
        gate,
        |x, g| _mm256_div_ps(x, one_plus_exp(_mm256_xor_ps(g, minus))),
        |x, g| x / (1.0 + scalar::exp(-g)),
    );
}

/// `x = f(x, y)`, eight elements at a time; the rest by the scalar twin.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn zip(x: &mut [f32], y: &[f32], f: impl Fn(__m256, __m256) -> __m256, twin: impl Fn(f32, f32) -> f32) {
    let (xs, x_tail) = x.as_chunks_mut::<8>();
    let (ys, y_tail) = y.as_chunks::<8>();
    for (x, y) in xs.iter_mut().zip(ys) {
        // SAFETY: both are eight floats.
        unsafe {
            let result = f(_mm256_loadu_ps(x.as_ptr()), _mm256_loadu_ps(y.as_ptr()));
            _mm256_storeu_ps(x.as_mut_ptr(), result);
        }
    }
    x_tail.iter_mut().zip(y_tail).for_each(|(x, y)| *x = twin(*x, *y));
}

/// Softmax in place of finite values, as [`scalar::softmax`].
#[target_feature(enable = "avx2,fma")]
pub(crate) fn softmax(x: &mut [f32]) {
    let (chunks, tail) = x.as_chunks_mut::<8>();
    let mut last = [f32::NEG_INFINITY; 8];
    last[..tail.len()].copy_from_slice(tail);
    // SAFETY: eight floats.
    let mut top = unsafe { _mm256_loadu_ps(last.as_ptr()) };
    for c in &*chunks {
        // SAFETY: eight floats.
        top = _mm256_max_ps(top, unsafe { _mm256_loadu_ps(c.as_ptr()) });
    }
    let mut lanes = [0.0_f32; 8];
    // SAFETY: eight floats.
    unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), top) };
    let top = _mm256_set1_ps(lanes.into_iter().fold(f32::NEG_INFINITY, f32::max));
    let mut sums = _mm256_setzero_ps();
    // The last lanes past the end are `e^-∞`: nothing in their chains.
    for c in chunks.iter_mut().chain([&mut last]) {
        // SAFETY: eight floats.
        unsafe {
            let e = exp(_mm256_sub_ps(_mm256_loadu_ps(c.as_ptr()), top));
            sums = _mm256_add_ps(sums, e);
            _mm256_storeu_ps(c.as_mut_ptr(), e);
        }
    }
    let sum = sum8(sums);
    tail.copy_from_slice(&last[..tail.len()]);
    for c in chunks {
        // SAFETY: eight floats.
        unsafe {
            let p = _mm256_div_ps(_mm256_loadu_ps(c.as_ptr()), _mm256_set1_ps(sum));
            _mm256_storeu_ps(c.as_mut_ptr(), p);
        }
    }
    tail.iter_mut().for_each(|p| *p /= sum);
}

/// The logistic function in place.
#[target_feature(enable = "avx2,fma")]
pub(crate) fn sigmoid(x: &mut [f32]) {
    let (chunks, tail) = x.as_chunks_mut::<8>();
    for c in chunks {
        // SAFETY: eight floats.
        unsafe {
            let minus = _mm256_xor_ps(_mm256_loadu_ps(c.as_ptr()), _mm256_set1_ps(-0.0));
            _mm256_storeu_ps(c.as_mut_ptr(), _mm256_div_ps(_mm256_set1_ps(1.0), one_plus_exp(minus)));
        }
    }
    tail.iter_mut().for_each(|x| *x = scalar::sigmoid(*x));
}

/// `x = x · scale · weight · silu(z)`.
#[target_feature(enable = "avx2,fma")]
pub(crate) fn scale_gated(x: &mut [f32], scale: f32, weight: &[f32], z: &[f32]) {
    let factor = _mm256_set1_ps(scale);
    zip(x, weight, |x, w| _mm256_mul_ps(_mm256_mul_ps(x, factor), w), |x, w| x * scale * w);
    zip(x, z, |x, z| _mm256_mul_ps(x, silu8(z)), |x, z| x * scalar::silu(z));
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
