//! The gated delta rule, its gates and its convolution, one element at a time.

use crate::delta::Step;
use crate::scalar::dot::sum8;
use crate::scalar::{exp, silu};

/// One position for a tile of a head's state `[k_dim, width]`: what it holds for `k`, corrected towards the values in `x`, and read
/// with `q` into `x`. A column is one chain of fused multiply-adds over the keys for each of the two reads; columns past `x` are
/// padding.
pub(crate) fn delta_step(state: &mut [f32], q: &[f32], k: &[f32], s: &Step, x: &mut [f32]) {
    let width = state.len() / k.len();
    for (column, x) in x.iter_mut().enumerate() {
        let (mut held, mut read) = (0.0_f32, 0.0_f32);
        for ((k, q), row) in k.iter().zip(q).zip(state.chunks_exact(width)) {
            held = row[column].mul_add(*k, held);
            read = row[column].mul_add(*q, read);
        }
        let correction = s.beta * (-s.held).mul_add(held, *x);
        *x = s.q_scale * correction.mul_add(s.kq, s.decay * read);
        let change = correction * s.k_scale;
        for (k, row) in k.iter().zip(state.chunks_exact_mut(width)) {
            row[column] = k.mul_add(change, s.decay * row[column]);
        }
    }
}

/// `q · q`, `k · k` and `q · k`, each as eight chains over the elements and a tree.
pub(crate) fn delta_dots(q: &[f32], k: &[f32]) -> [f32; 3] {
    let mut acc = [[0.0_f32; 8]; 3];
    for (i, (&q, &k)) in q.iter().zip(k).enumerate() {
        acc[0][i % 8] = q.mul_add(q, acc[0][i % 8]);
        acc[1][i % 8] = k.mul_add(k, acc[1][i % 8]);
        acc[2][i % 8] = q.mul_add(k, acc[2][i % 8]);
    }
    acc.map(sum8)
}

/// `ln(1 + e^x)`, as `max(x, 0) + ln(1 + t)` with `t = e^-|x|` and `ln(1 + t) = 2 artanh(t / (2 + t))`: the argument is at
/// most 1/3, so eight terms of the series are exact to rounding.
#[inline(always)]
pub(crate) fn softplus(x: f32) -> f32 {
    let t = exp(-x.abs());
    let s = t / (2.0 + t);
    let square = s * s;
    let mut p = 1.0_f32 / 15.0;
    for odd in [13.0_f32, 11.0, 9.0, 7.0, 5.0, 3.0] {
        p = p.mul_add(square, 1.0 / odd);
    }
    let log = 2.0 * (p * square).mul_add(s, s);
    if x > 0.0 { x + log } else { log }
}

/// One position of a causal convolution of each channel with its own taps, through SiLU. `taps` is `[conv_width, n]`, oldest
/// first; `ring` has as many rows of inputs, of which row `newest` is replaced by `x` and the one after it is the oldest.
pub(crate) fn conv_step(taps: &[f32], ring: &mut [f32], newest: usize, x: &mut [f32]) {
    let (n, width) = (x.len(), taps.len() / x.len());
    ring[newest * n..(newest + 1) * n].copy_from_slice(x);
    for (c, x) in x.iter_mut().enumerate() {
        *x = silu((0..width).fold(0.0_f32, |acc, tap| {
            taps[tap * n + c].mul_add(ring[(newest + 1 + tap) % width * n + c], acc)
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn softplus_matches_its_definition_in_double_precision() {
        let mut x = -60.0_f32;
        while x < 60.0 {
            let want = f64::from(x).exp().ln_1p();
            assert!((f64::from(softplus(x)) - want).abs() <= want * 4e-7, "softplus({x}) = {}", softplus(x));
            x += 0.013;
        }
        assert_eq!((softplus(1e30), softplus(f32::INFINITY), softplus(-1e30)), (1e30, f32::INFINITY, 0.0));
        assert!(softplus(f32::NAN).is_nan());
    }
}
