//! Qwen3 (`qwen3`): an RMS norm of each q and k head before the rotary embedding; pairs are halves; the head's width is
//! a key of its own. Qwen3-MoE (`qwen3moe`) has experts whose softmax scores are normalised over the chosen.
//!
//! Qwen3-VL's text models (`qwen3vl`, `qwen3vlmoe`) are the same on text: the sections of their rotary embedding
//! (`rope.dimension_sections`) share one position there, and the levels that images add to the first layers
//! (`n_deepstack_layers`) are absent.

use super::parts::{self, AttentionForm, Dims, Experts, MoeForm, QkNorm};
use super::{Body, plain};
use crate::ModelError;
use crate::keys::Keys;
use crate::spec::{FeedForward, Pairing, Scoring};
use crate::tensors::Tensors;

pub(super) fn dense(keys: &Keys<'_>, tensors: &mut Tensors<'_>) -> Result<Body, ModelError> {
    parts::refuse_experts(keys, "mixture of experts in this dense family")?;
    body(keys, tensors, parts::dense_layers(keys)?)
}

pub(super) fn moe(keys: &Keys<'_>, tensors: &mut Tensors<'_>) -> Result<Body, ModelError> {
    let experts = Experts::require(keys)?;
    let form = MoeForm::usual(experts, experts.width(keys)?, Scoring::Softmax, true);
    body(keys, tensors, parts::moe_layers(form))
}

fn body(
    keys: &Keys<'_>,
    tensors: &mut Tensors<'_>,
    feed_forward: impl FnMut(&mut Tensors<'_>, &Dims, usize) -> Result<FeedForward, ModelError>,
) -> Result<Body, ModelError> {
    let dims = Dims::read(keys)?;
    parts::refuse_window(keys, &dims)?;
    let rope = parts::rope(keys, &dims, Pairing::Halves)?;
    let attention = AttentionForm { qk_norm: QkNorm::Heads, ..AttentionForm::usual(&dims, rope) };
    plain::body(keys, tensors, dims, &plain::USUAL, parts::attention_layers(attention), feed_forward)
}
