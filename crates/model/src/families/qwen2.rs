//! Qwen2 and Qwen2.5 (`qwen2`): biases on q, k and v, added before the rotary embedding; pairs are halves.

use super::parts::{self, Dims};
use super::{Body, plain};
use crate::ModelError;
use crate::keys::Keys;
use crate::spec::Pairing;
use crate::tensors::Tensors;

pub(super) fn body(keys: &Keys<'_>, tensors: &mut Tensors<'_>) -> Result<Body, ModelError> {
    parts::refuse_experts(keys, "mixture of experts in qwen2")?;
    let dims = Dims::read(keys)?;
    let rope = parts::rope(keys, dims.head_dim, Pairing::Halves)?;
    plain::body(keys, tensors, dims, &plain::Plain { rope, qkv_bias: true, qk_norm: false })
}
