//! Llama 2 and 3, Mistral, SmolLM, TinyLlama and Mixtral (`llama`).
//!
//! Rows of q and k are stored permuted, so that rotary pairs are neighbours. `rope_freqs.weight` holds the
//! frequency factors of Llama 3.1 and later; where a file has it, it is part of the model. Mixtral (Jiang et al. 2024) is
//! the same with experts: the softmax is over the chosen ones, and each is as wide as `feed_forward_length` says.

use super::parts::{self, AttentionForm, Dims, Experts, MoeForm};
use super::{Body, plain};
use crate::ModelError;
use crate::keys::Keys;
use crate::spec::{Activation, FeedForward, Pairing, Scoring};
use crate::tensors::{Role, Tensors};

pub(super) fn body(keys: &Keys<'_>, tensors: &mut Tensors<'_>) -> Result<Body, ModelError> {
    let dims = Dims::read(keys)?;
    parts::refuse_window(keys, &dims)?;
    let mut rope = parts::rope(keys, &dims, Pairing::Interleaved)?;
    rope.freq_factors = tensors.optional("rope_freqs.weight", &[dims.head_dim / 2], Role::Rotary)?;
    let attention = parts::attention_layers(AttentionForm::usual(&dims, rope));
    plain::body(keys, tensors, dims, &plain::USUAL, attention, feed_forward(keys)?)
}

/// Dense or of experts, as the file's counts say.
pub(super) fn feed_forward(
    keys: &Keys<'_>,
) -> Result<impl Fn(&mut Tensors<'_>, &Dims, usize) -> Result<FeedForward, ModelError>, ModelError> {
    let experts = Experts::read(keys)?;
    let width = parts::ff_width(keys)?;
    Ok(move |t: &mut Tensors<'_>, dims: &Dims, i| match experts {
        None => parts::dense(t, dims, i, width.at(i), Activation::Silu),
        Some(experts) => {
            let form = MoeForm::usual(experts, width.at(i), Scoring::SoftmaxOfSelected, false);
            parts::moe(t, dims, i, &form).map(FeedForward::Moe)
        }
    })
}
