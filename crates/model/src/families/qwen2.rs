//! Qwen2 and Qwen2.5 (`qwen2`): biases on q, k and v, added before the rotary embedding; pairs are halves.
//!
//! Qwen1.5-MoE and Qwen2-MoE (`qwen2moe`) add experts weighted by their share of the softmax over all, not normalised,
//! and a shared expert that its own sigmoid gates (transformers, `Qwen2MoeSparseMoeBlock`).

use super::parts::{self, AttentionForm, Biases, Dims, Experts, MoeForm};
use super::{Body, plain};
use crate::ModelError;
use crate::keys::Keys;
use crate::spec::{FeedForward, Pairing, Scoring};
use crate::tensors::Tensors;

pub(super) fn dense(keys: &Keys<'_>, tensors: &mut Tensors<'_>) -> Result<Body, ModelError> {
    parts::refuse_experts(keys, "mixture of experts in qwen2")?;
    body(keys, tensors, parts::dense_layers(keys)?)
}

pub(super) fn moe(keys: &Keys<'_>, tensors: &mut Tensors<'_>) -> Result<Body, ModelError> {
    let experts = Experts::require(keys)?;
    let form = MoeForm::usual(experts, experts.width(keys)?, Scoring::Softmax, false);
    body(keys, tensors, parts::moe_with_gated_shared(keys, form)?)
}

fn body(
    keys: &Keys<'_>,
    tensors: &mut Tensors<'_>,
    feed_forward: impl FnMut(&mut Tensors<'_>, &Dims, usize) -> Result<FeedForward, ModelError>,
) -> Result<Body, ModelError> {
    let dims = Dims::read(keys)?;
    parts::refuse_window(keys, &dims)?;
    let rope = parts::rope(keys, &dims, Pairing::Halves)?;
    let attention = AttentionForm { biases: Biases::Qkv, ..AttentionForm::usual(&dims, rope) };
    plain::body(keys, tensors, dims, &plain::USUAL, parts::attention_layers(attention), feed_forward)
}
