//! Gemma 3 text models (`gemma3`): norms around each branch, norms of each q and k head, GELU, embeddings times
//! `sqrt(hidden)`, five layers with a window to one without.
//!
//! The file's norm weights already hold the 1 that the checkpoint's lack. Windowed layers turn by their own base
//! (`rope.freq_base_swa`, 10000 if absent) and without the linear scaling, which is for full layers only.
//! `attention.sliding_window_pattern` is 6 if absent: every sixth layer is full.

use super::Body;
use super::parts::{self, AttentionForm, Dims, QkNorm};
use crate::ModelError;
use crate::keys::Keys;
use crate::spec::{Activation, Layer, Mixer, Pairing, Rope, RopeScaling};
use crate::tensors::Tensors;

/// Layers of the 27B model, which scales scores by `1 / sqrt(hidden / n_heads)`; no key of the file says so.
const LAYERS_OF_27B: usize = 62;

pub(super) fn body(keys: &Keys<'_>, tensors: &mut Tensors<'_>) -> Result<Body, ModelError> {
    parts::refuse_experts(keys, "mixture of experts in gemma3")?;
    parts::refuse_key(keys, "attn_logit_softcapping", "a soft cap on attention scores")?;
    let dims = Dims::read(keys)?;
    let full = parts::rope(keys, &dims, Pairing::Halves)?;
    let window = keys.some_count("attention.sliding_window")?;
    let sliding = Rope {
        theta: keys.positive("rope.freq_base_swa")?.unwrap_or(10_000.0),
        scaling: RopeScaling::Linear(1.0),
        magnitude: 1.0,
        ..full.clone()
    };
    let period = keys.count("attention.sliding_window_pattern")?.unwrap_or(6);
    let width = parts::ff_width(keys)?;
    let scale = match dims.n_layers {
        LAYERS_OF_27B => 1.0 / ((dims.hidden / dims.n_heads) as f32).sqrt(),
        _ => dims.usual_scale(),
    };

    let (n_vocab, embedding) = parts::embedding(keys, tensors, &dims, (dims.hidden as f32).sqrt())?;
    let mut layers = Vec::new();
    for i in 0..dims.n_layers {
        let window = window.filter(|_| (i + 1) % period != 0);
        let rope = if window.is_some() { &sliding } else { &full };
        let form = AttentionForm {
            scale,
            window,
            qk_norm: QkNorm::Heads,
            ..AttentionForm::usual(&dims, rope.clone())
        };
        let mut norm = |name| parts::norm(tensors, &format!("blk.{i}.{name}"), dims.hidden, dims.eps);
        let mixer_norm = norm("attn_norm")?;
        let mixer_post_norm = Some(norm("post_attention_norm")?);
        let ff_norm = norm("ffn_norm")?;
        let ff_post_norm = Some(norm("post_ffw_norm")?);
        layers.push(Layer {
            mixer_norm,
            mixer: Mixer::Attention(parts::attention(tensors, &dims, i, form)?),
            mixer_post_norm,
            ff_norm,
            feed_forward: parts::dense(tensors, &dims, i, width.at(i), Activation::GeluTanh)?,
            ff_post_norm,
            residual_scale: 1.0,
            side: None,
            output_scale: None,
        });
    }
    let mut head = parts::head(tensors, &dims, n_vocab, &embedding)?;
    head.soft_cap = keys.factor("final_logit_softcapping")?;
    Ok(Body { dims, n_vocab, embedding, side: None, layers, head })
}
