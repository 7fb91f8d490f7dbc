//! [`ModelSpec`]: what the one forward pass reads, layer by layer.
//!
//! Invariant: a spec refers only to tensors that exist in its file with the shape its numbers say, so the
//! forward pass needs no checks of its own. Enums with one variant are the places where the next mixers and
//! feed-forwards go; they are exhaustive on purpose, so that a new one can't be forgotten
//! by what reads them.

use turbospark_format::Gguf;

use crate::tensors::{Role, TensorRef};
use crate::{ModelError, families};

/// A model: embedding, layers, head.
///
/// ```text
/// x = embedding.scale * embed(token)
/// for each layer:
///     x += post_norm(mixer(norm(x)))
///     x += post_norm(feed_forward(norm(x)))
/// logits = soft_cap(head(norm(x)))
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
    /// `[n_vocab, hidden]`.
    pub weight: TensorRef,
    /// Factor on every embedded row; 1 where the family has none.
    pub scale: f32,
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
}

/// What mixes positions.
#[derive(Debug, Clone, PartialEq)]
pub enum Mixer {
    /// Softmax attention over a cache of keys and values.
    Attention(Attention),
}

/// Grouped-query attention (Ainslie et al. 2023): query head `h` reads KV head `h / (n_heads / n_kv_heads)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Attention {
    /// Query heads.
    pub n_heads: usize,
    /// Key and value heads; divides `n_heads`.
    pub n_kv_heads: usize,
    /// Width of a head; even.
    pub head_dim: usize,
    /// Factor on the scores before the softmax.
    pub scale: f32,
    /// How many positions a row sees, itself included; `None`: all before it.
    pub window: Option<usize>,
    /// Rotary embedding of queries and keys, after their norms.
    pub rope: Rope,
    /// `[n_heads * head_dim, hidden]`.
    pub q: Linear,
    /// `[n_kv_heads * head_dim, hidden]`.
    pub k: Linear,
    /// `[n_kv_heads * head_dim, hidden]`.
    pub v: Linear,
    /// `[hidden, n_heads * head_dim]`.
    pub o: Linear,
    /// RMS norm of each query head, before the rotary embedding.
    pub q_norm: Option<Norm>,
    /// RMS norm of each key head, before the rotary embedding.
    pub k_norm: Option<Norm>,
}

/// Rotary position embedding (Su et al. 2021): pair `i` of a head turns by
/// `position / scaling * theta^(-2i / head_dim) / freq_factors[i]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Rope {
    /// Base of the frequencies.
    pub theta: f32,
    /// Which elements make a pair.
    pub pairing: Pairing,
    /// Linear scaling: positions are divided by it (Chen et al. 2023); 1 where there is none.
    pub scaling: f32,
    /// `[head_dim / 2]` divisors of the frequencies, as Llama 3.1 ships them.
    pub freq_factors: Option<TensorRef>,
}

/// Which two elements of a head a rotary angle turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairing {
    /// `(2i, 2i + 1)`.
    Interleaved,
    /// `(i, i + head_dim / 2)`.
    Halves,
}

/// What works on each row alone.
#[derive(Debug, Clone, PartialEq)]
pub enum FeedForward {
    /// One gated network for every row.
    Dense(DenseFeedForward),
}

/// `down(activation(gate(x)) * up(x))` (Shazeer 2020).
#[derive(Debug, Clone, PartialEq)]
pub struct DenseFeedForward {
    /// Inner width.
    pub width: usize,
    /// `[width, hidden]`.
    pub gate: Linear,
    /// `[width, hidden]`.
    pub up: Linear,
    /// `[hidden, width]`.
    pub down: Linear,
    /// Applied to the gate.
    pub activation: Activation,
}

/// The gate's non-linearity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// `x * sigmoid(x)`.
    Silu,
    /// The tanh form of GELU (Hendrycks and Gimpel 2016), computed exactly.
    GeluTanh,
}

/// `weight · x + bias`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Linear {
    /// `[rows, columns]`, row-major.
    pub weight: TensorRef,
    /// `[rows]`.
    pub bias: Option<TensorRef>,
    /// Outputs.
    pub rows: usize,
    /// Inputs.
    pub columns: usize,
}

/// RMS norm (Zhang and Sennrich 2019): `weight * x / sqrt(mean(x²) + eps)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Norm {
    /// One factor for each element.
    pub weight: TensorRef,
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
    /// `cap * tanh(logit / cap)`.
    pub soft_cap: Option<f32>,
}
