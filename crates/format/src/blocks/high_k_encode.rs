//! Quantising to Q4_K and Q6_K: a search over step sizes, each judged by weighted least squares.
//!
//! For every sub-block a handful of step sizes around the one that just spans its range are tried. A step size fixes
//! the codes; given the codes, the best scale (and minimum) is the solution of a weighted linear least-squares
//! problem. The weight of a value is its magnitude plus the super-block's root mean square: large weights matter
//! more to a dot product, and small ones still count. The winners are then expressed in the super-block's integer
//! scales, and the codes are chosen again for the scales as they are stored.

use super::encode::{inverse, scale, widest};

/// By how many steps the range is stretched or shrunk. The plain step comes first: where nothing is better, as for
/// values on the grid, it keeps them exact.
const OFFSETS: [f64; 19] =
    [0.0, 0.1, -0.1, 0.2, -0.2, 0.3, -0.3, 0.4, -0.4, 0.5, -0.5, 0.6, -0.6, 0.7, -0.7, 0.8, -0.8, 0.9, -0.9];
/// A gain smaller than this share is rounding.
const NOISE: f64 = 1e-9;

pub(super) fn to_q4_k(values: &[f32; 256], out: &mut Vec<u8>) -> Option<()> {
    let base = root_mean_square(values);
    let (subs, _) = values.as_chunks::<32>();
    let fits: [Affine; 8] = std::array::from_fn(|s| Affine::fit(&subs[s], base));
    let d = scale(fits.iter().fold(0.0, |max, fit| fit.scale.max(max)) / 63.0)?;
    let dmin = scale(fits.iter().fold(0.0, |max, fit| fit.min.max(max)) / 63.0)?;
    let six_bits = |value: f32, step: f32| (value * inverse(step)).round().min(63.0) as u8;
    let sc = fits.map(|fit| six_bits(fit.scale, d.to_f32()));
    let mn = fits.map(|fit| six_bits(fit.min, dmin.to_f32()));

    out.extend(d.to_le_bytes());
    out.extend(dmin.to_le_bytes());
    out.extend((0..4).map(|s| sc[s] | sc[s + 4] >> 4 << 6));
    out.extend((0..4).map(|s| mn[s] | mn[s + 4] >> 4 << 6));
    out.extend((4..8).map(|s| sc[s] & 15 | mn[s] << 4));
    let code = |s: usize, l: usize| {
        let (step, min) = (d.to_f32() * f32::from(sc[s]), dmin.to_f32() * f32::from(mn[s]));
        ((subs[s][l] + min) * inverse(step)).round().clamp(0.0, 15.0) as u8
    };
    for pair in 0..4 {
        out.extend((0..32).map(|l| code(2 * pair, l) | code(2 * pair + 1, l) << 4));
    }
    Some(())
}

pub(super) fn to_q6_k(values: &[f32; 256], out: &mut Vec<u8>) -> Option<()> {
    let base = root_mean_square(values);
    let (subs, _) = values.as_chunks::<16>();
    let scales: [f32; 16] = std::array::from_fn(|s| symmetric(&subs[s], base));
    // The scale of largest magnitude becomes -128, the code without a positive twin.
    let d = scale(scales[widest(&scales)] / -128.0)?;
    let sc = scales.map(|scale| (scale * inverse(d.to_f32())).round().min(127.0) as i8);
    let mut codes = [0; 256];
    for (i, code) in codes.iter_mut().enumerate() {
        let step = d.to_f32() * f32::from(sc[i / 16]);
        *code = ((values[i] * inverse(step)).round().clamp(-32.0, 31.0) + 32.0) as u8;
    }
    for half in codes.as_chunks::<128>().0 {
        out.extend((0..64).map(|l| half[l] & 15 | half[l + 64] << 4));
    }
    for half in codes.as_chunks::<128>().0 {
        out.extend((0..32).map(|l| (0..4).fold(0, |bits, j| bits | half[32 * j + l] >> 4 << (2 * j))));
    }
    out.extend(sc.map(i8::cast_unsigned));
    out.extend(d.to_le_bytes());
    Some(())
}

/// In f64, where no square of an f32 overflows.
fn root_mean_square(values: &[f32]) -> f64 {
    (values.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / values.len() as f64).sqrt()
}

/// `value = scale * code - min` with codes 0 to 15; neither is negative.
#[derive(Clone, Copy)]
struct Affine {
    scale: f32,
    min: f32,
}

impl Affine {
    fn fit(values: &[f32; 32], base: f64) -> Self {
        let low = f64::from(values.iter().copied().fold(0.0, f32::min));
        let high = f64::from(values.iter().copied().fold(f32::NEG_INFINITY, f32::max));
        if high <= low {
            return Self { scale: 0.0, min: -low as f32 };
        }
        let values = values.map(f64::from);
        let mut best = Self { scale: 0.0, min: 0.0 };
        let mut best_error = f64::INFINITY;
        for offset in OFFSETS {
            let steps = 15.0 + offset;
            let codes = values.map(|v| ((v - low) * steps / (high - low)).round().clamp(0.0, 15.0));
            let (scale, min) = solve(&values, &codes, base);
            let error = values
                .iter()
                .zip(codes)
                .map(|(v, q)| (base + v.abs()) * (scale * q - min - v).powi(2))
                .sum::<f64>();
            if error < best_error * (1.0 - NOISE) {
                best_error = error;
                best = Self { scale: scale as f32, min: min as f32 };
            }
        }
        best
    }
}

/// The scale and minimum of least weighted error for given codes.
fn solve(values: &[f64; 32], codes: &[f64; 32], base: f64) -> (f64, f64) {
    let [mut w, mut wq, mut wqq, mut wv, mut wqv] = [0.0; 5];
    for (v, q) in values.iter().zip(codes) {
        let weight = base + v.abs();
        w += weight;
        wq += weight * q;
        wqq += weight * q * q;
        wv += weight * v;
        wqv += weight * q * v;
    }
    let determinant = w * wqq - wq * wq;
    if determinant > 0.0 {
        let scale = (w * wqv - wq * wv) / determinant;
        let min = (wq * wqv - wqq * wv) / determinant;
        if min >= 0.0 {
            return (scale.max(0.0), min);
        }
    }
    // All codes equal, or the minimum would have to be negative: the best scale through zero.
    (if wqq > 0.0 { (wqv / wqq).max(0.0) } else { 0.0 }, 0.0)
}

/// The signed scale of `value = scale * code`, codes -32 to 31, of least weighted error.
fn symmetric(values: &[f32; 16], base: f64) -> f32 {
    let widest = f64::from(values[widest(values)]);
    let mut best = (0.0, 0.0);
    for offset in OFFSETS {
        let steps = -32.0 - offset;
        let (mut wqv, mut wqq) = (0.0, 0.0);
        for v in values.iter().map(|v| f64::from(*v)) {
            let q = (v / widest * steps).round().clamp(-32.0, 31.0);
            wqv += (base + v.abs()) * q * v;
            wqq += (base + v.abs()) * q * q;
        }
        // The share of the weighted square that the codes explain.
        if wqq > 0.0 && wqv * wqv / wqq > best.0 * (1.0 + NOISE) {
            best = (wqv * wqv / wqq, wqv / wqq);
        }
    }
    best.1 as f32
}
