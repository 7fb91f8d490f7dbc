//! What mixes positions: attention over cached keys and values, latent attention, gated delta nets.

use super::{Linear, Norm, Stack};
use crate::tensors::TensorRef;

/// What mixes positions.
#[derive(Debug, Clone, PartialEq)]
pub enum Mixer {
    /// Softmax attention over a cache of keys and values.
    Attention(Attention),
    /// Softmax attention over a cache of one compressed row a position.
    Latent(LatentAttention),
    /// A linear recurrence over a state of fixed size.
    Delta(DeltaNet),
}

/// Grouped-query attention (Ainslie et al. 2023): query head `h` reads KV head `h / (n_heads / n_kv_heads)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Attention {
    /// Query heads.
    pub n_heads: usize,
    /// Key and value heads; divides `n_heads`.
    pub n_kv_heads: usize,
    /// Width of a query and key head.
    pub head_dim: usize,
    /// Width of a value head.
    pub v_dim: usize,
    /// Factor on the scores before the softmax.
    pub scale: f32,
    /// How many positions a row sees, itself included; `None`: all before it.
    pub window: Option<usize>,
    /// `[n_heads]` logits of a position that has no value: they enter the softmax's denominator only.
    pub sinks: Option<TensorRef>,
    /// Rotary embedding of queries and keys, after biases and norms; `None`: the layer knows no positions.
    pub rope: Option<Rope>,
    /// Factor on queries that grows with the position.
    pub temperature: Option<QueryTemperature>,
    /// `[n_heads * head_dim, hidden]`; with `output_gate` `[n_heads, query then gate, head_dim]` rows.
    pub q: Linear,
    /// Whether `q` holds a gate beside each query head: the head's output is multiplied by its sigmoid.
    pub output_gate: bool,
    /// Norm of queries, before the rotary embedding: of each head, or of all heads together.
    pub q_norm: Option<Norm>,
    /// Where keys and values come from.
    pub kv: KeyValues,
    /// `[hidden, n_heads * v_dim]`.
    pub o: Linear,
}

/// Where an attention layer's keys and values come from.
#[derive(Debug, Clone, PartialEq)]
pub enum KeyValues {
    /// The layer makes and caches its own.
    Own {
        /// `[n_kv_heads * head_dim, hidden]`.
        k: Linear,
        /// `[n_kv_heads * v_dim, hidden]`; `None`: the values are what `k` projects, before norm and rotary embedding.
        v: Option<Linear>,
        /// Norm of keys, before the rotary embedding: of each head, or of all heads together.
        k_norm: Option<Norm>,
        /// Norm of values.
        v_norm: Option<Norm>,
    },
    /// Those that an earlier layer of the same shape cached.
    OfLayer(usize),
}

/// `1 + scale * ln(1 + floor(position / period))` on queries, as Llama 4 and Mistral 3 have it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueryTemperature {
    /// Growth.
    pub scale: f32,
    /// Positions between steps.
    pub period: usize,
}

/// Attention over one compressed row a position (DeepSeek-V2, 2024) in the absorbed form: a query head meets the cached row of
/// `rank + rope_dim` elements after its first part went through `k_up`, and the weighted sum of the rows' first `rank`
/// elements becomes a value through `v_up`.
#[derive(Debug, Clone, PartialEq)]
pub struct LatentAttention {
    /// Query heads.
    pub n_heads: usize,
    /// Width of the compressed row.
    pub rank: usize,
    /// Elements of a query head without positions; they come first.
    pub nope_dim: usize,
    /// Elements of a query head, and of the cached row after `rank`, that are turned.
    pub rope_dim: usize,
    /// Width of a value head.
    pub v_dim: usize,
    /// Factor on the scores before the softmax.
    pub scale: f32,
    /// Of the last `rope_dim` elements of queries and of the cached row.
    pub rope: Rope,
    /// Queries of `n_heads * (nope_dim + rope_dim)`.
    pub q: LatentQuery,
    /// `[rank + rope_dim, hidden]`.
    pub kv: Linear,
    /// Norm of the first `rank` elements of the row.
    pub kv_norm: Norm,
    /// One `[rank, nope_dim]` a head.
    pub k_up: Stack,
    /// One `[v_dim, rank]` a head.
    pub v_up: Stack,
    /// `[hidden, n_heads * v_dim]`.
    pub o: Linear,
}

/// How latent attention makes its queries.
#[derive(Debug, Clone, PartialEq)]
pub enum LatentQuery {
    /// One projection.
    Direct(Linear),
    /// Two, with a norm between them.
    LowRank {
        /// To the query's rank.
        down: Linear,
        /// Of the compressed query.
        norm: Norm,
        /// To the heads.
        up: Linear,
    },
}

/// Gated delta net (Yang et al. 2024): a causal convolution over queries, keys and values, then for each value head
/// the recurrence `S = exp(g) S + k (beta (v - exp(g) kᵀ S))`, `out = qᵀ S`, normed and gated by `z`.
#[derive(Debug, Clone, PartialEq)]
pub struct DeltaNet {
    /// Query and key heads.
    pub n_k_heads: usize,
    /// Value heads, a multiple of `n_k_heads`.
    pub n_v_heads: usize,
    /// Width of a query and key head.
    pub k_dim: usize,
    /// Width of a value head.
    pub v_dim: usize,
    /// Positions that the convolution sees, its own included.
    pub conv_width: usize,
    /// Which key head a value head uses.
    pub heads: HeadOrder,
    /// `[2 * n_k_heads * k_dim + n_v_heads * v_dim, hidden]`: queries, keys, values.
    pub qkv: Linear,
    /// `[n_v_heads * v_dim, hidden]`: gate of the output.
    pub z: Linear,
    /// Strength of the update and decay.
    pub gates: DeltaGates,
    /// `[channels, conv_width]` of `qkv`'s outputs.
    pub conv: TensorRef,
    /// `[n_v_heads]`, added to the decay's projection.
    pub dt_bias: TensorRef,
    /// `[n_v_heads]`: `-exp(A_log)`.
    pub a: TensorRef,
    /// Of each value head's output.
    pub norm: Norm,
    /// `[hidden, n_v_heads * v_dim]`.
    pub out: Linear,
}

impl DeltaNet {
    /// Outputs of `qkv`.
    pub fn channels(&self) -> usize {
        2 * self.n_k_heads * self.k_dim + self.n_v_heads * self.v_dim
    }
}

/// Which key head value head `h` uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadOrder {
    /// `h / (n_v_heads / n_k_heads)`.
    Grouped,
    /// `h % n_k_heads`.
    Tiled,
}

/// Projections to a delta net's update strength (`beta`) and decay (`alpha`), one of each a value head.
#[derive(Debug, Clone, PartialEq)]
pub enum DeltaGates {
    /// Two matrices of `[n_v_heads, hidden]`.
    Split {
        /// Update strength, before the sigmoid.
        beta: Linear,
        /// Decay, before bias and softplus.
        alpha: Linear,
    },
    /// One matrix whose rows are `[n_k_heads, beta then alpha, n_v_heads / n_k_heads]`.
    PerKeyHead(Linear),
}

/// Rotary position embedding (Su et al. 2021) of `dims` elements of a head: pair `i` turns by
/// `position * frequency[i]`, where `frequency[i] = theta^(-2i / dims) / freq_factors[i]`, rescaled as `scaling` says.
#[derive(Debug, Clone, PartialEq)]
pub struct Rope {
    /// Base of the frequencies.
    pub theta: f32,
    /// Elements of a head that are turned; even. In attention the leading ones.
    pub dims: usize,
    /// Which elements make a pair.
    pub pairing: Pairing,
    /// How frequencies are stretched beyond the trained context.
    pub scaling: RopeScaling,
    /// Factor on the turned elements (YaRN's attention factor); 1 where there is none.
    pub magnitude: f32,
    /// `[dims / 2]` divisors of the frequencies, as Llama 3.1 and Gemma 4 ship them.
    pub freq_factors: Option<TensorRef>,
}

/// How rotary frequencies are stretched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RopeScaling {
    /// All divided by this factor (Chen et al. 2023); 1 where there is no scaling.
    Linear(f32),
    /// YaRN (Peng et al. 2023): low frequencies divided by `factor`, high ones kept, a ramp between.
    Yarn {
        /// Stretch.
        factor: f32,
        /// Positions that the model was trained for before.
        original_context: usize,
        /// Turns over the original context above which a pair is kept.
        beta_fast: f32,
        /// Turns below which a pair is fully stretched.
        beta_slow: f32,
        /// Whether the ramp's ends are rounded to whole pairs.
        round: bool,
    },
}

/// Which two elements of a head a rotary angle turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairing {
    /// `(2i, 2i + 1)`.
    Interleaved,
    /// `(i, i + dims / 2)`.
    Halves,
}
