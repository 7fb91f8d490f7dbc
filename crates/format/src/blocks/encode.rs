//! Quantisation: f32 values into whole blocks.
//!
//! Invariant: what is returned dequantises to finite values; a value that a format cannot hold is an error that names
//! it, never a silent infinity.

use super::{high_k_encode, legacy, mxfp4};
use crate::{BlockType, FormatError};
use half::{bf16, f16};

/// Stores values in format `ty`, whole blocks of them.
///
/// F16 and BF16 round to nearest even and keep NaN and infinities. Q8_0 and Q4_0 equal the reference implementation
/// bit for bit; Q4_K, Q6_K and MXFP4 search their scales for a small squared error.
///
/// # Errors
///
/// [`FormatError::NoQuantizer`] for the other formats, [`FormatError::PartialBlock`] when the length is no multiple
/// of the block, and [`FormatError::Unrepresentable`] when a block holds a value that is not finite, or so large that
/// the block's scale leaves f16.
pub fn quantize(ty: BlockType, values: &[f32]) -> Result<Vec<u8>, FormatError> {
    let Some(len) = ty.row_bytes(values.len()) else {
        return Err(FormatError::PartialBlock { block_type: ty, len: values.len() });
    };
    let mut out = Vec::with_capacity(len);
    let stored = match ty {
        BlockType::F32 => {
            out.extend(values.iter().flat_map(|v| v.to_le_bytes()));
            Ok(())
        }
        BlockType::F16 => {
            out.extend(values.iter().flat_map(|v| f16::from_f32(*v).to_le_bytes()));
            check(values, |v| f16::from_f32(v).is_finite() || !v.is_finite())
        }
        BlockType::BF16 => {
            out.extend(values.iter().flat_map(|v| bf16::from_f32(*v).to_le_bytes()));
            check(values, |v| bf16::from_f32(v).is_finite() || !v.is_finite())
        }
        BlockType::Q8_0 => each(values, &mut out, legacy::to_q8_0),
        BlockType::Q4_0 => each(values, &mut out, legacy::to_q4_0),
        BlockType::Q4_K => each(values, &mut out, high_k_encode::to_q4_k),
        BlockType::Q6_K => each(values, &mut out, high_k_encode::to_q6_k),
        BlockType::MXFP4 => each(values, &mut out, |values, out| {
            mxfp4::to_mxfp4(values, out);
            Some(())
        }),
        other => return Err(FormatError::NoQuantizer(other)),
    };
    match stored {
        Ok(()) => Ok(out),
        Err(index) => Err(FormatError::Unrepresentable { block_type: ty, index, value: values[index] }),
    }
}

fn check(values: &[f32], fits: impl Fn(f32) -> bool) -> Result<(), usize> {
    values.iter().position(|v| !fits(*v)).map_or(Ok(()), Err)
}

/// Encodes block by block; `encode` gives `None` when a scale leaves f16. The error is the index of the culprit.
fn each<const N: usize>(
    values: &[f32],
    out: &mut Vec<u8>,
    encode: impl Fn(&[f32; N], &mut Vec<u8>) -> Option<()>,
) -> Result<(), usize> {
    for (b, block) in values.as_chunks::<N>().0.iter().enumerate() {
        check(block, f32::is_finite).map_err(|i| b * N + i)?;
        if encode(block, out).is_none() {
            return Err(b * N + widest(block));
        }
    }
    Ok(())
}

/// Index of the first of the largest magnitudes.
pub(super) fn widest(values: &[f32]) -> usize {
    (1..values.len()).fold(0, |best, i| if values[i].abs() > values[best].abs() { i } else { best })
}

/// An f16 scale, or `None` where it would be infinite.
pub(super) fn scale(value: f32) -> Option<f16> {
    Some(f16::from_f32(value)).filter(|d| d.is_finite())
}

/// `1 / d`, or 0 where that says nothing: for no scale, and for one so small that the quotient overflows.
pub(super) fn inverse(d: f32) -> f32 {
    Some(1.0 / d).filter(|id| id.is_finite()).unwrap_or(0.0)
}
