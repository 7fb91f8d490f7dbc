//! MXFP4: blocks of 32 four-bit floats (E2M1) under one power of two (E8M0), as in the OCP Microscaling
//! specification.
//!
//! ```text
//! e:1  qs:16          value = e8m0_half(e) * FP4_VALUES[q]
//! ```
//!
//! Byte j of `qs` holds element j in its low nibble and element j + 16 in its high one. The table holds twice the
//! E2M1 values, which makes them integers, and the scale is halved to match.

use super::blocks;

/// Twice the values of the sixteen E2M1 codes: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives.
///
/// Code 8, minus zero, is stored as 0.
pub const FP4_VALUES: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// Half the power of two that an E8M0 exponent stands for: `2^(e - 128)`, exact also where that is subnormal.
///
/// 255 is NaN in the OCP specification; as in the reference implementation it counts as `2^127` here.
pub const fn e8m0_half(e: u8) -> f32 {
    f32::from_bits(match e {
        0 => 0x0020_0000,
        1 => 0x0040_0000,
        _ => (e as u32 - 1) << 23,
    })
}

pub(super) fn from_mxfp4(bytes: &[u8], out: &mut [f32]) {
    for (b, o) in blocks::<17, 32>(bytes, out) {
        let scale = e8m0_half(b[0]);
        let value = |q: u8| scale * f32::from(FP4_VALUES[usize::from(q)]);
        for (j, q) in b[1..].iter().enumerate() {
            o[j] = value(q & 15);
            o[j + 16] = value(q >> 4);
        }
    }
}
