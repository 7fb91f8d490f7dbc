//! The blocks of 32 with one f16 scale `d`, and in the `_1` formats an f16 minimum `m`.
//!
//! ```text
//!        bytes                                  value of element i
//! Q4_0   d:2  qs:16                             d * (q - 8)
//! Q4_1   d:2  m:2  qs:16                        d * q + m
//! Q5_0   d:2  qh:4  qs:16                       d * (q - 16)
//! Q5_1   d:2  m:2  qh:4  qs:16                  d * q + m
//! Q8_0   d:2  qs:32 (i8)                        d * q
//! ```
//!
//! `qs` byte j holds the low four bits of element j in its low nibble and of element j + 16 in its high nibble;
//! bit i of `qh` (little-endian u32) is the fifth bit of element i.

use super::encode::{inverse, scale, widest};
use super::{blocks, f16_at};

pub(super) fn from_q4_0(bytes: &[u8], out: &mut [f32]) {
    for (b, o) in blocks::<18, 32>(bytes, out) {
        let d = f16_at(b, 0);
        for j in 0..16 {
            let q = b[2 + j];
            o[j] = d * (f32::from(q & 15) - 8.0);
            o[j + 16] = d * (f32::from(q >> 4) - 8.0);
        }
    }
}

pub(super) fn from_q4_1(bytes: &[u8], out: &mut [f32]) {
    for (b, o) in blocks::<20, 32>(bytes, out) {
        let (d, m) = (f16_at(b, 0), f16_at(b, 2));
        for j in 0..16 {
            let q = b[4 + j];
            o[j] = d * f32::from(q & 15) + m;
            o[j + 16] = d * f32::from(q >> 4) + m;
        }
    }
}

pub(super) fn from_q5_0(bytes: &[u8], out: &mut [f32]) {
    for (b, o) in blocks::<22, 32>(bytes, out) {
        let d = f16_at(b, 0);
        for (i, o) in o.iter_mut().enumerate() {
            *o = d * (f32::from(five_bits(&b[2..], i)) - 16.0);
        }
    }
}

pub(super) fn from_q5_1(bytes: &[u8], out: &mut [f32]) {
    for (b, o) in blocks::<24, 32>(bytes, out) {
        let (d, m) = (f16_at(b, 0), f16_at(b, 2));
        for (i, o) in o.iter_mut().enumerate() {
            *o = d * f32::from(five_bits(&b[4..], i)) + m;
        }
    }
}

pub(super) fn from_q8_0(bytes: &[u8], out: &mut [f32]) {
    for (b, o) in blocks::<34, 32>(bytes, out) {
        let d = f16_at(b, 0);
        for (o, q) in o.iter_mut().zip(&b[2..]) {
            *o = d * f32::from(q.cast_signed());
        }
    }
}

/// Element `i` of a five-bit block, from its `qh` and `qs`.
fn five_bits(packed: &[u8], i: usize) -> u8 {
    let low = packed[4 + i % 16] >> (4 * (i / 16)) & 15;
    let high = packed[i / 8] >> (i % 8) & 1;
    low | high << 4
}

pub(super) fn to_q8_0(values: &[f32; 32], out: &mut Vec<u8>) -> Option<()> {
    let d = values[widest(values)].abs() / 127.0;
    let id = inverse(d);
    out.extend(scale(d)?.to_le_bytes());
    out.extend(values.map(|v| ((v * id).round() as i8).cast_unsigned()));
    Some(())
}

/// The value of largest magnitude becomes exactly -8 steps, which uses the one code without a positive twin.
pub(super) fn to_q4_0(values: &[f32; 32], out: &mut Vec<u8>) -> Option<()> {
    let d = values[widest(values)] / -8.0;
    let id = inverse(d);
    // In f64 the sum is rounded once, as the fused multiply-add of the reference does.
    let code = |v: f32| ((f64::from(v) * f64::from(id) + 8.5) as u8).min(15);
    out.extend(scale(d)?.to_le_bytes());
    out.extend((0..16).map(|j| code(values[j]) | code(values[j + 16]) << 4));
    Some(())
}
