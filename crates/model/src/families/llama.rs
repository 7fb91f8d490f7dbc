//! Llama 2 and 3, Mistral, SmolLM, TinyLlama (`llama`), dense.
//!
//! Rows of q and k are stored permuted, so that rotary pairs are neighbours. `rope_freqs.weight` holds the
//! frequency factors of Llama 3.1 and later; where a file has it, it is part of the model.

use super::parts::{self, Dims};
use super::{Body, plain};
use crate::ModelError;
use crate::keys::Keys;
use crate::spec::Pairing;
use crate::tensors::{Role, Tensors};

pub(super) fn body(keys: &Keys<'_>, tensors: &mut Tensors<'_>) -> Result<Body, ModelError> {
    parts::refuse_experts(keys, "mixture of experts in llama (Mixtral)")?;
    let dims = Dims::read(keys)?;
    let mut rope = parts::rope(keys, dims.head_dim, Pairing::Interleaved)?;
    rope.freq_factors = tensors.optional("rope_freqs.weight", &[dims.head_dim / 2], Role::Rotary)?;
    plain::body(keys, tensors, dims, &plain::Plain { rope, qkv_bias: false, qk_norm: false })
}
