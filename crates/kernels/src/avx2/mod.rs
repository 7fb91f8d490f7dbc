//! The kernels on AVX2, FMA and F16C.
//!
//! `formats` knows how each block format lies in memory; `row` (one row of activations) and `tile` (many) know how
//! to multiply, whatever the format. Safe functions here are safe on any processor with the three features, which is
//! what their callers check; pointers appear only where a loop's bounds are checked once outside it.

// Rows and groups of a tile index several arrays of registers at once.
#![allow(clippy::needless_range_loop)]

pub(crate) mod attention;
pub(crate) mod delta;
mod float;
mod formats;
pub(crate) mod math;
pub(crate) mod quantize;
mod row;
mod tile;

use crate::matrix::{Input, Mat, Span};
use crate::pool::SharedMut;
use core::arch::x86_64::{__m256, _mm256_storeu_ps};
use turbospark_format::BlockType;

/// Output columns `span` of `w` for all rows of `input`.
///
/// # Safety
/// No other thread uses these columns of `out` `[m, n]` meanwhile.
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) unsafe fn columns(w: &Mat<'_>, input: &Input<'_>, span: Span, out: &SharedMut<f32>) {
    // SAFETY: the caller's promise is the one that each of these asks for.
    unsafe {
        match w.block_type {
            BlockType::F32 => float::columns::<float::F32>(w, input.x, input.m, span.start..span.end, out),
            BlockType::F16 => float::columns::<float::F16>(w, input.x, input.m, span.start..span.end, out),
            BlockType::BF16 => float::columns::<float::Bf16>(w, input.x, input.m, span.start..span.end, out),
            BlockType::Q4_0 => quantized::<formats::Q4_0>(w, input, span, out),
            BlockType::Q4_1 => quantized::<formats::Q4_1>(w, input, span, out),
            BlockType::Q5_0 => quantized::<formats::Q5_0>(w, input, span, out),
            BlockType::Q5_1 => quantized::<formats::Q5_1>(w, input, span, out),
            BlockType::Q8_0 => quantized::<formats::Q8_0>(w, input, span, out),
            BlockType::IQ4_NL => quantized::<formats::Iq4Nl>(w, input, span, out),
            BlockType::MXFP4 => quantized::<formats::Mxfp4>(w, input, span, out),
            BlockType::Q2_K => quantized::<formats::Q2K>(w, input, span, out),
            BlockType::Q3_K => quantized::<formats::Q3K>(w, input, span, out),
            BlockType::Q4_K => quantized::<formats::Q4K>(w, input, span, out),
            BlockType::Q5_K => quantized::<formats::Q5K>(w, input, span, out),
            BlockType::Q6_K => quantized::<formats::Q6K>(w, input, span, out),
            BlockType::IQ4_XS => quantized::<formats::Iq4Xs>(w, input, span, out),
        }
    }
}

/// # Safety
/// As [`columns`].
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn quantized<F: formats::Format>(w: &Mat<'_>, input: &Input<'_>, span: Span, out: &SharedMut<f32>) {
    // SAFETY: the caller's promise.
    unsafe {
        if input.m == 1 {
            row::columns::<F>(w, input, span, out);
        } else {
            tile::columns::<F>(w, input, span.start..span.end, out);
        }
    }
}

/// Stores the leading lanes of `v`, at most eight. A call of `memcpy` for eight floats would show in a head's time.
#[inline]
#[target_feature(enable = "avx2")]
fn store(v: __m256, to: &mut [f32]) {
    if to.len() == 8 {
        // SAFETY: eight floats.
        unsafe { _mm256_storeu_ps(to.as_mut_ptr(), v) };
        return;
    }
    let mut lanes = [0.0_f32; 8];
    // SAFETY: eight floats.
    unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), v) };
    to.copy_from_slice(&lanes[..to.len()]);
}
