//! Granite 3 (`granite`) and Granite-MoE (`granitemoe`): as `llama`, with four factors.
//!
//! `embedding_scale` multiplies the embedding, `residual_scale` what each branch adds, `attention.scale` stands in the
//! place of `1 / sqrt(head_dim)`, and the logits are divided by `logit_scale`. All but the last may be absent. Experts are
//! weighted by the softmax over the chosen ones (transformers, `GraniteMoeTopKGating`); a shared expert of
//! `expert_shared_feed_forward_length` is added as it is. `rope.scaling.finetuned` = false turns the rotary embedding off.

use super::parts::{self, AttentionForm, Dims, Experts, MoeForm};
use super::{Body, plain};
use crate::ModelError;
use crate::keys::Keys;
use crate::spec::{FeedForward, Pairing, Scoring};
use crate::tensors::{Role, Tensors};

pub(super) fn dense(keys: &Keys<'_>, tensors: &mut Tensors<'_>) -> Result<Body, ModelError> {
    parts::refuse_experts(keys, "mixture of experts in granite")?;
    body(keys, tensors, parts::dense_layers(keys)?)
}

pub(super) fn moe(keys: &Keys<'_>, tensors: &mut Tensors<'_>) -> Result<Body, ModelError> {
    let width = keys.require_count("feed_forward_length")?;
    let form = MoeForm::usual(Experts::require(keys)?, width, Scoring::SoftmaxOfSelected, false);
    let shared = keys.some_count("expert_shared_feed_forward_length")?;
    body(keys, tensors, |t, dims, i| {
        let mut moe = parts::moe(t, dims, i, &form)?;
        moe.shared = shared.map(|width| parts::shared(t, dims, i, width, false)).transpose()?;
        Ok(FeedForward::Moe(moe))
    })
}

fn body(
    keys: &Keys<'_>,
    tensors: &mut Tensors<'_>,
    feed_forward: impl FnMut(&mut Tensors<'_>, &Dims, usize) -> Result<FeedForward, ModelError>,
) -> Result<Body, ModelError> {
    let dims = Dims::read(keys)?;
    parts::refuse_window(keys, &dims)?;
    let mut rope = parts::rope(keys, &dims, Pairing::Interleaved)?;
    rope.freq_factors = tensors.optional("rope_freqs.weight", &[dims.head_dim / 2], Role::Rotary)?;
    let rotary = keys.bool("rope.scaling.finetuned")?.unwrap_or(true);
    let scale = keys.factor("attention.scale")?.unwrap_or(dims.usual_scale());
    let attention =
        AttentionForm { scale, rope: rotary.then(|| rope.clone()), ..AttentionForm::usual(&dims, rope) };
    let scales = plain::Plain {
        embedding_scale: keys.factor("embedding_scale")?.unwrap_or(1.0),
        residual_scale: keys.factor("residual_scale")?.unwrap_or(1.0),
        logit_scale: 1.0 / keys.require_positive("logit_scale")?,
        ..plain::USUAL
    };
    plain::body(keys, tensors, dims, &scales, parts::attention_layers(attention), feed_forward)
}
