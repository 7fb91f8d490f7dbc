//! Mistral 3 and Ministral 3 (`mistral3`): as `llama`, with queries that grow with the position.
//!
//! The growth is Llama 4's: `1 + attention.temperature_scale * ln(1 + floor(position / period))`, where the period is
//! `rope.scaling.original_context_length`. In this architecture `rope.scaling.yarn_log_multiplier` is the checkpoint's
//! `mscale_all_dim` as it is, so that 1 leaves queries and keys unscaled.

use super::parts::{self, AttentionForm, Dims};
use super::{Body, llama, plain};
use crate::ModelError;
use crate::keys::Keys;
use crate::spec::{Pairing, QueryTemperature};
use crate::tensors::Tensors;

pub(super) fn body(keys: &Keys<'_>, tensors: &mut Tensors<'_>) -> Result<Body, ModelError> {
    let dims = Dims::read(keys)?;
    parts::refuse_window(keys, &dims)?;
    let rope = parts::rope(keys, &dims, Pairing::Interleaved)?;
    let temperature = match keys.factor("attention.temperature_scale")? {
        Some(scale) => {
            let period = keys.require_count("rope.scaling.original_context_length")?;
            Some(QueryTemperature { scale, period })
        }
        None => None,
    };
    let attention = AttentionForm { temperature, ..AttentionForm::usual(&dims, rope) };
    let attention = parts::attention_layers(attention);
    plain::body(keys, tensors, dims, &plain::USUAL, attention, llama::feed_forward(keys)?)
}
