//! [`ModelSpec`]: what the one forward pass reads, layer by layer.
//!
//! Invariant: a spec refers only to tensors that exist in its file with the shape its numbers say, so the
//! forward pass needs no checks of its own. Its enums are exhaustive on purpose: a new mixer or feed-forward can't
//! be forgotten by what reads them.

mod feed_forward;
mod mixer;

pub use feed_forward::{
    Activation, DenseFeedForward, ExpertGroups, FeedForward, Moe, Router, Scoring, SharedExpert,
};
pub use mixer::{
    Attention, DeltaGates, DeltaNet, HeadOrder, KeyValues, LatentAttention, LatentQuery, Mixer, Pairing,
    QueryTemperature, Rope, RopeScaling,
};

use turbospark_format::Gguf;

use crate::tensors::{Role, TensorRef};
use crate::{ModelError, families};

/// A model: embedding, layers, head.
///
/// ```text
/// x = embedding.scale * embed(token)
/// for each layer:
///     x += residual_scale * post_norm(mixer(norm(x)))
///     x += residual_scale * post_norm(feed_forward(norm(x)))
///     x += the layer's share of the side embedding, if there is one
///     x *= output_scale
/// logits = soft_cap(logit_scale * head(norm(x)))
/// ```
#[derive(Debug, Clone)]
pub struct ModelSpec {
    /// `general.architecture`.
    pub architecture: String,
    /// `general.name`, if the file has one.
    pub name: Option<String>,
    /// Tokens in the vocabulary: rows of the embedding.
    pub n_vocab: usize,
    /// Width of the residual stream.
    pub hidden: usize,
    /// Positions the model was trained for.
    pub context_length: usize,
    /// Token embedding.
    pub embedding: Embedding,
    /// A second embedding of which each layer gets a part.
    pub side: Option<SideEmbedding>,
    /// Layers, first to last.
    pub layers: Vec<Layer>,
    /// Final norm and projection to the vocabulary.
    pub head: Head,
    /// What each tensor of the file is for, in file order.
    pub roles: Vec<Role>,
}

impl ModelSpec {
    /// Reads the spec from an opened file, by the family its `general.architecture` names.
    ///
    /// # Errors
    /// An architecture without a family, or metadata and tensors that don't make a model of that family.
    pub fn from_gguf(gguf: &Gguf) -> Result<ModelSpec, ModelError> {
        families::spec(gguf)
    }

    /// Bytes of the file's tensors by role, largest first.
    pub fn bytes_by_role(&self, gguf: &Gguf) -> Vec<(Role, u64)> {
        let mut sums: Vec<(Role, u64)> = Vec::new();
        for (tensor, &role) in gguf.tensors().iter().zip(&self.roles) {
            match sums.iter_mut().find(|(r, _)| *r == role) {
                Some((_, sum)) => *sum += tensor.bytes,
                None => sums.push((role, tensor.bytes)),
            }
        }
        sums.sort_by_key(|&(role, bytes)| (std::cmp::Reverse(bytes), role));
        sums
    }
}

/// `scale * weight[token]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    /// `[n_vocab, width]`.
    pub weight: TensorRef,
    /// Factor on every embedded row; 1 where the family has none.
    pub scale: f32,
}

/// Vectors for every layer, made once from the tokens and the embedded rows (Gemma 3n's per-layer embeddings):
/// `side = scale * (norm(projection_scale * projection(x)) + embed(token))`, `[n_layers, width]` a row.
#[derive(Debug, Clone, PartialEq)]
pub struct SideEmbedding {
    /// Elements that each layer gets.
    pub width: usize,
    /// `[n_vocab, n_layers * width]`.
    pub embedding: Embedding,
    /// `[n_layers * width, hidden]`.
    pub projection: Linear,
    /// Factor on the projection.
    pub projection_scale: f32,
    /// Norm of each layer's part of the projection.
    pub norm: Norm,
    /// Factor on the sum.
    pub scale: f32,
}

/// A layer's use of its part of the side embedding: `x += norm(up(activation(gate(x)) * side))`.
#[derive(Debug, Clone, PartialEq)]
pub struct SideBranch {
    /// `[width, hidden]`.
    pub gate: Linear,
    /// `[hidden, width]`.
    pub up: Linear,
    /// Norm of what is added.
    pub norm: Norm,
    /// Applied to the gate.
    pub activation: Activation,
}

/// Two residual branches: a mixer over positions, then a feed-forward within each row.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Norm before the mixer.
    pub mixer_norm: Norm,
    /// What mixes positions.
    pub mixer: Mixer,
    /// Norm of the mixer's output before it is added.
    pub mixer_post_norm: Option<Norm>,
    /// Norm before the feed-forward.
    pub ff_norm: Norm,
    /// What works on each row alone.
    pub feed_forward: FeedForward,
    /// Norm of the feed-forward's output before it is added.
    pub ff_post_norm: Option<Norm>,
    /// Factor on what each of the two branches adds; 1 where the family has none.
    pub residual_scale: f32,
    /// The layer's part of the side embedding.
    pub side: Option<SideBranch>,
    /// `[1]`, a factor on the stream after the layer.
    pub output_scale: Option<TensorRef>,
}

/// `weight · x + bias`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Linear {
    /// A row-major matrix of at least `first_row + rows` rows of `columns`: fused projections share a tensor.
    pub weight: TensorRef,
    /// `[rows]`.
    pub bias: Option<TensorRef>,
    /// Row of the tensor at which this matrix begins.
    pub first_row: usize,
    /// Outputs.
    pub rows: usize,
    /// Inputs.
    pub columns: usize,
}

/// Matrices of one shape in one tensor: one an expert, or one a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stack {
    /// `[n, stored_rows, columns]`, row-major.
    pub weight: TensorRef,
    /// `[n, rows]`.
    pub bias: Option<TensorRef>,
    /// Matrices.
    pub n: usize,
    /// Rows of one matrix in the tensor: more than `rows` where two projections are fused.
    pub stored_rows: usize,
    /// Row of each stored matrix at which this one begins.
    pub first_row: usize,
    /// Outputs of one matrix.
    pub rows: usize,
    /// Inputs of one matrix.
    pub columns: usize,
}

/// RMS norm (Zhang and Sennrich 2019) of each `width` elements: `weight * x / sqrt(mean(x²) + eps)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Norm {
    /// `[width]`; `None` stands for ones.
    pub weight: Option<TensorRef>,
    /// Elements that are normed together: a row, or a head.
    pub width: usize,
    /// Added to the mean square.
    pub eps: f32,
}

/// Final norm, projection to the vocabulary, and what is done to the logits.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    /// Norm before the projection.
    pub norm: Norm,
    /// `[n_vocab, hidden]`; the embedding's own tensor where the two are tied.
    pub projection: Linear,
    /// Factor on the logits; 1 where the family has none.
    pub logit_scale: f32,
    /// `cap * tanh(logit / cap)`, after the factor.
    pub soft_cap: Option<f32>,
}
