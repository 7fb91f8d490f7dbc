//! Attention over the `attn_*` tensors of a block, fused or not.

use super::{Dims, linear, norm};
use crate::ModelError;
use crate::spec::{Attention, KeyValues, Linear, Mixer, Norm, QueryTemperature, Rope};
use crate::tensors::{Role, Tensors};

/// What attention has beside its dimensions.
#[derive(Clone)]
pub(in crate::families) struct AttentionForm {
    pub(in crate::families) scale: f32,
    pub(in crate::families) window: Option<usize>,
    pub(in crate::families) rope: Option<Rope>,
    pub(in crate::families) temperature: Option<QueryTemperature>,
    pub(in crate::families) biases: Biases,
    pub(in crate::families) qk_norm: QkNorm,
    /// `attn_sinks`.
    pub(in crate::families) sinks: bool,
    /// `attn_q` holds a gate beside each query head.
    pub(in crate::families) output_gate: bool,
}

impl AttentionForm {
    /// Rotary embedding and the usual scale, and nothing else.
    pub(in crate::families) fn usual(dims: &Dims, rope: Rope) -> Self {
        AttentionForm {
            scale: dims.usual_scale(),
            window: None,
            rope: Some(rope),
            temperature: None,
            biases: Biases::None,
            qk_norm: QkNorm::None,
            sinks: false,
            output_gate: false,
        }
    }
}

/// Which projections have biases.
#[derive(Clone, Copy, PartialEq)]
pub(in crate::families) enum Biases {
    None,
    Qkv,
    QkvAndOutput,
}

/// What the norms of queries and keys are over.
#[derive(Clone, Copy, PartialEq)]
pub(in crate::families) enum QkNorm {
    None,
    /// Each head.
    Heads,
    /// All heads together.
    Whole,
}

/// Attention of one form in every layer.
pub(in crate::families) fn attention_layers(
    form: AttentionForm,
) -> impl Fn(&mut Tensors<'_>, &Dims, usize) -> Result<Mixer, ModelError> {
    move |t: &mut Tensors<'_>, dims: &Dims, i| attention(t, dims, i, form.clone()).map(Mixer::Attention)
}

/// The attention of block `layer`.
pub(in crate::families) fn attention(
    tensors: &mut Tensors<'_>,
    dims: &Dims,
    layer: usize,
    form: AttentionForm,
) -> Result<Attention, ModelError> {
    let n_kv_heads = dims.n_kv_heads.at(layer);
    let (width, kv_width) = (dims.n_heads * dims.head_dim, n_kv_heads * dims.head_dim);
    let block = format!("blk.{layer}");
    let q_width = if form.output_gate { 2 * width } else { width };
    let rows = [q_width, kv_width, kv_width];
    let fused = format!("{block}.attn_qkv");
    let [q, k, v] = if form.biases == Biases::None && tensors.shape(&format!("{fused}.weight")).is_some() {
        row_ranges(linear(tensors, &fused, (rows.iter().sum(), dims.hidden), Role::Attention)?, rows)
    } else {
        let biased = form.biases != Biases::None;
        let mut one =
            |name, rows| projection(tensors, &format!("{block}.{name}"), (rows, dims.hidden), biased);
        [one("attn_q", rows[0])?, one("attn_k", rows[1])?, one("attn_v", rows[2])?]
    };
    let biased = form.biases == Biases::QkvAndOutput;
    let o = projection(tensors, &format!("{block}.attn_output"), (dims.hidden, width), biased)?;
    let mut qk_norm = |name, whole| -> Result<Option<Norm>, ModelError> {
        let over = match form.qk_norm {
            QkNorm::None => return Ok(None),
            QkNorm::Heads => dims.head_dim,
            QkNorm::Whole => whole,
        };
        norm(tensors, &format!("{block}.{name}"), over, dims.eps).map(Some)
    };
    let (q_norm, k_norm) = (qk_norm("attn_q_norm", width)?, qk_norm("attn_k_norm", kv_width)?);
    let sinks = match form.sinks {
        true => {
            Some(tensors.require(&format!("{block}.attn_sinks.weight"), &[dims.n_heads], Role::Attention)?)
        }
        false => None,
    };
    Ok(Attention {
        n_heads: dims.n_heads,
        n_kv_heads,
        head_dim: dims.head_dim,
        v_dim: dims.head_dim,
        scale: form.scale,
        window: form.window,
        sinks,
        rope: form.rope,
        temperature: form.temperature,
        q,
        output_gate: form.output_gate,
        q_norm,
        kv: KeyValues::Own { k, v: Some(v), k_norm, v_norm: None },
        o,
    })
}

/// `{name}.weight`, with `{name}.bias` if the family has it.
fn projection(
    tensors: &mut Tensors<'_>,
    name: &str,
    (rows, columns): (usize, usize),
    biased: bool,
) -> Result<Linear, ModelError> {
    let mut linear = linear(tensors, name, (rows, columns), Role::Attention)?;
    if biased {
        linear.bias = Some(tensors.require(&format!("{name}.bias"), &[rows], Role::Attention)?);
    }
    Ok(linear)
}

/// Matrices of `rows` rows each that follow one another in `whole`.
fn row_ranges<const N: usize>(whole: Linear, rows: [usize; N]) -> [Linear; N] {
    let mut first_row = whole.first_row;
    rows.map(|rows| {
        let range = Linear { first_row, rows, ..whole };
        first_row += rows;
        range
    })
}
