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
use super::encode::widest;

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

/// Picks the exponent under which the largest magnitude is in the table's last octave, or the next one where cutting
/// that magnitude to 6 costs more than the coarser steps.
pub(super) fn to_mxfp4(values: &[f32; 32], out: &mut Vec<u8>) {
    let max = values[widest(values)].abs();
    // floor(log2(max)) - 2 in the exponent's bias; subnormal maxima get the smallest scale.
    let fine = ((max.to_bits() >> 23) as u8).saturating_sub(2);
    let (fine_error, fine_codes) = encode_under(fine, values);
    let coarse = fine.saturating_add(1).min(254);
    let (coarse_error, coarse_codes) = encode_under(coarse, values);
    let (e, codes) = if coarse_error < fine_error { (coarse, coarse_codes) } else { (fine, fine_codes) };
    out.push(e);
    out.extend((0..16).map(|j| codes[j] | codes[j + 16] << 4));
}

/// Squared error, in f64 so that the square of a large error is finite, and codes under one exponent.
fn encode_under(e: u8, values: &[f32; 32]) -> (f64, [u8; 32]) {
    let scale = e8m0_half(e);
    let mut error = 0.0;
    let codes = values.map(|v| {
        let magnitudes = FP4_VALUES[..8].iter().map(|m| (scale * f32::from(*m) - v.abs()).abs());
        let (code, distance) = magnitudes.enumerate().fold((0, f32::INFINITY), |best, (code, distance)| {
            if distance < best.1 { (code as u8, distance) } else { best }
        });
        error += f64::from(distance).powi(2);
        if v < 0.0 && code > 0 { code | 8 } else { code }
    });
    (error, codes)
}
