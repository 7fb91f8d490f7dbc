//! Gemma 4 (`gemma4`), dense, with experts, and the small ones with per-layer embeddings.
//!
//! Windowed and full layers differ in heads: `key_length_swa` and `key_length`, and a number of KV heads each
//! (`attention.sliding_window_pattern` is true for windowed ones). Values are normed without weights; where a layer lacks
//! `attn_v` they are what `attn_k` projects, before norm and rotary embedding. Scores are not scaled. Full layers turn whole
//! heads by frequencies that `rope_freqs` divides, most of them to nothing. The last `attention.shared_kv_layers` layers use
//! keys and values of the last layer of their kind before them. A layer may end with a factor on the stream. Norm weights
//! are as stored, nothing is added. Experts, and the branch beside them, are in [`super::gemma4_experts`].

use super::parts::{self, Dims, Experts};
use super::{Body, gemma4_experts};
use crate::ModelError;
use crate::keys::Keys;
use crate::spec::{
    Activation, Attention, Embedding, KeyValues, Layer, Linear, Mixer, Norm, Pairing, Rope, RopeScaling,
    SideBranch, SideEmbedding,
};
use crate::tensors::{Role, Tensors};

pub(super) fn body(keys: &Keys<'_>, tensors: &mut Tensors<'_>) -> Result<Body, ModelError> {
    let dims = Dims::read(keys)?;
    let heads = Heads::read(keys, tensors, &dims)?;
    let experts = match Experts::read(keys)? {
        Some(experts) => Some((experts, keys.require_count("expert_feed_forward_length")?)),
        None => None,
    };
    let widths = parts::ff_width(keys)?;
    let (n_vocab, embedding) = parts::embedding(keys, tensors, &dims, (dims.hidden as f32).sqrt())?;
    let side = side_embedding(keys, tensors, &dims, n_vocab)?;
    let mut layers = Vec::new();
    for i in 0..dims.n_layers {
        let mut norm = |name| parts::norm(tensors, &format!("blk.{i}.{name}"), dims.hidden, dims.eps);
        let mixer_norm = norm("attn_norm")?;
        let mixer_post_norm = Some(norm("post_attention_norm")?);
        let ff_post_norm = Some(norm("post_ffw_norm")?);
        let dense_norm = norm("ffn_norm")?;
        let (ff_norm, feed_forward) = match experts {
            None => (dense_norm, parts::dense(tensors, &dims, i, widths.at(i), Activation::GeluTanh)?),
            Some((experts, width)) => {
                let form = gemma4_experts::form(experts, width);
                gemma4_experts::layer(tensors, &dims, i, &form, (dense_norm, widths.at(i)))?
            }
        };
        let side = match &side {
            Some(side) => Some(side_branch(tensors, &dims, i, side.width)?),
            None => None,
        };
        layers.push(Layer {
            mixer_norm,
            mixer: Mixer::Attention(heads.attention(keys, tensors, &dims, i)?),
            mixer_post_norm,
            ff_norm,
            feed_forward,
            ff_post_norm,
            residual_scale: 1.0,
            side,
            output_scale: tensors.optional(
                &format!("blk.{i}.layer_output_scale.weight"),
                &[1],
                Role::Norm,
            )?,
        });
    }
    let mut head = parts::head(tensors, &dims, n_vocab, &embedding)?;
    head.soft_cap = keys.factor("final_logit_softcapping")?;
    Ok(Body { dims, n_vocab, embedding, side, layers, head })
}

/// What the layers' attention is made of.
struct Heads {
    /// Whether a layer has a window.
    windowed: Vec<bool>,
    window: usize,
    sliding: Rope,
    full: Rope,
    sliding_head_dim: usize,
    full_head_dim: usize,
    /// Layers before those that use another's keys and values.
    n_own: usize,
}

impl Heads {
    fn read(keys: &Keys<'_>, tensors: &mut Tensors<'_>, dims: &Dims) -> Result<Heads, ModelError> {
        let key = "attention.sliding_window_pattern";
        let windowed =
            keys.flags(key, dims.n_blocks)?.ok_or_else(|| ModelError::MissingKey { key: keys.full(key) })?;
        let key = "attention.key_length_swa";
        let sliding_head_dim = keys.require_count(key)?;
        if sliding_head_dim % 2 != 0 {
            return Err(keys.bad(key, sliding_head_dim, "an even number, for rotary pairs"));
        }
        for key in ["attention.value_length_swa", "rope.dimension_count_swa"] {
            if let Some(n) = keys.count(key)?.filter(|&n| n != sliding_head_dim) {
                return Err(keys.bad(
                    key,
                    n,
                    format!("{sliding_head_dim}, the width of a key in these layers"),
                ));
            }
        }
        let mut full = parts::rope(keys, dims, Pairing::Halves)?;
        let sliding = Rope {
            theta: keys.positive("rope.freq_base_swa")?.unwrap_or(10_000.0),
            dims: sliding_head_dim,
            scaling: RopeScaling::Linear(1.0),
            magnitude: 1.0,
            ..full.clone()
        };
        if windowed.contains(&false) {
            full.freq_factors =
                Some(tensors.require("rope_freqs.weight", &[dims.head_dim / 2], Role::Rotary)?);
        }
        let key = "attention.shared_kv_layers";
        let shared = keys.some_count(key)?.unwrap_or(0);
        if shared >= dims.n_layers {
            return Err(keys.bad(key, shared, format!("less than the number of layers ({})", dims.n_layers)));
        }
        Ok(Heads {
            windowed,
            window: keys.require_count("attention.sliding_window")?,
            sliding,
            full,
            sliding_head_dim,
            full_head_dim: dims.head_dim,
            n_own: dims.n_layers - shared,
        })
    }

    fn attention(
        &self,
        keys: &Keys<'_>,
        tensors: &mut Tensors<'_>,
        dims: &Dims,
        layer: usize,
    ) -> Result<Attention, ModelError> {
        let windowed = self.windowed[layer];
        let (head_dim, rope) = match windowed {
            true => (self.sliding_head_dim, &self.sliding),
            false => (self.full_head_dim, &self.full),
        };
        let n_kv_heads = dims.n_kv_heads.at(layer);
        let kv = if layer < self.n_own {
            own(tensors, dims, layer, (n_kv_heads, head_dim))?
        } else {
            let source = (0..self.n_own)
                .rev()
                .find(|&i| self.windowed[i] == windowed && dims.n_kv_heads.at(i) == n_kv_heads);
            // Some converters leave in these layers what the checkpoint has and the model doesn't use.
            for name in ["attn_k", "attn_v", "attn_k_norm"] {
                tensors.ignore(&format!("blk.{layer}.{name}.weight"));
            }
            KeyValues::OfLayer(source.ok_or_else(|| {
                let expected = format!("layers of layer {layer}'s shape before the sharing ones");
                keys.bad("attention.shared_kv_layers", dims.n_layers - self.n_own, expected)
            })?)
        };
        let width = dims.n_heads * head_dim;
        let name = |part: &str| format!("blk.{layer}.{part}");
        Ok(Attention {
            n_heads: dims.n_heads,
            n_kv_heads,
            head_dim,
            v_dim: head_dim,
            scale: 1.0,
            window: windowed.then_some(self.window),
            sinks: None,
            rope: Some(rope.clone()),
            temperature: None,
            q: parts::linear(tensors, &name("attn_q"), (width, dims.hidden), Role::Attention)?,
            output_gate: false,
            q_norm: Some(parts::norm(tensors, &name("attn_q_norm"), head_dim, dims.eps)?),
            kv,
            o: parts::linear(tensors, &name("attn_output"), (dims.hidden, width), Role::Attention)?,
        })
    }
}

/// A layer's own keys and values, of `n_kv_heads` heads of `head_dim`.
fn own(
    tensors: &mut Tensors<'_>,
    dims: &Dims,
    layer: usize,
    (n_kv_heads, head_dim): (usize, usize),
) -> Result<KeyValues, ModelError> {
    let shape = (n_kv_heads * head_dim, dims.hidden);
    let k: Linear = parts::linear(tensors, &format!("blk.{layer}.attn_k"), shape, Role::Attention)?;
    let v = tensors.optional(&format!("blk.{layer}.attn_v.weight"), &[shape.1, shape.0], Role::Attention)?;
    Ok(KeyValues::Own {
        k,
        v: v.map(|weight| Linear { weight, ..k }),
        k_norm: Some(parts::norm(tensors, &format!("blk.{layer}.attn_k_norm"), head_dim, dims.eps)?),
        v_norm: Some(Norm { weight: None, width: head_dim, eps: dims.eps }),
    })
}

/// The embedding of which each layer gets a part, in files with `embedding_length_per_layer_input`.
fn side_embedding(
    keys: &Keys<'_>,
    tensors: &mut Tensors<'_>,
    dims: &Dims,
    n_vocab: usize,
) -> Result<Option<SideEmbedding>, ModelError> {
    let Some(width) = keys.some_count("embedding_length_per_layer_input")? else { return Ok(None) };
    let all = width * dims.n_layers;
    let weight = tensors.require("per_layer_token_embd.weight", &[all, n_vocab], Role::Embedding)?;
    Ok(Some(SideEmbedding {
        width,
        embedding: Embedding { weight, scale: (width as f32).sqrt() },
        projection: parts::linear(tensors, "per_layer_model_proj", (all, dims.hidden), Role::Embedding)?,
        projection_scale: 1.0 / (dims.hidden as f32).sqrt(),
        norm: parts::norm(tensors, "per_layer_proj_norm", width, dims.eps)?,
        scale: std::f32::consts::FRAC_1_SQRT_2,
    }))
}

fn side_branch(
    tensors: &mut Tensors<'_>,
    dims: &Dims,
    layer: usize,
    width: usize,
) -> Result<SideBranch, ModelError> {
    let name = |part: &str| format!("blk.{layer}.{part}");
    Ok(SideBranch {
        gate: parts::linear(tensors, &name("inp_gate"), (width, dims.hidden), Role::FeedForward)?,
        up: parts::linear(tensors, &name("proj"), (dims.hidden, width), Role::FeedForward)?,
        norm: parts::norm(tensors, &name("post_norm"), dims.hidden, dims.eps)?,
        activation: Activation::GeluTanh,
    })
}
