//! The exponential and what is built on it, with the exact steps of the SIMD versions.

use crate::scalar::dot::sum8;

/// `e^x` in f32 to about one unit in the last place: `2^n · p(r)` with `r = x - n ln 2` in two parts and a polynomial
/// of degree six (Cephes' coefficients for |r| ≤ ln 2 / 2). Below -87.3 the result is 0; above 88.7, infinity.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    if x.is_nan() {
        return x;
    }
    if x < EXP_LOW {
        return 0.0;
    }
    if x > EXP_HIGH {
        return f32::INFINITY;
    }
    let n = (x * std::f32::consts::LOG2_E).round_ties_even();
    let r = n.mul_add(-LN2_LOW, n.mul_add(-LN2_HIGH, x));
    let mut p = EXP_POLY[0];
    for &c in &EXP_POLY[1..] {
        p = p.mul_add(r, c);
    }
    let y = p.mul_add(r * r, r) + 1.0;
    // Two steps keep 2^128 out of the exponent field at the upper end.
    let half = (n as i32) >> 1;
    let power = |e: i32| f32::from_bits(((e + 127) as u32) << 23);
    y * power(half) * power(n as i32 - half)
}

pub(crate) const EXP_LOW: f32 = -87.3;
pub(crate) const EXP_HIGH: f32 = 88.7;
pub(crate) const LN2_HIGH: f32 = 0.693_359_4;
pub(crate) const LN2_LOW: f32 = -2.121_944_4e-4;
pub(crate) const EXP_POLY: [f32; 6] =
    [1.987_569_1e-4, 1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5];

/// `x · sigmoid(x)`.
pub(crate) fn silu(x: f32) -> f32 {
    x / (1.0 + exp(-x))
}

/// `1 / (1 + e^-x)`.
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// `(min(max(up, -limit), limit) + 1) · g · sigmoid(alpha · g)` with `g = min(gate, limit)`. NaN stays NaN.
pub(crate) fn swiglu_clamped(gate: f32, up: f32, limit: f32, alpha: f32) -> f32 {
    // Not `f32::min`, which drops a NaN.
    let g = if limit < gate { limit } else { gate };
    let u = if limit < up { limit } else { up };
    let u = if -limit > u { -limit } else { u };
    (u + 1.0) * (g / (1.0 + exp(-alpha * g)))
}

/// Softmax in place of finite values: the sum is eight chains over the elements and a tree.
pub(crate) fn softmax(x: &mut [f32]) {
    let top = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sums = [0.0_f32; 8];
    for (i, x) in x.iter_mut().enumerate() {
        *x = exp(*x - top);
        sums[i % 8] += *x;
    }
    let sum = sum8(sums);
    x.iter_mut().for_each(|x| *x /= sum);
}

/// The tanh form of GELU: `x/2 · (1 + tanh(√(2/π)(x + 0.044715 x³)))`, with `(1 + tanh u)/2 = 1/(1 + e^(-2u))`.
pub(crate) fn gelu_tanh(x: f32) -> f32 {
    let u = x * (GELU_CUBIC * x).mul_add(x, 1.0);
    x / (1.0 + exp(u * GELU_SCALE))
}

pub(crate) const GELU_CUBIC: f32 = 0.044_715;
/// `-2 √(2/π)`.
pub(crate) const GELU_SCALE: f32 = -1.595_769;

/// `1 / sqrt(mean(x²) + eps)`: eight chains over the elements, then a tree.
pub(crate) fn rms_scale(x: &[f32], eps: f32) -> f32 {
    let mut acc = [0.0_f32; 8];
    for (i, &v) in x.iter().enumerate() {
        acc[i % 8] = v.mul_add(v, acc[i % 8]);
    }
    1.0 / (sum8(acc) / x.len() as f32 + eps).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_stays_within_two_units_of_the_double_precision_result() {
        let mut x = -87.0_f32;
        while x < 88.0 {
            let (got, want) = (f64::from(exp(x)), f64::from(x).exp());
            assert!((got - want).abs() <= want * 2.5e-7, "exp({x}) = {got}, expected {want}");
            x += 0.003_7;
        }
        assert_eq!((exp(0.0), exp(f32::NEG_INFINITY), exp(f32::INFINITY)), (1.0, 0.0, f32::INFINITY));
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn activations_match_their_definitions_in_double_precision() {
        for i in -400..400 {
            let x = i as f32 * 0.05;
            let d = f64::from(x);
            let silu_want = d / (1.0 + (-d).exp());
            let gelu_want =
                0.5 * d * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (d + 0.044_715 * d.powi(3))).tanh());
            assert!((f64::from(silu(x)) - silu_want).abs() <= 3e-7 * silu_want.abs() + 1e-12, "silu {x}");
            assert!((f64::from(gelu_tanh(x)) - gelu_want).abs() <= 2e-6 * gelu_want.abs() + 1e-6, "gelu {x}");
        }
    }
}
