//! Pieces that several families share: dimensions, rotary embeddings, and the tensors of a block under their usual
//! names. Invariant: a default is the GGUF format's own, and a shape comes from the metadata alone.

mod attention;
mod dims;
mod ends;
mod experts;
mod feed_forward;
mod refuse;
mod rope;

pub(super) use attention::{AttentionForm, Biases, QkNorm, attention, attention_layers};
pub(super) use dims::Dims;
pub(super) use ends::{embedding, head, linear, norm};
pub(super) use experts::{Experts, MoeForm, groups, moe, moe_layers, moe_with_gated_shared, scoring, shared};
pub(super) use feed_forward::{dense, dense_layers, ff_width, network};
pub(super) use refuse::{refuse_experts, refuse_key, refuse_tensor, refuse_window};
pub(super) use rope::{rope, yarn_log_multiplier, yarn_mscale};
