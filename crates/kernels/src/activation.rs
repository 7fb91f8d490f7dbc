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
    /// SwiGLU of gpt-oss (OpenAI 2025), whose limit is 7 and alpha 1.702. NaN stays NaN.
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

    #[test]
    fn simd_activations_equal_their_scalar_twins_bit_for_bit() {
        let x: Vec<f32> = (0..3001)
            .map(|i| (i as f32 - 1500.0) * 0.11)
            .chain([0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-40, f32::MAX])
            .collect();
        let up: Vec<f32> = (0..x.len()).map(|i| (i % 17) as f32 - 8.0).collect();
        let (simd, twin) = (Cpu::new(1), Cpu::scalar(1));
        let bits = |v: &[f32]| {
            v.iter().map(|x| if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() }).collect::<Vec<_>>()
        };
        let (mut a, mut b) = (x.clone(), x.clone());
        simd.silu_mul(&mut a, &up);
        twin.silu_mul(&mut b, &up);
        assert_eq!(bits(&a), bits(&b));
        let (mut a, mut b) = (x.clone(), x);
        simd.gelu_mul(&mut a, &up);
        twin.gelu_mul(&mut b, &up);
        assert_eq!(bits(&a), bits(&b));
    }
}
