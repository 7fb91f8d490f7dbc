//! OLMoE (`olmoe`; Muennighoff et al. 2024): q and k norms over the whole projection, before it is split into heads;
//! experts weighted by their share of the softmax over all, not normalised; no shared expert.
//!
//! An expert is as wide as `feed_forward_length` says. Pairs are halves. The clamp on q, k and v
//! (`attention.clamp_kqv`) that the configuration allows, and the released models leave out, is refused.

use super::parts::{self, AttentionForm, Dims, Experts, MoeForm, QkNorm};
use super::{Body, plain};
use crate::ModelError;
use crate::keys::Keys;
use crate::spec::{Pairing, Scoring};
use crate::tensors::Tensors;

pub(super) fn body(keys: &Keys<'_>, tensors: &mut Tensors<'_>) -> Result<Body, ModelError> {
    let dims = Dims::read(keys)?;
    parts::refuse_window(keys, &dims)?;
    parts::refuse_key(keys, "attention.clamp_kqv", "a clamp on queries, keys and values")?;
    let rope = parts::rope(keys, &dims, Pairing::Halves)?;
    let attention = AttentionForm { qk_norm: QkNorm::Whole, ..AttentionForm::usual(&dims, rope) };
    let width = keys.require_count("feed_forward_length")?;
    let form = MoeForm::usual(Experts::require(keys)?, width, Scoring::Softmax, false);
    let (attention, experts) = (parts::attention_layers(attention), parts::moe_layers(form));
    plain::body(keys, tensors, dims, &plain::USUAL, attention, experts)
}
