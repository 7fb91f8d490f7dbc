//! The decoder that Llama made usual: in each layer a norm before each of two residual branches, then a final norm and
//! the head. What stands in the branches is the family's; families with more norms than that have their own body.

use super::Body;
use super::parts::{self, Dims};
use crate::ModelError;
use crate::keys::Keys;
use crate::spec::{FeedForward, Layer, Mixer};
use crate::tensors::Tensors;

/// What one family of plain decoders has and another has not.
pub(super) struct Plain {
    /// Factor on embedded rows.
    pub(super) embedding_scale: f32,
    /// Factor on what each branch adds.
    pub(super) residual_scale: f32,
    /// Factor on the logits.
    pub(super) logit_scale: f32,
    /// Name of the norm before the feed-forward.
    pub(super) ff_norm: &'static str,
}

/// No scales, and the usual names.
pub(super) const USUAL: Plain =
    Plain { embedding_scale: 1.0, residual_scale: 1.0, logit_scale: 1.0, ff_norm: "ffn_norm" };

/// As [`USUAL`], in files that name the second norm after what precedes it.
pub(super) const POST_ATTENTION_NORM: Plain = Plain { ff_norm: "post_attention_norm", ..USUAL };

pub(super) fn body(
    keys: &Keys<'_>,
    tensors: &mut Tensors<'_>,
    dims: Dims,
    plain: &Plain,
    mut mixer: impl FnMut(&mut Tensors<'_>, &Dims, usize) -> Result<Mixer, ModelError>,
    mut feed_forward: impl FnMut(&mut Tensors<'_>, &Dims, usize) -> Result<FeedForward, ModelError>,
) -> Result<Body, ModelError> {
    let (n_vocab, embedding) = parts::embedding(keys, tensors, &dims, plain.embedding_scale)?;
    let mut layers = Vec::new();
    for i in 0..dims.n_layers {
        let mut norm = |name| parts::norm(tensors, &format!("blk.{i}.{name}"), dims.hidden, dims.eps);
        let (mixer_norm, ff_norm) = (norm("attn_norm")?, norm(plain.ff_norm)?);
        layers.push(Layer {
            mixer_norm,
            mixer: mixer(tensors, &dims, i)?,
            mixer_post_norm: None,
            ff_norm,
            feed_forward: feed_forward(tensors, &dims, i)?,
            ff_post_norm: None,
            residual_scale: plain.residual_scale,
            side: None,
            output_scale: None,
        });
    }
    let mut head = parts::head(tensors, &dims, n_vocab, &embedding)?;
    head.logit_scale = plain.logit_scale;
    Ok(Body { dims, n_vocab, embedding, side: None, layers, head })
}
