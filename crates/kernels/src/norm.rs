//! Root-mean-square norms and the element-wise operations between products.

use crate::cpu::{Cpu, Isa};
use crate::pool::SharedMut;
use crate::scalar;

/// Rows below which a norm stays on the calling thread, in elements.
const SERIAL: usize = 8192;

impl Cpu {
    /// `out = x · weight / sqrt(mean(x²) + eps)` for each row of `row_len` elements (Zhang & Sennrich 2019). The weight
    /// is used as stored; `None` stands for ones.
    ///
    /// # Panics
    /// Where `x` is no whole number of rows, or `out` or `weight` has another length.
    pub fn rms_norm(&self, x: &[f32], weight: Option<&[f32]>, eps: f32, row_len: usize, out: &mut [f32]) {
        assert!(x.len() == out.len() && x.len().is_multiple_of(row_len), "norm of the wrong shape");
        assert!(weight.is_none_or(|w| w.len() == row_len), "norm weight of the wrong length");
        let shared = SharedMut::new(out);
        let isa = self.isa;
        self.split(x.len() / row_len, SERIAL.div_ceil(row_len), &|rows| {
            for row in rows {
                let x = &x[row * row_len..(row + 1) * row_len];
                // SAFETY: parts of one split are disjoint rows.
                let out = unsafe { shared.slice(row * row_len, row_len) };
                norm_row(isa, x, weight, eps, out);
            }
        });
    }

    /// As [`Cpu::rms_norm`], in place.
    ///
    /// # Panics
    /// Where `x` is no whole number of rows or `weight` has another length.
    pub fn rms_norm_in_place(&self, x: &mut [f32], weight: Option<&[f32]>, eps: f32, row_len: usize) {
        assert!(x.len().is_multiple_of(row_len), "norm of the wrong shape");
        assert!(weight.is_none_or(|w| w.len() == row_len), "norm weight of the wrong length");
        let shared = SharedMut::new(x);
        let isa = self.isa;
        self.split(shared.len() / row_len, SERIAL.div_ceil(row_len), &|rows| {
            for row in rows {
                // SAFETY: parts of one split are disjoint rows.
                let x = unsafe { shared.slice(row * row_len, row_len) };
                let scale = rms_scale(isa, x, eps);
                match weight {
                    Some(w) => x.iter_mut().zip(w).for_each(|(x, w)| *x = *x * scale * w),
                    None => x.iter_mut().for_each(|x| *x *= scale),
                }
            }
        });
    }

    /// `x = x / sqrt(mean(x²) + eps) · weight · silu(z)` for each row of `weight.len()` elements: the gated norm behind a state
    /// space (Dao & Gu 2024, "Transformers are SSMs", with the gate after the norm).
    ///
    /// # Panics
    /// Where `x` is no whole number of rows or `z` has another length.
    pub fn gated_norm(&self, x: &mut [f32], weight: &[f32], eps: f32, z: &[f32]) {
        let row_len = weight.len();
        assert!(x.len() == z.len() && x.len().is_multiple_of(row_len), "gated norm of the wrong shape");
        let shared = SharedMut::new(x);
        let isa = self.isa;
        self.split(shared.len() / row_len, SERIAL.div_ceil(4 * row_len), &|rows| {
            for row in rows {
                // SAFETY: parts of one split are disjoint rows.
                let x = unsafe { shared.slice(row * row_len, row_len) };
                let z = &z[row * row_len..(row + 1) * row_len];
                let scale = rms_scale(isa, x, eps);
                match isa {
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: this set is chosen only where the processor has it.
                    Isa::Avx2 => unsafe { crate::avx2::math::scale_gated(x, scale, weight, z) },
                    _ => x
                        .iter_mut()
                        .zip(weight.iter().zip(z))
                        .for_each(|(x, (w, z))| *x = *x * scale * w * scalar::silu(*z)),
                }
            }
        });
    }

    /// `x += y`, element by element.
    ///
    /// # Panics
    /// Where the lengths differ.
    pub fn add(&self, x: &mut [f32], y: &[f32]) {
        assert_eq!(x.len(), y.len(), "sum of different lengths");
        self.map(x, &|x, at| x.iter_mut().zip(&y[at..]).for_each(|(x, y)| *x += y));
    }

    /// `x += factor · y`, element by element.
    ///
    /// # Panics
    /// Where the lengths differ.
    pub fn add_scaled(&self, x: &mut [f32], y: &[f32], factor: f32) {
        assert_eq!(x.len(), y.len(), "sum of different lengths");
        self.map(x, &|x, at| x.iter_mut().zip(&y[at..]).for_each(|(x, y)| *x += factor * y));
    }

    /// `out[row] = Σ weights[row, rank] · parts[slots[row, rank]]`, added in rank order from the first product on. `out` is
    /// `[rows, width]`, `parts` `[rows · top_k, width]` in any order, `slots` and `weights` are `[rows, top_k]`.
    ///
    /// # Panics
    /// Where the lengths disagree or `top_k` is zero.
    pub fn combine(&self, out: &mut [f32], parts: &[f32], slots: &[u32], weights: &[f32], top_k: usize) {
        assert!(
            top_k > 0 && weights.len().is_multiple_of(top_k) && slots.len() == weights.len(),
            "weights of the wrong length"
        );
        if weights.is_empty() {
            assert!(out.is_empty() && parts.is_empty(), "a sum without weights");
            return;
        }
        let rows = weights.len() / top_k;
        let width = out.len() / rows;
        assert!(out.len() == rows * width && parts.len() == top_k * out.len(), "sum of the wrong shape");
        self.map(out, &|mut out, mut at| {
            while !out.is_empty() {
                let (row, column) = (at / width, at % width);
                let (piece, rest) = out.split_at_mut(out.len().min(width - column));
                let ranks = row * top_k..(row + 1) * top_k;
                for (rank, (weight, slot)) in weights[ranks.clone()].iter().zip(&slots[ranks]).enumerate() {
                    let part = &parts[*slot as usize * width + column..];
                    if rank == 0 {
                        piece.iter_mut().zip(part).for_each(|(o, p)| *o = weight * p);
                    } else {
                        piece.iter_mut().zip(part).for_each(|(o, p)| *o += weight * p);
                    }
                }
                at += piece.len();
                out = rest;
            }
        });
    }

    /// Adds `bias` to each row of `x`.
    ///
    /// # Panics
    /// Where `x` is no whole number of rows of the bias's length.
    pub fn add_bias(&self, x: &mut [f32], bias: &[f32]) {
        assert!(x.len().is_multiple_of(bias.len()), "bias of the wrong length");
        for row in x.chunks_exact_mut(bias.len()) {
            row.iter_mut().zip(bias).for_each(|(x, b)| *x += b);
        }
    }

    /// `x *= factor`.
    pub fn scale(&self, x: &mut [f32], factor: f32) {
        self.map(x, &|x, _| x.iter_mut().for_each(|x| *x *= factor));
    }

    /// `x = cap · tanh(x / cap)`.
    pub fn soft_cap(&self, x: &mut [f32], cap: f32) {
        self.map(x, &|x, _| x.iter_mut().for_each(|x| *x = cap * (*x / cap).tanh()));
    }

    /// Runs `f(part, index of its first element)` over parts of `x`.
    pub(crate) fn map(&self, x: &mut [f32], f: &(dyn Fn(&mut [f32], usize) + Sync)) {
        let shared = SharedMut::new(x);
        self.split(shared.len(), SERIAL, &|part| {
            // SAFETY: parts of one split are disjoint.
            f(unsafe { shared.slice(part.start, part.len()) }, part.start);
        });
    }
}

fn rms_scale(isa: Isa, x: &[f32], eps: f32) -> f32 {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this set is chosen only where the processor has it.
        Isa::Avx2 => unsafe { crate::avx2::math::rms_scale(x, eps) },
        _ => scalar::rms_scale(x, eps),
    }
}

fn norm_row(isa: Isa, x: &[f32], weight: Option<&[f32]>, eps: f32, out: &mut [f32]) {
    let scale = rms_scale(isa, x, eps);
    match weight {
        Some(w) => out.iter_mut().zip(x.iter().zip(w)).for_each(|(o, (x, w))| *o = x * scale * w),
        None => out.iter_mut().zip(x).for_each(|(o, x)| *o = x * scale),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn norm_matches_its_definition_and_its_scalar_twin() {
        let x: Vec<f32> = (0..3 * 77).map(|i| ((i * 37 % 101) as f32 - 50.0) * 0.1).collect();
        let w: Vec<f32> = (0..77).map(|i| 0.5 + i as f32 * 0.01).collect();
        let (simd, twin) = (Cpu::new(2), Cpu::scalar(1));
        let (mut a, mut b, mut c) = (vec![0.0; x.len()], vec![0.0; x.len()], x.clone());
        simd.rms_norm(&x, Some(&w), 1e-5, 77, &mut a);
        twin.rms_norm(&x, Some(&w), 1e-5, 77, &mut b);
        simd.rms_norm_in_place(&mut c, Some(&w), 1e-5, 77);
        assert_eq!(a, b);
        assert_eq!(a, c);
        for row in 0..3 {
            let r = &x[row * 77..(row + 1) * 77];
            let mean = r.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / 77.0;
            for i in 0..77 {
                let want = f64::from(r[i]) / (mean + 1e-5).sqrt() * f64::from(w[i]);
                assert!((f64::from(a[row * 77 + i]) - want).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn gated_norm_matches_its_definition_and_its_scalar_twin() {
        for width in [77, 128, 5] {
            let value = |i: usize, m: usize| (i * 37 % m) as f32 * 0.1 - 5.0;
            let x: Vec<f32> = (0..300 * width).map(|i| value(i, 101)).collect();
            let z: Vec<f32> = (0..300 * width).map(|i| 3.0 * value(i, 97)).collect();
            let w: Vec<f32> = (0..width).map(|i| 0.5 + i as f32 * 0.01).collect();
            let (mut a, mut b) = (x.clone(), x.clone());
            Cpu::new(2).gated_norm(&mut a, &w, 1e-6, &z);
            Cpu::scalar(1).gated_norm(&mut b, &w, 1e-6, &z);
            assert_eq!(a, b);
            for (row, x) in x.chunks(width).enumerate() {
                let mean = x.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / width as f64;
                for (i, x) in x.iter().enumerate() {
                    let gate = f64::from(z[row * width + i]);
                    let normed = f64::from(*x) / (mean + 1e-6).sqrt() * f64::from(w[i]);
                    let want = normed * gate / (1.0 + (-gate).exp());
                    assert!((f64::from(a[row * width + i]) - want).abs() < 1e-5 * (1.0 + want.abs()));
                }
            }
        }
    }

    #[test]
    fn parts_are_added_in_rank_order_from_the_first_product_on() {
        let (rows, top_k, width) = (40, 3, 700);
        let parts: Vec<f32> =
            (0..rows * top_k * width).map(|i| (i * 7919 % 1009) as f32 * 0.37 - 180.0).collect();
        let weights: Vec<f32> = (0..rows * top_k).map(|i| (i % 7) as f32 * 0.13 - 0.2).collect();
        let mut out = vec![f32::NAN; rows * width];
        // Slots in another order than rows, as where rows are grouped by expert.
        let slots: Vec<u32> = (0..rows * top_k).map(|i| (i * 7 % (rows * top_k)) as u32).collect();
        Cpu::new(2).combine(&mut out, &parts, &slots, &weights, top_k);
        for (i, got) in out.iter().enumerate() {
            let (row, column) = (i / width, i % width);
            let product = |rank| {
                let at = row * top_k + rank;
                weights[at] * parts[slots[at] as usize * width + column]
            };
            assert_eq!(*got, product(0) + product(1) + product(2), "row {row}, column {column}");
        }
        let mut one = [0.0; 2];
        Cpu::new(1).combine(&mut one, &[-0.0, 2.0], &[0], &[1.0], 1);
        assert_eq!(one.map(f32::to_bits), [(-0.0_f32).to_bits(), 2.0_f32.to_bits()]);
        Cpu::new(1).combine(&mut [], &[], &[], &[], 2);
    }

    #[test]
    fn sums_are_elementwise_also_scaled_ones() {
        let y: Vec<f32> = (0..20_000).map(|i| i as f32 * 0.3 - 1000.0).collect();
        let x: Vec<f32> = y.iter().map(|y| 1.7 - y).collect();
        let (mut sum, mut scaled) = (x.clone(), x.clone());
        let cpu = Cpu::new(2);
        cpu.add(&mut sum, &y);
        cpu.add_scaled(&mut scaled, &y, 0.22);
        for (i, (x, y)) in x.iter().zip(&y).enumerate() {
            assert_eq!((sum[i], scaled[i]), (x + y, x + 0.22 * y));
        }
    }
}
