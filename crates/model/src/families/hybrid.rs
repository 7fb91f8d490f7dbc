//! The hybrids of Qwen: three of four layers are gated delta nets, the fourth is attention with an output gate.
//!
//! Qwen3.5 and 3.6 (`qwen35`, `qwen35moe`) store value heads tiled over key heads and project update strength and decay by
//! two matrices; Qwen3-Next (`qwen3next`) keeps them grouped and packs both into `ssm_ba`. `ssm_a` is `-exp(A_log)` in the
//! files. Which layers are recurrent is in `attention.recurrent_layers`, or all but each `full_attention_interval`-th
//! (4 if absent) are. Attention turns the first part of a head, pairs are halves; sections of the rotary embedding share
//! one position on text. The MoE has a shared expert that a sigmoid gates. The second norm is named
//! `post_attention_norm`. Blocks that predict further tokens come last and have no part in the logits.

use super::parts::{self, AttentionForm, Dims, Experts, MoeForm, QkNorm};
use super::{Body, plain};
use crate::ModelError;
use crate::keys::Keys;
use crate::spec::{DeltaGates, DeltaNet, FeedForward, HeadOrder, Mixer, Pairing, Scoring};
use crate::tensors::{Role, Tensors};

pub(super) fn qwen35(keys: &Keys<'_>, tensors: &mut Tensors<'_>) -> Result<Body, ModelError> {
    parts::refuse_experts(keys, "mixture of experts in qwen35")?;
    body(keys, tensors, HeadOrder::Tiled, parts::dense_layers(keys)?)
}

pub(super) fn qwen35moe(keys: &Keys<'_>, tensors: &mut Tensors<'_>) -> Result<Body, ModelError> {
    body(keys, tensors, HeadOrder::Tiled, experts(keys)?)
}

pub(super) fn qwen3next(keys: &Keys<'_>, tensors: &mut Tensors<'_>) -> Result<Body, ModelError> {
    let again =
        "query, key, value and gate in one matrix; convert the checkpoint again with a current converter";
    parts::refuse_tensor(tensors, "blk.0.ssm_in.weight", again)?;
    body(keys, tensors, HeadOrder::Grouped, experts(keys)?)
}

fn experts(
    keys: &Keys<'_>,
) -> Result<impl Fn(&mut Tensors<'_>, &Dims, usize) -> Result<FeedForward, ModelError>, ModelError> {
    let experts = Experts::require(keys)?;
    let form = MoeForm::usual(experts, experts.width(keys)?, Scoring::Softmax, true);
    parts::moe_with_gated_shared(keys, form)
}

fn body(
    keys: &Keys<'_>,
    tensors: &mut Tensors<'_>,
    order: HeadOrder,
    feed_forward: impl FnMut(&mut Tensors<'_>, &Dims, usize) -> Result<FeedForward, ModelError>,
) -> Result<Body, ModelError> {
    let dims = Dims::read_partial(keys)?;
    parts::refuse_window(keys, &dims)?;
    let rope = parts::rope(keys, &dims, Pairing::Halves)?;
    let delta = Delta::read(keys, order)?;
    let recurrent = keys.flags("attention.recurrent_layers", dims.n_blocks)?;
    let interval = keys.count("full_attention_interval")?.unwrap_or(4);
    let mixer = |t: &mut Tensors<'_>, dims: &Dims, i: usize| {
        if recurrent.as_ref().map_or(!(i + 1).is_multiple_of(interval), |flags| flags[i]) {
            return delta.net(t, dims, i).map(Mixer::Delta);
        }
        let form = AttentionForm {
            qk_norm: QkNorm::Heads,
            output_gate: true,
            ..AttentionForm::usual(dims, rope.clone())
        };
        parts::attention(t, dims, i, form).map(Mixer::Attention)
    };
    plain::body(keys, tensors, dims, &plain::POST_ATTENTION_NORM, mixer, feed_forward)
}

/// The numbers of a delta net.
struct Delta {
    n_k_heads: usize,
    n_v_heads: usize,
    k_dim: usize,
    v_dim: usize,
    conv_width: usize,
    order: HeadOrder,
}

impl Delta {
    fn read(keys: &Keys<'_>, order: HeadOrder) -> Result<Delta, ModelError> {
        let n_k_heads = keys.require_count("ssm.group_count")?;
        let n_v_heads = keys.require_count("ssm.time_step_rank")?;
        let inner = keys.require_count("ssm.inner_size")?;
        if n_v_heads % n_k_heads != 0 {
            let expected = format!("a divisor of ssm.time_step_rank ({n_v_heads})");
            return Err(keys.bad("ssm.group_count", n_k_heads, expected));
        }
        if inner % n_v_heads != 0 {
            let expected = format!("a multiple of ssm.time_step_rank ({n_v_heads})");
            return Err(keys.bad("ssm.inner_size", inner, expected));
        }
        Ok(Delta {
            n_k_heads,
            n_v_heads,
            k_dim: keys.require_count("ssm.state_size")?,
            v_dim: inner / n_v_heads,
            conv_width: keys.require_count("ssm.conv_kernel")?,
            order,
        })
    }

    fn net(&self, tensors: &mut Tensors<'_>, dims: &Dims, layer: usize) -> Result<DeltaNet, ModelError> {
        let (n_v_heads, hidden, role) = (self.n_v_heads, dims.hidden, Role::Recurrent);
        let inner = n_v_heads * self.v_dim;
        let channels = 2 * self.n_k_heads * self.k_dim + inner;
        let name = |name: &str| format!("blk.{layer}.{name}");
        let mut linear = |part, shape| parts::linear(tensors, &name(part), shape, role);
        let qkv = linear("attn_qkv", (channels, hidden))?;
        let z = linear("attn_gate", (inner, hidden))?;
        let out = linear("ssm_out", (hidden, inner))?;
        let gates = match self.order {
            HeadOrder::Tiled => DeltaGates::Split {
                beta: linear("ssm_beta", (n_v_heads, hidden))?,
                alpha: linear("ssm_alpha", (n_v_heads, hidden))?,
            },
            HeadOrder::Grouped => DeltaGates::PerKeyHead(linear("ssm_ba", (2 * n_v_heads, hidden))?),
        };
        let mut tensor = |part, shape: &[usize]| tensors.require(&name(part), shape, role);
        Ok(DeltaNet {
            n_k_heads: self.n_k_heads,
            n_v_heads,
            k_dim: self.k_dim,
            v_dim: self.v_dim,
            conv_width: self.conv_width,
            heads: self.order,
            qkv,
            z,
            gates,
            conv: tensor("ssm_conv1d.weight", &[self.conv_width, channels])?,
            dt_bias: tensor("ssm_dt.bias", &[n_v_heads])?,
            a: tensor("ssm_a", &[n_v_heads])?,
            norm: parts::norm(tensors, &name("ssm_norm"), self.v_dim, dims.eps)?,
            out,
        })
    }
}
