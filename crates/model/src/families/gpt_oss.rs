//! gpt-oss (`gpt-oss`): even layers see a window, odd ones everything; each query head has a sink; biases everywhere,
//! on the experts too.
//!
//! What no key of the file says is taken from the released configuration and code: the window's phase, the activation's
//! limit 7 and steepness 1.702, and that the ends of YaRN's ramp are not rounded to whole pairs (`truncate: false`).
//! Queries and keys are multiplied by `1 + 0.1 ln(factor)`. The softmax is over the chosen experts. The second norm of a
//! layer is named `post_attention_norm`.

use super::parts::{self, AttentionForm, Biases, Dims, Experts, MoeForm};
use super::{Body, plain};
use crate::ModelError;
use crate::keys::Keys;
use crate::spec::{Activation, Mixer, Pairing, RopeScaling, Scoring};
use crate::tensors::Tensors;

pub(super) fn body(keys: &Keys<'_>, tensors: &mut Tensors<'_>) -> Result<Body, ModelError> {
    let dims = Dims::read(keys)?;
    let window = keys.require_count("attention.sliding_window")?;
    let mut rope = parts::rope(keys, &dims, Pairing::Halves)?;
    if let RopeScaling::Yarn { round, .. } = &mut rope.scaling {
        *round = false;
    }
    let attention = |t: &mut Tensors<'_>, dims: &Dims, i: usize| {
        let form = AttentionForm {
            window: i.is_multiple_of(2).then_some(window),
            biases: Biases::QkvAndOutput,
            sinks: true,
            ..AttentionForm::usual(dims, rope.clone())
        };
        parts::attention(t, dims, i, form).map(Mixer::Attention)
    };
    let width = keys.require_count("expert_feed_forward_length")?;
    let form = MoeForm {
        activation: Activation::ClampedSwiglu { limit: 7.0, alpha: 1.702 },
        biases: true,
        ..MoeForm::usual(Experts::require(keys)?, width, Scoring::SoftmaxOfSelected, false)
    };
    plain::body(keys, tensors, dims, &plain::POST_ATTENTION_NORM, attention, parts::moe_layers(form))
}
