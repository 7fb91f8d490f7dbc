//! SmolLM3 (`smollm3`): as `llama`, and every fourth layer knows no positions.
//!
//! No key says which: it is the layers 3, 7, 11, … of the released configuration (`no_rope_layer_interval` 4).

use super::parts::{self, AttentionForm, Dims};
use super::{Body, plain};
use crate::ModelError;
use crate::keys::Keys;
use crate::spec::{Mixer, Pairing};
use crate::tensors::Tensors;

pub(super) fn body(keys: &Keys<'_>, tensors: &mut Tensors<'_>) -> Result<Body, ModelError> {
    parts::refuse_experts(keys, "mixture of experts in smollm3")?;
    let dims = Dims::read(keys)?;
    parts::refuse_window(keys, &dims)?;
    let rope = parts::rope(keys, &dims, Pairing::Interleaved)?;
    let attention = |t: &mut Tensors<'_>, dims: &Dims, i: usize| {
        let mut form = AttentionForm::usual(dims, rope.clone());
        form.rope = form.rope.filter(|_| !(i + 1).is_multiple_of(4));
        parts::attention(t, dims, i, form).map(Mixer::Attention)
    };
    plain::body(keys, tensors, dims, &plain::USUAL, attention, parts::dense_layers(keys)?)
}
