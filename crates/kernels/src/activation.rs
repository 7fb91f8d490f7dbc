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
