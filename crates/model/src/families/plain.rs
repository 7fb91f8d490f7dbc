//! The plain decoder that Llama made usual: two pre-norms, attention, a SiLU-gated feed-forward.
//!
//! What the families of this form differ in is [`Plain`]; a family with more than that has its own body.

use super::Body;
use super::parts::{self, AttentionForm, Dims};
use crate::ModelError;
use crate::keys::Keys;
use crate::spec::{Activation, Layer, Mixer, Rope};
use crate::tensors::Tensors;

/// What one family of plain decoders has and another has not.
pub(super) struct Plain {
    pub(super) rope: Rope,
    pub(super) qkv_bias: bool,
    pub(super) qk_norm: bool,
}

pub(super) fn body(
    keys: &Keys<'_>,
    tensors: &mut Tensors<'_>,
    dims: Dims,
    plain: &Plain,
) -> Result<Body, ModelError> {
    parts::refuse_window(keys, &dims)?;
    let (n_vocab, embedding) = parts::embedding(keys, tensors, &dims, 1.0)?;
    let mut layers = Vec::new();
    for i in 0..dims.n_layers {
        let form = AttentionForm {
            scale: dims.usual_scale(),
            window: None,
            rope: plain.rope.clone(),
            qkv_bias: plain.qkv_bias,
            qk_norm: plain.qk_norm,
        };
        layers.push(Layer {
            mixer_norm: parts::norm(tensors, &format!("blk.{i}.attn_norm"), dims.hidden, dims.eps)?,
            mixer: Mixer::Attention(parts::attention(tensors, &dims, i, form)?),
            mixer_post_norm: None,
            ff_norm: parts::norm(tensors, &format!("blk.{i}.ffn_norm"), dims.hidden, dims.eps)?,
            feed_forward: parts::dense(tensors, &dims, i, Activation::Silu)?,
            ff_post_norm: None,
            residual_scale: 1.0,
            side: None,
            output_scale: None,
        });
    }
    let head = parts::head(tensors, &dims, n_vocab, &embedding, None)?;
    Ok(Body { dims, n_vocab, embedding, layers, head })
}
