//! Every quantised format seen through one lens: 32 integer codes with integer scales and float factors.
//!
//! A value is `d · (scale · code + offset) + min`, with `scale`, `offset` and `min` per half block of 16. The integer
//! part of a block's dot product is exact, so the order of its additions is free and SIMD code may choose its own.

use crate::scalar::dot::Mins;
use half::f16;
use turbospark_format::{BlockType, FP4_VALUES, IQ4_NL_VALUES, e8m0_half};

/// 32 consecutive weights.
#[derive(Default)]
pub(crate) struct CanonicalBlock {
    pub(crate) codes: [i32; 32],
    /// Integer factor of each half's codes.
    pub(crate) scales: [i32; 2],
    /// Integer added to each value of a half.
    pub(crate) offsets: [i32; 2],
    pub(crate) d: f32,
    pub(crate) mins: Mins,
}

/// The f16 at `at`.
pub(crate) fn f16_at(bytes: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f32()
}

/// Scale and minimum `j` of the eight 6-bit pairs that Q4_K and Q5_K pack into 12 bytes.
pub(crate) fn k_scale_min(s: &[u8], j: usize) -> (u8, u8) {
    if j < 4 {
        (s[j] & 63, s[j + 4] & 63)
    } else {
        ((s[j + 4] & 15) | (s[j - 4] >> 6 << 4), (s[j + 4] >> 4) | (s[j] >> 6 << 4))
    }
}

/// Scale `j` of the sixteen signed 6-bit scales that Q3_K packs into 12 bytes.
pub(crate) fn q3_scale(s: &[u8], j: usize) -> i32 {
    let low = if j < 8 { s[j] & 15 } else { s[j - 8] >> 4 };
    let high = (s[8 + j % 4] >> (2 * (j / 4))) & 3;
    i32::from(low | (high << 4)) - 32
}

/// Scale `j` of the eight signed 6-bit scales of an IQ4_XS block (bytes 2..8).
pub(crate) fn iq4_xs_scale(block: &[u8], j: usize) -> i32 {
    let low = (block[4 + j / 2] >> (4 * (j % 2))) & 15;
    let high = (u16::from_le_bytes([block[2], block[3]]) >> (2 * j)) & 3;
    i32::from(low) + (i32::from(high) << 4) - 32
}

impl CanonicalBlock {
    /// Reads the 32 weights `32 b ..` of a row in a quantised format.
    pub(crate) fn decode(&mut self, ty: BlockType, row: &[u8], b: usize) {
        let per = ty.block_len() / 32;
        let bytes = &row[b / per * ty.block_bytes()..][..ty.block_bytes()];
        let j = b % per;
        (self.scales, self.offsets, self.mins) = ([1; 2], [0; 2], Mins::None);
        let nibble = |qs: &[u8], i: usize| i32::from(if i < 16 { qs[i] & 15 } else { qs[i - 16] >> 4 });
        // Bit 4 of Q5_0 and Q5_1 stands in a word of 32 bits, one an element.
        let fifth = |qh: &[u8], i: usize| i32::from((qh[i / 8] >> (i % 8)) & 1) << 4;
        match ty {
            BlockType::Q4_0 => {
                self.d = f16_at(bytes, 0);
                self.offsets = [-8; 2];
                self.codes = std::array::from_fn(|i| nibble(&bytes[2..], i));
            }
            BlockType::Q4_1 => {
                self.d = f16_at(bytes, 0);
                self.mins = Mins::One(f16_at(bytes, 2));
                self.codes = std::array::from_fn(|i| nibble(&bytes[4..], i));
            }
            BlockType::Q5_0 => {
                self.d = f16_at(bytes, 0);
                self.offsets = [-16; 2];
                self.codes = std::array::from_fn(|i| nibble(&bytes[6..], i) | fifth(&bytes[2..], i));
            }
            BlockType::Q5_1 => {
                self.d = f16_at(bytes, 0);
                self.mins = Mins::One(f16_at(bytes, 2));
                self.codes = std::array::from_fn(|i| nibble(&bytes[8..], i) | fifth(&bytes[4..], i));
            }
            BlockType::Q8_0 => {
                self.d = f16_at(bytes, 0);
                self.codes = std::array::from_fn(|i| i32::from(bytes[2 + i].cast_signed()));
            }
            BlockType::IQ4_NL => {
                self.d = f16_at(bytes, 0);
                self.codes =
                    std::array::from_fn(|i| i32::from(IQ4_NL_VALUES[nibble(&bytes[2..], i) as usize]));
            }
            BlockType::MXFP4 => {
                self.d = e8m0_half(bytes[0]);
                self.codes = std::array::from_fn(|i| i32::from(FP4_VALUES[nibble(&bytes[1..], i) as usize]));
            }
            BlockType::Q2_K => {
                let (d, dmin) = (f16_at(bytes, 80), f16_at(bytes, 82));
                let pair = [bytes[2 * j], bytes[2 * j + 1]];
                self.d = d;
                self.scales = pair.map(|s| i32::from(s & 15));
                let min = pair.map(|s| -(dmin * f32::from(s >> 4)));
                self.mins = Mins::Two(min[0], min[1]);
                let qs = &bytes[16 + j / 4 * 32..];
                self.codes = std::array::from_fn(|i| i32::from((qs[i] >> (2 * (j % 4))) & 3));
            }
            BlockType::Q3_K => {
                self.d = f16_at(bytes, 108);
                self.scales = [q3_scale(&bytes[96..], 2 * j), q3_scale(&bytes[96..], 2 * j + 1)];
                self.offsets = self.scales.map(|s| -4 * s);
                let qs = &bytes[32 + j / 4 * 32..];
                self.codes = std::array::from_fn(|i| {
                    i32::from((qs[i] >> (2 * (j % 4))) & 3) | (i32::from((bytes[i] >> j) & 1) << 2)
                });
            }
            BlockType::Q4_K | BlockType::Q5_K => {
                let (scale, min) = k_scale_min(&bytes[4..], j);
                self.d = f16_at(bytes, 0) * f32::from(scale);
                self.mins = Mins::One(-(f16_at(bytes, 2) * f32::from(min)));
                let five = ty == BlockType::Q5_K;
                let qs = &bytes[if five { 48 } else { 16 } + j / 2 * 32..];
                self.codes = std::array::from_fn(|i| {
                    let high = if five { (bytes[16 + i] >> j) & 1 } else { 0 };
                    i32::from((qs[i] >> (4 * (j % 2))) & 15) | (i32::from(high) << 4)
                });
            }
            BlockType::Q6_K => {
                self.d = f16_at(bytes, 208);
                let scale = |h: usize| i32::from(bytes[192 + 2 * j + h].cast_signed());
                self.scales = [scale(0), scale(1)];
                self.offsets = self.scales.map(|s| -32 * s);
                let ql = &bytes[j / 4 * 64 + (j % 2) * 32..];
                let qh = &bytes[128 + j / 4 * 32..];
                self.codes = std::array::from_fn(|i| {
                    i32::from((ql[i] >> (4 * (j % 4 / 2))) & 15)
                        | (i32::from((qh[i] >> (2 * (j % 4))) & 3) << 4)
                });
            }
            BlockType::IQ4_XS => {
                self.d = f16_at(bytes, 0) * iq4_xs_scale(bytes, j) as f32;
                let qs = &bytes[8 + 16 * j..];
                self.codes = std::array::from_fn(|i| i32::from(IQ4_NL_VALUES[nibble(qs, i) as usize]));
            }
            BlockType::F32 | BlockType::F16 | BlockType::BF16 => {
                unreachable!("float matrices have their own product")
            }
        }
    }
}
