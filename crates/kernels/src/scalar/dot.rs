//! Dot products and the quantisation of activations, one element at a time.

use crate::quantized::{BLOCK, BlockOut, QuantRows};
use crate::scalar::CanonicalBlock;
use turbospark_format::BlockType;

/// Quantises one block of 32 activations.
pub(crate) fn quantize_block(x: &[f32], out: &mut BlockOut<'_>) {
    let bits = x.iter().map(|v| v.abs().to_bits()).max().unwrap_or(0);
    let amax = f32::from_bits(bits);
    if !amax.is_finite() {
        out.q.fill(0);
        (*out.d, *out.sums, *out.scaled) = (f32::NAN, [0; 2], [f32::NAN; 3]);
        return;
    }
    let d = amax / 127.0;
    let inverse = if d > 0.0 { 1.0 / d } else { 0.0 };
    // A subnormal block's reciprocal overflows; its values are below any other block's rounding.
    let inverse = if inverse.is_finite() { inverse } else { 0.0 };
    let mut sums = [0_i16; 2];
    for (i, (q, v)) in out.q.iter_mut().zip(x).enumerate() {
        *q = (v * inverse).round_ties_even().clamp(-127.0, 127.0) as i8;
        sums[i / 16] += i16::from(*q);
    }
    *out.d = d;
    *out.sums = sums;
    *out.scaled = [d * f32::from(sums[0]), d * f32::from(sums[1]), d * f32::from(sums[0] + sums[1])];
}

/// A row of quantised weights times quantised row `row`.
pub(crate) fn dot_quantized(ty: BlockType, weights: &[u8], rows: &QuantRows, row: usize) -> f32 {
    let blocks = rows.k / BLOCK;
    let mut acc = 0.0_f32;
    let mut block = CanonicalBlock::default();
    for b in 0..blocks {
        block.decode(ty, weights, b);
        let at = row * blocks + b;
        let q = &rows.q[at * BLOCK..(at + 1) * BLOCK];
        let mut isum = 0_i32;
        for half in 0..2 {
            let dot: i32 = (half * 16..half * 16 + 16).map(|i| block.codes[i] * i32::from(q[i])).sum();
            isum += block.scales[half] * dot + block.offsets[half] * i32::from(rows.sums[at][half]);
        }
        acc = (isum as f32).mul_add(block.d * rows.d[at], acc);
        let scaled = rows.scaled[at];
        acc = match block.mins {
            Mins::None => acc,
            Mins::One(min) => min.mul_add(scaled[2], acc),
            Mins::Two(first, second) => second.mul_add(scaled[1], first.mul_add(scaled[0], acc)),
        };
    }
    acc
}

/// What a block adds besides its scaled codes, as factors of the activations' sums (negative for a minimum).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Mins {
    #[default]
    None,
    /// One factor for the block.
    One(f32),
    /// One a half block.
    Two(f32, f32),
}

/// A row of F32, F16 or BF16 weights times `x`: eight chains of fused multiply-adds, chain `i` over the elements
/// `i mod 8`, added as a tree of halves; the elements past the last multiple of eight belong to the chains as well.
pub(crate) fn dot_float(ty: BlockType, weights: &[u8], x: &[f32]) -> f32 {
    let mut acc = [0.0_f32; 8];
    for (i, &v) in x.iter().enumerate() {
        let w = match ty {
            BlockType::F32 => f32::from_le_bytes([
                weights[4 * i],
                weights[4 * i + 1],
                weights[4 * i + 2],
                weights[4 * i + 3],
            ]),
            BlockType::F16 => half::f16::from_le_bytes([weights[2 * i], weights[2 * i + 1]]).to_f32(),
            _ => half::bf16::from_le_bytes([weights[2 * i], weights[2 * i + 1]]).to_f32(),
        };
        acc[i % 8] = w.mul_add(v, acc[i % 8]);
    }
    sum8(acc)
}

/// The sum of eight lanes as a tree of halves: the order of the SIMD reduction.
pub(crate) fn sum8(v: [f32; 8]) -> f32 {
    let four = [v[0] + v[4], v[1] + v[5], v[2] + v[6], v[3] + v[7]];
    (four[0] + four[2]) + (four[1] + four[3])
}
