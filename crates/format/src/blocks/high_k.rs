//! Q4_K, Q5_K and Q6_K: super-blocks of 256.
//!
//! ```text
//! Q4_K  d:2  dmin:2  scales:12  qs:128          value = (d * sc) * q - (dmin * mn)     8 sub-blocks of 32
//! Q5_K  d:2  dmin:2  scales:12  qh:32  qs:128   value = (d * sc) * q - (dmin * mn)     8 sub-blocks of 32
//! Q6_K  ql:128  qh:64  scales:16 (i8)  d:2      value = (d * sc) * (q - 32)           16 sub-blocks of 16
//!
//! scales of Q4_K and Q5_K, six bits each, sub-block s in 0..4:
//!   byte s        sc[s]  in bits 0..6, upper two bits of sc[s + 4] in bits 6..8
//!   byte s + 4    mn[s]  in bits 0..6, upper two bits of mn[s + 4] in bits 6..8
//!   byte s + 8    low nibble of sc[s + 4], then low nibble of mn[s + 4]
//! ```
//!
//! Q4_K and Q5_K: element `64 * n + 32 * j + l` has its low four bits in `qs[32 * n + l]`, nibble j; Q5_K's fifth bit
//! is bit `2 * n + j` of `qh[l]`. Q6_K: element `128 * n + 32 * j + l` has its low four bits in
//! `ql[64 * n + 32 * (j % 2) + l]`, nibble `j / 2`, and its upper two in `qh[32 * n + l]` at bit `2 * j`.

use super::{blocks, f16_at};

pub(super) fn from_q4_k(bytes: &[u8], out: &mut [f32]) {
    for (b, o) in blocks::<144, 256>(bytes, out) {
        let (d, dmin) = (f16_at(b, 0), f16_at(b, 2));
        for (s, o) in o.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let (sc, mn) = six_bit_pair(&b[4..16], s);
            let (scale, min) = (d * f32::from(sc), dmin * f32::from(mn));
            let qs = &b[16 + 32 * (s / 2)..];
            for (o, q) in o.iter_mut().zip(qs) {
                *o = scale * f32::from(q >> (4 * (s % 2)) & 15) - min;
            }
        }
    }
}

pub(super) fn from_q5_k(bytes: &[u8], out: &mut [f32]) {
    for (b, o) in blocks::<176, 256>(bytes, out) {
        let (d, dmin) = (f16_at(b, 0), f16_at(b, 2));
        for (s, o) in o.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let (sc, mn) = six_bit_pair(&b[4..16], s);
            let (scale, min) = (d * f32::from(sc), dmin * f32::from(mn));
            let qh = &b[16..48];
            let qs = &b[48 + 32 * (s / 2)..];
            for ((o, q), h) in o.iter_mut().zip(qs).zip(qh) {
                let q = q >> (4 * (s % 2)) & 15 | (h >> s & 1) << 4;
                *o = scale * f32::from(q) - min;
            }
        }
    }
}

pub(super) fn from_q6_k(bytes: &[u8], out: &mut [f32]) {
    for (b, o) in blocks::<210, 256>(bytes, out) {
        let d = f16_at(b, 208);
        for (s, o) in o.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let scale = d * f32::from(b[192 + s].cast_signed());
            let (n, j, l) = (s / 8, s / 2 % 4, 16 * (s % 2));
            let ql = &b[64 * n + 32 * (j % 2) + l..];
            let qh = &b[128 + 32 * n + l..];
            for ((o, q), h) in o.iter_mut().zip(ql).zip(qh) {
                let q = q >> (4 * (j / 2)) & 15 | (h >> (2 * j) & 3) << 4;
                *o = scale * (f32::from(q) - 32.0);
            }
        }
    }
}

/// The six-bit scale and minimum of sub-block `s`.
fn six_bit_pair(packed: &[u8], s: usize) -> (u8, u8) {
    if s < 4 {
        (packed[s] & 63, packed[s + 4] & 63)
    } else {
        let low = packed[s + 4];
        (low & 15 | packed[s - 4] >> 6 << 4, low >> 4 | packed[s] >> 6 << 4)
    }
}
