//! F32, F16 and BF16: one element a block, little-endian, no scale.
//!
//! ```text
//! F32   s eeeeeeee mmmmmmmmmmmmmmmmmmmmmmm
//! F16   s eeeee mmmmmmmmmm
//! BF16  s eeeeeeee mmmmmmm                    the upper half of an F32
//! ```

use half::{bf16, f16};

pub(super) fn from_f32(bytes: &[u8], out: &mut [f32]) {
    for (b, o) in bytes.as_chunks().0.iter().zip(out) {
        *o = f32::from_le_bytes(*b);
    }
}

pub(super) fn from_f16(bytes: &[u8], out: &mut [f32]) {
    for (b, o) in bytes.as_chunks().0.iter().zip(out) {
        *o = f16::from_le_bytes(*b).to_f32();
    }
}

pub(super) fn from_bf16(bytes: &[u8], out: &mut [f32]) {
    for (b, o) in bytes.as_chunks().0.iter().zip(out) {
        *o = bf16::from_le_bytes(*b).to_f32();
    }
}
