//! Gated activations: the element-wise part of a feed-forward layer.

use crate::cpu::{Cpu, Isa};
use crate::scalar;

impl Cpu {
    /// `gate = silu(gate) · up` (SwiGLU, Shazeer 2020).
    ///
    /// # Panics
    /// Where the lengths differ.
    pub fn silu_mul(&self, gate: &mut [f32], up: &[f32]) {
        assert_eq!(gate.len(), up.len(), "gate and up of different lengths");
        let isa = self.isa;
        self.map(gate, &|gate, at| match isa {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this set is chosen only where the processor has it.
            Isa::Avx2 => unsafe { crate::avx2::math::silu_mul(gate, &up[at..at + gate.len()]) },
            _ => gate.iter_mut().zip(&up[at..]).for_each(|(g, u)| *g = scalar::silu(*g) * u),
        });
    }

    /// `gate = gelu(gate) · up` with the tanh form of GELU (Hendrycks & Gimpel 2016).
    ///
    /// # Panics
    /// Where the lengths differ.
    pub fn gelu_mul(&self, gate: &mut [f32], up: &[f32]) {
        assert_eq!(gate.len(), up.len(), "gate and up of different lengths");
        let isa = self.isa;
        self.map(gate, &|gate, at| match isa {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this set is chosen only where the processor has it.
            Isa::Avx2 => unsafe { crate::avx2::math::gelu_mul(gate, &up[at..at + gate.len()]) },
            _ => gate.iter_mut().zip(&up[at..]).for_each(|(g, u)| *g = scalar::gelu_tanh(*g) * u),
        });
    }

    /// `gate = (u + 1) · g · sigmoid(alpha · g)` with `g = min(gate, limit)` and `u = up` kept within `-limit..=limit`: the clamped
    /// SwiGLU (OpenAI 2025, whose limit is 7 and alpha 1.702). NaN stays NaN.
    ///
    /// # Panics
    /// Where the lengths differ.
    pub fn swiglu_clamped(&self, gate: &mut [f32], up: &[f32], limit: f32, alpha: f32) {
        assert_eq!(gate.len(), up.len(), "gate and up of different lengths");
        let isa = self.isa;
        self.map(gate, &|gate, at| match isa {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this set is chosen only where the processor has it.
            Isa::Avx2 => unsafe {
                crate::avx2::math::swiglu_clamped(gate, &up[at..at + gate.len()], limit, alpha);
            },
            _ => gate
                .iter_mut()
                .zip(&up[at..])
                .for_each(|(g, u)| *g = scalar::swiglu_clamped(*g, *u, limit, alpha)),
        });
    }

    /// `x = x · sigmoid(gate)`, element by element: an output gate of attention.
    ///
    /// # Panics
    /// Where the lengths differ.
    pub fn sigmoid_mul(&self, x: &mut [f32], gate: &[f32]) {
        assert_eq!(x.len(), gate.len(), "values and gates of different lengths");
        let isa = self.isa;
        self.map(x, &|x, at| match isa {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this set is chosen only where the processor has it.
            Isa::Avx2 => unsafe { crate::avx2::math::sigmoid_mul(x, &gate[at..at + x.len()]) },
            _ => x.iter_mut().zip(&gate[at..]).for_each(|(x, g)| *x /= 1.0 + scalar::exp(-g)),
        });
    }

    /// Each row of `x` `[rows, width]` times the sigmoid of its own `gate` `[rows]`: the gate of a shared expert.
    ///
    /// # Panics
    /// Where `x` is not a row of `width` for each gate.
    pub fn sigmoid_scale_rows(&self, x: &mut [f32], width: usize, gate: &[f32]) {
        assert_eq!(x.len(), gate.len() * width, "values of another number of rows than gates");
        for (x, gate) in x.chunks_exact_mut(width.max(1)).zip(gate) {
            self.scale(x, scalar::sigmoid(*gate));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Operation = (&'static str, fn(&Cpu, &mut [f32], &[f32]), fn(f64, f64) -> f64);

    fn sigmoid(x: f64) -> f64 {
        1.0 / (1.0 + (-x).exp())
    }

    const OPERATIONS: [Operation; 4] = [
        ("silu_mul", |cpu, x, y| cpu.silu_mul(x, y), |x, y| x * sigmoid(x) * y),
        (
            "gelu_mul",
            |cpu, x, y| cpu.gelu_mul(x, y),
            |x, y| {
                let u = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3));
                0.5 * x * (1.0 + u.tanh()) * y
            },
        ),
        (
            "swiglu_clamped",
            |cpu, x, y| cpu.swiglu_clamped(x, y, 7.0, 1.702),
            |x, y| (y.clamp(-7.0, 7.0) + 1.0) * x.min(7.0) * sigmoid(1.702 * x.min(7.0)),
        ),
        ("sigmoid_mul", |cpu, x, y| cpu.sigmoid_mul(x, y), |x, y| x * sigmoid(y)),
    ];

    #[test]
    fn simd_activations_equal_their_scalar_twins_bit_for_bit() {
        let edges =
            [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-40, f32::MAX, f32::MIN, 7.0, -7.0];
        let mut x: Vec<f32> = (0..20_001).map(|i| (i as f32 - 10_000.0) * 0.02).collect();
        let mut y: Vec<f32> = (0..x.len()).map(|i| (i % 37) as f32 - 18.0).collect();
        for a in edges {
            for b in edges {
                x.push(a);
                y.push(b);
            }
        }
        let bits = |v: &[f32]| {
            v.iter().map(|x| if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() }).collect::<Vec<_>>()
        };
        for (name, operation, _) in OPERATIONS {
            let (mut a, mut b) = (x.clone(), x.clone());
            operation(&Cpu::new(2), &mut a, &y);
            operation(&Cpu::scalar(1), &mut b, &y);
            assert_eq!(bits(&a), bits(&b), "{name}");
        }
    }

    #[test]
    fn activations_match_their_definitions_and_keep_nan() {
        let x: Vec<f32> = (0..1000).map(|i| (i as f32 - 500.0) * 0.037).collect();
        let y: Vec<f32> = (0..1000).map(|i| (i * 7 % 400) as f32 * 0.06 - 12.0).collect();
        let cpu = Cpu::new(1);
        for (name, operation, definition) in OPERATIONS {
            let mut got = x.clone();
            operation(&cpu, &mut got, &y);
            for ((got, x), y) in got.iter().zip(&x).zip(&y) {
                let want = definition(f64::from(*x), f64::from(*y));
                assert!(
                    (f64::from(*got) - want).abs() <= 2e-6 * (1.0 + want.abs()),
                    "{name}({x}, {y}) = {got}"
                );
            }
            for (x, y) in [(f32::NAN, 1.0), (1.0, f32::NAN)] {
                let mut got = [x; 9];
                operation(&cpu, &mut got, &[y; 9]);
                assert!(got.iter().all(|v| v.is_nan()), "{name}({x}, {y})");
            }
        }
    }

    #[test]
    fn a_row_is_scaled_by_the_sigmoid_of_its_own_gate() {
        let mut x: Vec<f32> = (0..15).map(|i| i as f32).collect();
        Cpu::new(1).sigmoid_scale_rows(&mut x, 5, &[0.0, 100.0, -2.0]);
        for (i, x) in x.iter().enumerate() {
            let want = i as f64 * [0.5, 1.0, sigmoid(-2.0)][i / 5];
            assert!((f64::from(*x) - want).abs() < 1e-6);
        }
    }
}
