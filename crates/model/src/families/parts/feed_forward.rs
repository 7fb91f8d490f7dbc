//! Dense feed-forwards.

use super::{Dims, linear};
use crate::ModelError;
use crate::keys::{Keys, PerLayer};
use crate::spec::{Activation, DenseFeedForward, FeedForward};
use crate::tensors::{Role, Tensors};

/// `feed_forward_length`, one for all layers or one each.
pub(in crate::families) fn ff_width(keys: &Keys<'_>) -> Result<PerLayer, ModelError> {
    let key = "feed_forward_length";
    let widths = keys.per_layer(key, keys.require_count("block_count")?)?;
    widths.ok_or_else(|| ModelError::MissingKey { key: keys.full(key) })
}

/// A dense feed-forward with SiLU in every layer, as wide as `feed_forward_length` says.
pub(in crate::families) fn dense_layers(
    keys: &Keys<'_>,
) -> Result<impl Fn(&mut Tensors<'_>, &Dims, usize) -> Result<FeedForward, ModelError>, ModelError> {
    let width = ff_width(keys)?;
    Ok(move |t: &mut Tensors<'_>, dims: &Dims, i| dense(t, dims, i, width.at(i), Activation::Silu))
}

/// `ffn_gate`, `ffn_up`, `ffn_down` of block `layer`.
pub(in crate::families) fn dense(
    tensors: &mut Tensors<'_>,
    dims: &Dims,
    layer: usize,
    width: usize,
    activation: Activation,
) -> Result<FeedForward, ModelError> {
    network(tensors, dims, layer, "", width, activation).map(FeedForward::Dense)
}

/// `ffn_gate{suffix}`, `ffn_up{suffix}`, `ffn_down{suffix}` of block `layer`.
pub(in crate::families) fn network(
    tensors: &mut Tensors<'_>,
    dims: &Dims,
    layer: usize,
    suffix: &str,
    width: usize,
    activation: Activation,
) -> Result<DenseFeedForward, ModelError> {
    let mut one =
        |name, shape| linear(tensors, &format!("blk.{layer}.{name}{suffix}"), shape, Role::FeedForward);
    Ok(DenseFeedForward {
        width,
        gate: one("ffn_gate", (width, dims.hidden))?,
        up: one("ffn_up", (width, dims.hidden))?,
        down: one("ffn_down", (dims.hidden, width))?,
        activation,
    })
}
