//! The arithmetic of the block formats: one scalar implementation each, which every fast kernel is held to.
//!
//! Invariant: a format's dequantisation performs the operations of its published definition in their order, in
//! f32, so that results are equal bit for bit to the reference implementation's, not merely close.

mod encode;
mod high_k;
mod high_k_encode;
mod legacy;
mod low_k;
mod mxfp4;
mod nonlinear;
mod plain;

pub use encode::quantize;
pub use mxfp4::{FP4_VALUES, e8m0_half};
pub use nonlinear::IQ4_NL_VALUES;

use crate::BlockType;
use half::f16;

/// Expands whole blocks of format `ty` into f32.
///
/// NaN and infinite scales give the NaN and infinite values that arithmetic makes of them; no input is refused.
///
/// # Panics
///
/// When `bytes` is not exactly the storage of `out.len()` elements: the caller's error, not the file's.
pub fn dequantize(ty: BlockType, bytes: &[u8], out: &mut [f32]) {
    assert_eq!(
        Some(bytes.len()),
        ty.row_bytes(out.len()),
        "{ty}: {} bytes cannot hold {} elements",
        bytes.len(),
        out.len()
    );
    match ty {
        BlockType::F32 => plain::from_f32(bytes, out),
        BlockType::F16 => plain::from_f16(bytes, out),
        BlockType::BF16 => plain::from_bf16(bytes, out),
        BlockType::Q4_0 => legacy::from_q4_0(bytes, out),
        BlockType::Q4_1 => legacy::from_q4_1(bytes, out),
        BlockType::Q5_0 => legacy::from_q5_0(bytes, out),
        BlockType::Q5_1 => legacy::from_q5_1(bytes, out),
        BlockType::Q8_0 => legacy::from_q8_0(bytes, out),
        BlockType::Q2_K => low_k::from_q2_k(bytes, out),
        BlockType::Q3_K => low_k::from_q3_k(bytes, out),
        BlockType::Q4_K => high_k::from_q4_k(bytes, out),
        BlockType::Q5_K => high_k::from_q5_k(bytes, out),
        BlockType::Q6_K => high_k::from_q6_k(bytes, out),
        BlockType::IQ4_NL => nonlinear::from_iq4_nl(bytes, out),
        BlockType::IQ4_XS => nonlinear::from_iq4_xs(bytes, out),
        BlockType::MXFP4 => mxfp4::from_mxfp4(bytes, out),
    }
}

/// Pairs each block of `B` bytes with its `N` values.
fn blocks<'a, const B: usize, const N: usize>(
    bytes: &'a [u8],
    out: &'a mut [f32],
) -> impl Iterator<Item = (&'a [u8; B], &'a mut [f32; N])> {
    bytes.as_chunks::<B>().0.iter().zip(out.as_chunks_mut::<N>().0)
}

/// The little-endian f16 at `at`, widened.
fn f16_at(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}
