//! Experts of Gemma 4: a dense branch beside the routed ones, each with norms of its own before and after.
//!
//! The router reads the stream through a norm without learned weights, times `ffn_gate_inp.scale`, times
//! `1 / sqrt(hidden)`; its softmax scores are normalised over the chosen and multiplied by `ffn_down_exps.scale` of each
//! expert (transformers, `Gemma4TextRouter`). `post_ffw_norm` of the layer is over the sum of both branches.

use super::parts::{self, Dims, Experts, MoeForm};
use crate::ModelError;
use crate::spec::{Activation, FeedForward, Norm, Scoring, SharedExpert};
use crate::tensors::{Role, Tensors};

pub(super) fn form(experts: Experts, width: usize) -> MoeForm {
    MoeForm { activation: Activation::GeluTanh, ..MoeForm::usual(experts, width, Scoring::Softmax, true) }
}

/// Norm before the routed experts, and both branches; the dense one reads through its own norm.
pub(super) fn layer(
    tensors: &mut Tensors<'_>,
    dims: &Dims,
    layer: usize,
    form: &MoeForm,
    (dense_norm, dense_width): (Norm, usize),
) -> Result<(Norm, FeedForward), ModelError> {
    let mut moe = parts::moe(tensors, dims, layer, form)?;
    let name = |part: &str| format!("blk.{layer}.{part}");
    let scale = tensors.require(&name("ffn_gate_inp.scale"), &[dims.hidden], Role::Router)?;
    moe.router.norm = Some(Norm { weight: Some(scale), width: dims.hidden, eps: dims.eps });
    moe.router.logit_scale = 1.0 / (dims.hidden as f32).sqrt();
    moe.router.expert_scale =
        Some(tensors.require(&name("ffn_down_exps.scale"), &[form.experts.count], Role::Router)?);
    let network = parts::network(tensors, dims, layer, "", dense_width, Activation::GeluTanh)?;
    let mut norm = |part| parts::norm(tensors, &name(part), dims.hidden, dims.eps);
    moe.post_norm = Some(norm("post_ffw_norm_2")?);
    moe.shared = Some(SharedExpert {
        network,
        norm: Some(dense_norm),
        gate: None,
        post_norm: Some(norm("post_ffw_norm_1")?),
    });
    Ok((norm("pre_ffw_norm_2")?, FeedForward::Moe(moe)))
}
