//! The scalar twin of every kernel: the definition that the SIMD code must match bit for bit.

mod attention;
mod blocks;
mod delta;
mod dot;
mod math;

pub(crate) use attention::{attend_page, merge_parts};
pub(crate) use blocks::{CanonicalBlock, iq4_xs_scale, q3_scale};
pub(crate) use delta::{conv_step, delta_dots, delta_step, softplus};
pub(crate) use dot::{dot_float, dot_quantized, quantize_block};
pub(crate) use math::{
    EXP_HIGH, EXP_LOW, EXP_POLY, GELU_CUBIC, GELU_SCALE, LN2_HIGH, LN2_LOW, exp, gelu_tanh, rms_scale,
    sigmoid, silu, softmax, swiglu_clamped,
};
