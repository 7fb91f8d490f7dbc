//! Q2_K and Q3_K: super-blocks of 256 in sixteen sub-blocks of 16.
//!
//! ```text
//! Q2_K  scales:16  qs:64  d:2  dmin:2           value = (d * sc) * q - (dmin * mn)
//!       scales[s]: low nibble sc, high nibble mn of sub-block s
//! Q3_K  hmask:32  qs:64  scales:12  d:2         value = (d * (sc - 32)) * (q - 4 + 4 * h)
//!       scales: 0..8  low nibbles of sub-blocks s (low) and s + 8 (high)
//!               8..12 two upper bits of sub-blocks s, s + 4, s + 8, s + 12
//! ```
//!
//! Both: element `128 * n + 32 * j + l` has its two low bits in `qs[32 * n + l]` at bit `2 * j`; Q3_K's third bit is
//! in `hmask[l]` at bit `4 * n + j`, and a bit that is set means that nothing is subtracted.

use super::{blocks, f16_at};

pub(super) fn from_q2_k(bytes: &[u8], out: &mut [f32]) {
    for (b, o) in blocks::<84, 256>(bytes, out) {
        let (d, dmin) = (f16_at(b, 80), f16_at(b, 82));
        for (s, o) in o.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let scale = d * f32::from(b[s] & 15);
            let min = dmin * f32::from(b[s] >> 4);
            let qs = &b[16 + low_bits(s)..];
            for (o, q) in o.iter_mut().zip(qs) {
                *o = scale * f32::from(q >> shift(s) & 3) - min;
            }
        }
    }
}

pub(super) fn from_q3_k(bytes: &[u8], out: &mut [f32]) {
    for (b, o) in blocks::<110, 256>(bytes, out) {
        let d = f16_at(b, 108);
        let packed = &b[96..108];
        for (s, o) in o.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let low = packed[s % 8] >> (4 * (s / 8)) & 15;
            let high = packed[8 + s % 4] >> (2 * (s / 4)) & 3;
            let scale = d * (f32::from(low | high << 4) - 32.0);
            let qs = &b[32 + low_bits(s)..];
            let mask = &b[16 * (s % 2)..];
            for ((o, q), h) in o.iter_mut().zip(qs).zip(mask) {
                let q = q >> shift(s) & 3 | (h >> (s / 2) & 1) << 2;
                *o = scale * (f32::from(q) - 4.0);
            }
        }
    }
}

/// Where in `qs` the two low bits of sub-block `s` begin.
fn low_bits(s: usize) -> usize {
    32 * (s / 8) + 16 * (s % 2)
}

/// Which bits of those bytes are sub-block `s`'s.
fn shift(s: usize) -> usize {
    s % 8 / 2 * 2
}
