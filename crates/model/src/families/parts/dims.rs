//! The numbers that every decoder has.
//!
//! Defaults are those of the GGUF format: `head_count_kv` = `head_count`, `key_length` = `value_length` =
//! `embedding_length / head_count`, `rope.dimension_count` = `key_length`. `block_count` counts the blocks that predict
//! further tokens (`nextn_predict_layers`); they come last and have no part in the logits.

use crate::ModelError;
use crate::keys::{Keys, PerLayer};

/// Dimensions of a decoder.
pub(in crate::families) struct Dims {
    /// Layers that are computed.
    pub(in crate::families) n_layers: usize,
    /// Blocks of the file: the layers, then those that predict further tokens.
    pub(in crate::families) n_blocks: usize,
    pub(in crate::families) hidden: usize,
    pub(in crate::families) n_heads: usize,
    pub(in crate::families) n_kv_heads: PerLayer,
    pub(in crate::families) head_dim: usize,
    /// Elements of a head that rotary embeddings turn.
    pub(in crate::families) rope_dims: usize,
    pub(in crate::families) eps: f32,
    pub(in crate::families) context_length: usize,
}

impl Dims {
    /// Dimensions of a family whose rotary embedding turns whole heads.
    pub(in crate::families) fn read(keys: &Keys<'_>) -> Result<Dims, ModelError> {
        let dims = Dims::read_partial(keys)?;
        if dims.rope_dims == dims.head_dim {
            return Ok(dims);
        }
        let expected = format!("{}, the width of a key", dims.head_dim);
        Err(keys.bad("rope.dimension_count", dims.rope_dims, expected))
    }

    /// Dimensions of a family whose rotary embedding may turn the first part of a head only.
    pub(in crate::families) fn read_partial(keys: &Keys<'_>) -> Result<Dims, ModelError> {
        let dims = Dims::read_heads(keys)?;
        if let Some(n) = keys.count("attention.value_length")?.filter(|&n| n != dims.head_dim) {
            return Err(keys.bad(
                "attention.value_length",
                n,
                format!("{}, the width of a key", dims.head_dim),
            ));
        }
        if dims.rope_dims % 2 != 0 || dims.rope_dims > dims.head_dim {
            let expected = format!("an even number up to {}, the width of a key", dims.head_dim);
            return Err(keys.bad("rope.dimension_count", dims.rope_dims, expected));
        }
        Ok(dims)
    }

    /// Dimensions without the rule that ties values and rotary embedding to the width of a key.
    pub(in crate::families) fn read_heads(keys: &Keys<'_>) -> Result<Dims, ModelError> {
        let n_blocks = keys.require_count("block_count")?;
        let predicting = keys.some_count("nextn_predict_layers")?.unwrap_or(0);
        if predicting >= n_blocks {
            return Err(keys.bad(
                "nextn_predict_layers",
                predicting,
                format!("less than block_count ({n_blocks})"),
            ));
        }
        let hidden = keys.require_count("embedding_length")?;
        let n_heads = keys.require_uniform("attention.head_count", n_blocks)?;
        let n_kv_heads =
            keys.per_layer("attention.head_count_kv", n_blocks)?.unwrap_or(PerLayer::Same(n_heads));
        if let Some(n) = n_kv_heads.iter().find(|n| n_heads % n != 0) {
            return Err(keys.bad(
                "attention.head_count_kv",
                n,
                format!("a divisor of head_count ({n_heads})"),
            ));
        }
        let head_dim = match keys.count("attention.key_length")? {
            Some(n) => n,
            None if hidden % n_heads == 0 => hidden / n_heads,
            None => {
                let expected = format!("a divisor of embedding_length {hidden}, as key_length is absent");
                return Err(keys.bad("attention.head_count", n_heads, expected));
            }
        };
        if head_dim % 2 != 0 {
            return Err(keys.bad("attention.key_length", head_dim, "an even number, for rotary pairs"));
        }
        Ok(Dims {
            n_layers: n_blocks - predicting,
            n_blocks,
            hidden,
            n_heads,
            n_kv_heads,
            head_dim,
            rope_dims: keys.count("rope.dimension_count")?.unwrap_or(head_dim),
            eps: keys.require_positive("attention.layer_norm_rms_epsilon")?,
            context_length: keys.require_count("context_length")?,
        })
    }

    /// `1 / sqrt(head_dim)`, the usual factor on scores.
    pub(in crate::families) fn usual_scale(&self) -> f32 {
        1.0 / (self.head_dim as f32).sqrt()
    }
}
