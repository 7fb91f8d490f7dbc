//! MiniMax-M2 (`minimax-m2`): q and k norms over the whole projection, a rotary embedding of the first part of each
//! head, pairs are halves.
//!
//! Experts are scored by sigmoids. `exp_probs_b.bias` takes part in the choice alone; the weights are the chosen scores
//! over their sum (transformers, `MiniMaxM2SparseMoeBlock`). No shared expert.

use super::parts::{self, AttentionForm, Dims, Experts, MoeForm, QkNorm};
use super::{Body, plain};
use crate::ModelError;
use crate::keys::Keys;
use crate::spec::{Pairing, Scoring};
use crate::tensors::Tensors;

pub(super) fn body(keys: &Keys<'_>, tensors: &mut Tensors<'_>) -> Result<Body, ModelError> {
    let dims = Dims::read_partial(keys)?;
    parts::refuse_window(keys, &dims)?;
    let rope = parts::rope(keys, &dims, Pairing::Halves)?;
    let attention = AttentionForm { qk_norm: QkNorm::Whole, ..AttentionForm::usual(&dims, rope) };
    let width = keys.require_count("expert_feed_forward_length")?;
    let scoring = parts::scoring(keys, Scoring::Sigmoid)?;
    let form = MoeForm { correction: true, ..MoeForm::usual(Experts::require(keys)?, width, scoring, true) };
    let (attention, experts) = (parts::attention_layers(attention), parts::moe_layers(form));
    plain::body(keys, tensors, dims, &plain::USUAL, attention, experts)
}
