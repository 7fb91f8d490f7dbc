//! Qwen3, dense (`qwen3`): an RMS norm of each q and k head before the rotary embedding; pairs are halves; the
//! head's width is a key of its own.

use super::parts::{self, Dims};
use super::{Body, plain};
use crate::ModelError;
use crate::keys::Keys;
use crate::spec::Pairing;
use crate::tensors::Tensors;

pub(super) fn body(keys: &Keys<'_>, tensors: &mut Tensors<'_>) -> Result<Body, ModelError> {
    parts::refuse_experts(keys, "mixture of experts in qwen3")?;
    let dims = Dims::read(keys)?;
    let rope = parts::rope(keys, dims.head_dim, Pairing::Halves)?;
    plain::body(keys, tensors, dims, &plain::Plain { rope, qkv_bias: false, qk_norm: true })
}
