//! Pieces that several families share: dimensions, and the tensors of a block under their usual names.
//!
//! Defaults are those of the GGUF format: `head_count_kv` = `head_count`, `key_length` = `value_length` =
//! `embedding_length / head_count`, `rope.dimension_count` = `key_length`, `rope.freq_base` = 10000,
//! `rope.scaling.type` = linear with factor 1. Everything else is required.

use crate::ModelError;
use crate::keys::Keys;
use crate::spec::{
    Activation, Attention, DenseFeedForward, Embedding, FeedForward, Head, KeyValues, Linear, Norm, Pairing,
    Rope, RopeScaling,
};
use crate::tensors::{Role, TensorRef, Tensors};

/// The numbers that every dense decoder has.
pub(super) struct Dims {
    pub(super) n_layers: usize,
    pub(super) hidden: usize,
    pub(super) ff_width: usize,
    pub(super) n_heads: usize,
    pub(super) n_kv_heads: usize,
    pub(super) head_dim: usize,
    pub(super) eps: f32,
    pub(super) context_length: usize,
}

impl Dims {
    pub(super) fn read(keys: &Keys<'_>) -> Result<Dims, ModelError> {
        let hidden = keys.require_count("embedding_length")?;
        let n_heads = keys.require_count("attention.head_count")?;
        let n_kv_heads = keys.count("attention.head_count_kv")?.unwrap_or(n_heads);
        if n_heads % n_kv_heads != 0 {
            return Err(keys.bad(
                "attention.head_count_kv",
                n_kv_heads,
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
        for (key, found) in [
            ("attention.value_length", keys.count("attention.value_length")?),
            ("rope.dimension_count", keys.count("rope.dimension_count")?),
        ] {
            if found.is_some_and(|n| n != head_dim) {
                let expected = format!("{head_dim}, the width of a key");
                return Err(keys.bad(key, found.unwrap_or_default(), expected));
            }
        }
        // Products of these are tensor shapes: they have to be numbers.
        if n_heads.checked_mul(head_dim).is_none() {
            return Err(keys.bad("attention.head_count", n_heads, "a count that fits a tensor"));
        }
        Ok(Dims {
            n_layers: keys.require_count("block_count")?,
            hidden,
            ff_width: keys.require_count("feed_forward_length")?,
            n_heads,
            n_kv_heads,
            head_dim,
            eps: keys.require_positive("attention.layer_norm_rms_epsilon")?,
            context_length: keys.require_count("context_length")?,
        })
    }

    /// `1 / sqrt(head_dim)`, the usual factor on scores.
    pub(super) fn usual_scale(&self) -> f32 {
        1.0 / (self.head_dim as f32).sqrt()
    }
}

/// Refuses a file with routed experts.
pub(super) fn refuse_experts(keys: &Keys<'_>, what: &str) -> Result<(), ModelError> {
    for key in ["expert_count", "expert_used_count"] {
        if let Some(n) = keys.usize(key)?.filter(|&n| n > 0) {
            let shown_by = format!("key `{}` = {n}", keys.full(key));
            return Err(ModelError::NotYet { what: what.to_owned(), shown_by });
        }
    }
    Ok(())
}

/// Refuses a window in families whose GGUF form has none: which layers it is for isn't said.
pub(super) fn refuse_window(keys: &Keys<'_>, dims: &Dims) -> Result<(), ModelError> {
    let key = "attention.sliding_window";
    match keys.usize(key)? {
        Some(n) if n > 0 && n < dims.context_length => Err(ModelError::NotYet {
            what: "sliding windows in this family".to_owned(),
            shown_by: format!("key `{}` = {n}", keys.full(key)),
        }),
        _ => Ok(()),
    }
}

/// The rotary embedding that the `rope.*` keys describe, without frequency factors.
pub(super) fn rope(keys: &Keys<'_>, dims: usize, pairing: Pairing) -> Result<Rope, ModelError> {
    let theta = keys.positive("rope.freq_base")?.unwrap_or(10_000.0);
    let factor = match keys.factor("rope.scaling.factor")? {
        Some(x) => Some(x),
        None => keys.factor("rope.scale_linear")?,
    };
    let key = "rope.scaling.type";
    let scaling = match keys.str(key)? {
        None | Some("linear") => factor.unwrap_or(1.0),
        Some("none") => 1.0,
        Some(other) => {
            return Err(ModelError::NotYet {
                what: format!("rotary scaling `{other}` in this family"),
                shown_by: format!("key `{}`", keys.full(key)),
            });
        }
    };
    let key = "rope.scaling.attn_factor";
    if let Some(x) = keys.factor(key)?.filter(|&x| x != 1.0) {
        return Err(ModelError::NotYet {
            what: "a magnitude factor on rotary embeddings in this family".to_owned(),
            shown_by: format!("key `{}` = {x}", keys.full(key)),
        });
    }
    Ok(Rope {
        theta,
        dims,
        pairing,
        scaling: RopeScaling::Linear(scaling),
        magnitude: 1.0,
        freq_factors: None,
    })
}

/// `token_embd.weight`: the number of tokens is its number of rows.
pub(super) fn embedding(
    keys: &Keys<'_>,
    tensors: &mut Tensors<'_>,
    dims: &Dims,
    scale: f32,
) -> Result<(usize, Embedding), ModelError> {
    let name = "token_embd.weight";
    let n_vocab = match tensors.shape(name) {
        Some(&[_, rows, ..]) if rows > 0 => rows,
        // Absent or no matrix: the checked look-up below says which.
        _ => keys.count("vocab_size")?.unwrap_or(1),
    };
    let weight = tensors.require(name, &[dims.hidden, n_vocab], Role::Embedding)?;
    keys.check_vocabulary(n_vocab)?;
    Ok((n_vocab, Embedding { weight, scale }))
}

/// `output_norm` and `output`; without the latter the head is the embedding.
pub(super) fn head(
    tensors: &mut Tensors<'_>,
    dims: &Dims,
    n_vocab: usize,
    embedding: &Embedding,
    soft_cap: Option<f32>,
) -> Result<Head, ModelError> {
    let own = tensors.optional("output.weight", &[dims.hidden, n_vocab], Role::Head)?;
    let weight = own.unwrap_or(embedding.weight);
    Ok(Head {
        norm: norm(tensors, "output_norm", dims.hidden, dims.eps)?,
        projection: Linear { weight, bias: None, first_row: 0, rows: n_vocab, columns: dims.hidden },
        logit_scale: 1.0,
        soft_cap,
    })
}

/// `{name}.weight` as an RMS norm over `width` elements.
pub(super) fn norm(
    tensors: &mut Tensors<'_>,
    name: &str,
    width: usize,
    eps: f32,
) -> Result<Norm, ModelError> {
    let weight = tensors.require(&format!("{name}.weight"), &[width], Role::Norm)?;
    Ok(Norm { weight: Some(weight), width, eps })
}

/// What attention has beside its dimensions.
pub(super) struct AttentionForm {
    pub(super) scale: f32,
    pub(super) window: Option<usize>,
    pub(super) rope: Rope,
    /// Biases on q, k and v.
    pub(super) qkv_bias: bool,
    /// Norms of each head of q and k.
    pub(super) qk_norm: bool,
}

/// The `attn_*` tensors of block `layer`.
pub(super) fn attention(
    tensors: &mut Tensors<'_>,
    dims: &Dims,
    layer: usize,
    form: AttentionForm,
) -> Result<Attention, ModelError> {
    let (q_width, kv_width) = (dims.n_heads * dims.head_dim, dims.n_kv_heads * dims.head_dim);
    let role = Role::Attention;
    let mut linear = |name, rows, columns, bias| {
        let name = format!("blk.{layer}.{name}");
        let weight = tensors.require(&format!("{name}.weight"), &[columns, rows], role)?;
        let bias: Option<TensorRef> =
            if bias { Some(tensors.require(&format!("{name}.bias"), &[rows], role)?) } else { None };
        Ok::<_, ModelError>(Linear { weight, bias, first_row: 0, rows, columns })
    };
    let q = linear("attn_q", q_width, dims.hidden, form.qkv_bias)?;
    let k = linear("attn_k", kv_width, dims.hidden, form.qkv_bias)?;
    let v = linear("attn_v", kv_width, dims.hidden, form.qkv_bias)?;
    let o = linear("attn_output", dims.hidden, q_width, false)?;
    let mut head_norm = |name| match form.qk_norm {
        true => norm(tensors, &format!("blk.{layer}.{name}"), dims.head_dim, dims.eps).map(Some),
        false => Ok(None),
    };
    let (q_norm, k_norm) = (head_norm("attn_q_norm")?, head_norm("attn_k_norm")?);
    Ok(Attention {
        n_heads: dims.n_heads,
        n_kv_heads: dims.n_kv_heads,
        head_dim: dims.head_dim,
        v_dim: dims.head_dim,
        scale: form.scale,
        window: form.window,
        sinks: None,
        rope: Some(form.rope),
        temperature: None,
        q,
        output_gate: false,
        q_norm,
        kv: KeyValues::Own { k, v: Some(v), k_norm, v_norm: None },
        o,
    })
}

/// The `ffn_*` tensors of block `layer`.
pub(super) fn dense(
    tensors: &mut Tensors<'_>,
    dims: &Dims,
    layer: usize,
    activation: Activation,
) -> Result<FeedForward, ModelError> {
    let mut linear = |name, rows, columns| {
        let name = format!("blk.{layer}.{name}.weight");
        let weight = tensors.require(&name, &[columns, rows], Role::FeedForward)?;
        Ok::<_, ModelError>(Linear { weight, bias: None, first_row: 0, rows, columns })
    };
    let (width, hidden) = (dims.ff_width, dims.hidden);
    let gate = linear("ffn_gate", width, hidden)?;
    let up = linear("ffn_up", width, hidden)?;
    let down = linear("ffn_down", hidden, width)?;
    Ok(FeedForward::Dense(DenseFeedForward { width, gate, up, down, activation }))
}
