//! Phi-3 and Phi-4 (`phi3`): q, k and v are row ranges of one matrix, gate and up of another, gate first.
//!
//! Pairs are halves; Phi-4-mini turns the first part of a head. A window is for all layers. The two tables of LongRoPE
//! (`rope_factors_long`, `rope_factors_short`), of which the length of the context chooses one, are refused.

use super::parts::{self, AttentionForm, Dims};
use super::{Body, plain};
use crate::ModelError;
use crate::keys::Keys;
use crate::spec::{Activation, DenseFeedForward, FeedForward, Linear, Pairing};
use crate::tensors::{Role, Tensors};

pub(super) fn body(keys: &Keys<'_>, tensors: &mut Tensors<'_>) -> Result<Body, ModelError> {
    parts::refuse_experts(keys, "mixture of experts in phi3")?;
    for name in ["rope_factors_long.weight", "rope_factors_short.weight"] {
        parts::refuse_tensor(tensors, name, "rotary tables for short and long contexts (LongRoPE)")?;
    }
    let dims = Dims::read_partial(keys)?;
    let window = keys.some_count("attention.sliding_window")?;
    let rope = parts::rope(keys, &dims, Pairing::Halves)?;
    let attention = AttentionForm { window, ..AttentionForm::usual(&dims, rope) };
    let attention = parts::attention_layers(attention);
    let width = parts::ff_width(keys)?;
    let feed_forward = |t: &mut Tensors<'_>, dims: &Dims, i| dense(t, dims, i, width.at(i));
    plain::body(keys, tensors, dims, &plain::USUAL, attention, feed_forward)
}

fn dense(
    tensors: &mut Tensors<'_>,
    dims: &Dims,
    layer: usize,
    width: usize,
) -> Result<FeedForward, ModelError> {
    let mut one =
        |name, shape| parts::linear(tensors, &format!("blk.{layer}.{name}"), shape, Role::FeedForward);
    let both = one("ffn_up", (2 * width, dims.hidden))?;
    let down = one("ffn_down", (dims.hidden, width))?;
    let gate = Linear { rows: width, ..both };
    let up = Linear { first_row: width, ..gate };
    Ok(FeedForward::Dense(DenseFeedForward { width, gate, up, down, activation: Activation::Silu }))
}
