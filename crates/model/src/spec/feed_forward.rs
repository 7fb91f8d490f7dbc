//! What works on each row alone: dense networks and mixtures of experts.

use super::{Linear, Norm, Stack};
use crate::tensors::TensorRef;

/// What works on each row alone.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one a layer: a box would only add a step to every reader")]
pub enum FeedForward {
    /// One gated network for every row.
    Dense(DenseFeedForward),
    /// A few of many networks, chosen for each row.
    Moe(Moe),
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
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Activation {
    /// `x * sigmoid(x)`.
    Silu,
    /// The tanh form of GELU (Hendrycks and Gimpel 2016), computed exactly.
    GeluTanh,
    /// gpt-oss: `(clamp(up) + 1) * g * sigmoid(alpha * g)` with `g = min(gate, limit)` and `up` clamped on both sides.
    ClampedSwiglu {
        /// Bound of gate and up.
        limit: f32,
        /// Steepness of the sigmoid.
        alpha: f32,
    },
}

/// Mixture of experts (Shazeer et al. 2017): `sum over ranks of weight * expert(x)`, in rank order, plus the shared expert.
#[derive(Debug, Clone, PartialEq)]
pub struct Moe {
    /// Experts to choose from.
    pub n_experts: usize,
    /// Experts that a row uses.
    pub top_k: usize,
    /// Inner width of an expert.
    pub width: usize,
    /// What chooses.
    pub router: Router,
    /// `[width, hidden]` each.
    pub gate: Stack,
    /// `[width, hidden]` each.
    pub up: Stack,
    /// `[hidden, width]` each.
    pub down: Stack,
    /// Applied to the gate.
    pub activation: Activation,
    /// Norm of the routed experts' sum, before the shared expert's output is added.
    pub post_norm: Option<Norm>,
    /// An expert that every row uses.
    pub shared: Option<SharedExpert>,
}

impl Moe {
    /// The tensors that hold the experts' matrices: three, or two where gate and up are fused.
    pub fn tensors(&self) -> impl Iterator<Item = TensorRef> + use<> {
        let fused = self.gate.weight.index == self.up.weight.index;
        [self.gate.weight, self.up.weight, self.down.weight].into_iter().skip(usize::from(fused))
    }
}

/// From a row to its experts and their weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Router {
    /// `[n_experts, hidden]`; a bias is part of the logits, so of choice and weight.
    pub projection: Linear,
    /// The router reads the residual stream through this norm; `None`: it reads what the experts read.
    pub norm: Option<Norm>,
    /// Factor on the logits; 1 where the family has none.
    pub logit_scale: f32,
    /// From logits to scores.
    pub scoring: Scoring,
    /// `[n_experts]`, added to the scores for the choice only.
    pub correction: Option<TensorRef>,
    /// Experts are chosen from a few groups of them.
    pub groups: Option<ExpertGroups>,
    /// Whether the chosen scores are divided by their sum.
    pub normalise: bool,
    /// Factor on the weights; 1 where the family has none.
    pub weight_scale: f32,
    /// `[n_experts]` factors on the weights.
    pub expert_scale: Option<TensorRef>,
}

/// From router logits to scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scoring {
    /// Softmax over all experts.
    Softmax,
    /// Softmax over the chosen ones.
    SoftmaxOfSelected,
    /// Sigmoid of each.
    Sigmoid,
}

/// Group-limited choice (DeepSeek-V2 and V3, 2024): only experts of the best groups may be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpertGroups {
    /// Groups of neighbouring experts, all of one size.
    pub count: usize,
    /// Groups that may be chosen from.
    pub used: usize,
    /// A group's score is the sum of this many of its best experts' scores.
    pub best: usize,
}

/// An expert that every row uses.
#[derive(Debug, Clone, PartialEq)]
pub struct SharedExpert {
    /// Its network.
    pub network: DenseFeedForward,
    /// It reads the residual stream through this norm; `None`: it reads what the routed experts read.
    pub norm: Option<Norm>,
    /// `[1, hidden]`: its output is multiplied by the sigmoid of this.
    pub gate: Option<Linear>,
    /// Norm of its output.
    pub post_norm: Option<Norm>,
}
