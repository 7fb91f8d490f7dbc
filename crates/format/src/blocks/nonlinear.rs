//! IQ4_NL and IQ4_XS: four-bit indices into a fixed table of sixteen values, denser near zero.
//!
//! ```text
//! IQ4_NL  d:2  qs:16                                32 elements    value = d * table[q]
//! IQ4_XS  d:2  scales_h:2  scales_l:4  qs:128      256 elements    value = (d * (sc - 32)) * table[q]
//!         sc of sub-block s (of 32): low four bits in scales_l[s / 2], nibble s % 2;
//!                                    upper two in scales_h (little-endian u16) at bit 2 * s
//! ```
//!
//! In each run of 16 bytes of `qs`, byte j holds element j in its low nibble and element j + 16 in its high one.

use super::{blocks, f16_at};

/// The values that the four-bit indices of IQ4_NL and IQ4_XS stand for.
pub const IQ4_NL_VALUES: [i8; 16] =
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

pub(super) fn from_iq4_nl(bytes: &[u8], out: &mut [f32]) {
    for (b, o) in blocks::<18, 32>(bytes, out) {
        look_up(f16_at(b, 0), &b[2..], o);
    }
}

pub(super) fn from_iq4_xs(bytes: &[u8], out: &mut [f32]) {
    for (b, o) in blocks::<136, 256>(bytes, out) {
        let d = f16_at(b, 0);
        let high = u16::from_le_bytes([b[2], b[3]]);
        for (s, o) in o.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let low = b[4 + s / 2] >> (4 * (s % 2)) & 15;
            let sc = u16::from(low) | (high >> (2 * s) & 3) << 4;
            look_up(d * (f32::from(sc) - 32.0), &b[8 + 16 * s..], o);
        }
    }
}

fn look_up(scale: f32, qs: &[u8], out: &mut [f32; 32]) {
    let value = |q: u8| scale * f32::from(IQ4_NL_VALUES[usize::from(q)]);
    for (j, q) in qs[..16].iter().enumerate() {
        out[j] = value(q & 15);
        out[j + 16] = value(q >> 4);
    }
}
