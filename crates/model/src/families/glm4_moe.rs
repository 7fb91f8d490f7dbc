//! GLM-4.5 and 4.6 (`glm4moe`): a rotary embedding of the first part of each head, pairs are halves; the first layers are
//! dense; experts are scored by sigmoids and one more is shared.
//!
//! `exp_probs_b.bias` takes part in the choice alone. Biases on q, k and v, and norms of their heads, are in some sizes and
//! not in others; no key says which, the first layer does. The second norm is named `post_attention_norm`. The last
//! blocks predict further tokens (`nextn_predict_layers`) and have no part in the logits.

use super::parts::{self, AttentionForm, Biases, Dims, Experts, MoeForm, QkNorm};
use super::{Body, plain};
use crate::ModelError;
use crate::keys::Keys;
use crate::spec::{Activation, FeedForward, Pairing, Scoring};
use crate::tensors::Tensors;

pub(super) fn body(keys: &Keys<'_>, tensors: &mut Tensors<'_>) -> Result<Body, ModelError> {
    let dims = Dims::read_partial(keys)?;
    parts::refuse_window(keys, &dims)?;
    let rope = parts::rope(keys, &dims, Pairing::Halves)?;
    let has = |name| tensors.shape(name).is_some();
    let biases = if has("blk.0.attn_q.bias") { Biases::Qkv } else { Biases::None };
    let qk_norm = if has("blk.0.attn_q_norm.weight") { QkNorm::Heads } else { QkNorm::None };
    let attention = AttentionForm { biases, qk_norm, ..AttentionForm::usual(&dims, rope) };
    let attention = parts::attention_layers(attention);
    let feed_forward = leading_dense(keys, Scoring::Sigmoid, true)?;
    plain::body(keys, tensors, dims, &plain::POST_ATTENTION_NORM, attention, feed_forward)
}

/// The first layers dense, then experts with a shared one, as GLM-4.5 took it over from DeepSeek.
pub(super) fn leading_dense(
    keys: &Keys<'_>,
    default: Scoring,
    correction: bool,
) -> Result<impl Fn(&mut Tensors<'_>, &Dims, usize) -> Result<FeedForward, ModelError>, ModelError> {
    let n_dense = keys.usize("leading_dense_block_count")?.unwrap_or(0);
    let dense_width = match n_dense {
        0 => None,
        _ => Some(parts::ff_width(keys)?),
    };
    let experts = Experts::require(keys)?;
    let width = keys.require_count("expert_feed_forward_length")?;
    let scoring = parts::scoring(keys, default)?;
    // DeepSeek-V2 rates a group by its best expert, V3 by its best two.
    let best = if scoring == Scoring::Sigmoid { 2 } else { 1 };
    let form = MoeForm {
        weight_scale: keys.factor("expert_weights_scale")?.unwrap_or(1.0),
        groups: parts::groups(keys, experts, best)?,
        correction,
        ..MoeForm::usual(experts, width, scoring, keys.bool("expert_weights_norm")?.unwrap_or(false))
    };
    let shared = keys.some_count("expert_shared_count")?;
    Ok(move |t: &mut Tensors<'_>, dims: &Dims, i| match &dense_width {
        Some(width) if i < n_dense => parts::dense(t, dims, i, width.at(i), Activation::Silu),
        _ => {
            let mut moe = parts::moe(t, dims, i, &form)?;
            moe.shared = shared.map(|n| parts::shared(t, dims, i, n * width, false)).transpose()?;
            Ok(FeedForward::Moe(moe))
        }
    })
}
