//! Mixtures of experts over the `ffn_*_exps`, `ffn_*_shexp` and `ffn_gate_inp` tensors of a block.

use super::{Dims, linear, network};
use crate::ModelError;
use crate::keys::Keys;
use crate::spec::{Activation, ExpertGroups, FeedForward, Linear, Moe, Router, Scoring, SharedExpert, Stack};
use crate::tensors::{Role, Tensors};

/// How many experts there are and how many a row uses.
#[derive(Clone, Copy)]
pub(in crate::families) struct Experts {
    pub(in crate::families) count: usize,
    pub(in crate::families) used: usize,
}

impl Experts {
    /// Of a family that may be dense: both keys, or neither.
    pub(in crate::families) fn read(keys: &Keys<'_>) -> Result<Option<Experts>, ModelError> {
        match (keys.some_count("expert_count")?, keys.some_count("expert_used_count")?) {
            (None, None) => Ok(None),
            _ => Experts::require(keys).map(Some),
        }
    }

    /// Of a family that always has experts.
    pub(in crate::families) fn require(keys: &Keys<'_>) -> Result<Experts, ModelError> {
        let count = keys.require_count("expert_count")?;
        let used = keys.require_count("expert_used_count")?;
        match used > count {
            true => Err(keys.bad("expert_used_count", used, format!("at most expert_count ({count})"))),
            false => Ok(Experts { count, used }),
        }
    }

    /// `expert_feed_forward_length`; where it is absent, what one of the used experts gets of `feed_forward_length`.
    pub(in crate::families) fn width(self, keys: &Keys<'_>) -> Result<usize, ModelError> {
        if let Some(width) = keys.some_count("expert_feed_forward_length")? {
            return Ok(width);
        }
        match keys.some_count("feed_forward_length")? {
            Some(n) if n >= self.used => Ok(n / self.used),
            _ => Err(ModelError::MissingKey { key: keys.full("expert_feed_forward_length") }),
        }
    }
}

/// What a mixture has beside its dimensions.
pub(in crate::families) struct MoeForm {
    pub(in crate::families) experts: Experts,
    /// Inner width of an expert.
    pub(in crate::families) width: usize,
    pub(in crate::families) activation: Activation,
    pub(in crate::families) scoring: Scoring,
    pub(in crate::families) normalise: bool,
    pub(in crate::families) weight_scale: f32,
    pub(in crate::families) groups: Option<ExpertGroups>,
    /// `ffn_gate_inp.bias`, and a bias on each matrix of each expert.
    pub(in crate::families) biases: bool,
    /// `exp_probs_b.bias`.
    pub(in crate::families) correction: bool,
}

impl MoeForm {
    /// SiLU, no biases, no groups, weights as scored.
    pub(in crate::families) fn usual(
        experts: Experts,
        width: usize,
        scoring: Scoring,
        normalise: bool,
    ) -> Self {
        MoeForm {
            experts,
            width,
            activation: Activation::Silu,
            scoring,
            normalise,
            weight_scale: 1.0,
            groups: None,
            biases: false,
            correction: false,
        }
    }
}

/// The routed experts of block `layer`.
pub(in crate::families) fn moe(
    tensors: &mut Tensors<'_>,
    dims: &Dims,
    layer: usize,
    form: &MoeForm,
) -> Result<Moe, ModelError> {
    let Experts { count, used } = form.experts;
    let block = format!("blk.{layer}");
    let mut projection =
        linear(tensors, &format!("{block}.ffn_gate_inp"), (count, dims.hidden), Role::Router)?;
    if form.biases {
        projection.bias =
            Some(tensors.require(&format!("{block}.ffn_gate_inp.bias"), &[count], Role::Router)?);
    }
    let correction = match form.correction {
        true => Some(tensors.require(&format!("{block}.exp_probs_b.bias"), &[count], Role::Router)?),
        false => None,
    };
    let [gate, up] = gate_and_up(tensors, dims, &block, form)?;
    let down =
        stack(tensors, &format!("{block}.ffn_down_exps"), count, (dims.hidden, form.width), form.biases)?;
    Ok(Moe {
        n_experts: count,
        top_k: used,
        width: form.width,
        router: Router {
            projection,
            norm: None,
            logit_scale: 1.0,
            scoring: form.scoring,
            correction,
            groups: form.groups,
            normalise: form.normalise,
            weight_scale: form.weight_scale,
            expert_scale: None,
        },
        gate,
        up,
        down,
        activation: form.activation,
        post_norm: None,
        shared: None,
    })
}

/// Routed experts of one form in every layer, and nothing beside them.
pub(in crate::families) fn moe_layers(
    form: MoeForm,
) -> impl Fn(&mut Tensors<'_>, &Dims, usize) -> Result<FeedForward, ModelError> {
    move |t: &mut Tensors<'_>, dims: &Dims, i| moe(t, dims, i, &form).map(FeedForward::Moe)
}

/// Gate and up: two tensors, or one in which each expert's gate rows precede its up rows.
fn gate_and_up(
    tensors: &mut Tensors<'_>,
    dims: &Dims,
    block: &str,
    form: &MoeForm,
) -> Result<[Stack; 2], ModelError> {
    let (n, width) = (form.experts.count, form.width);
    let fused = format!("{block}.ffn_gate_up_exps");
    if !form.biases && tensors.shape(&format!("{fused}.weight")).is_some() {
        let both = stack(tensors, &fused, n, (2 * width, dims.hidden), false)?;
        return Ok([0, width].map(|first_row| Stack { first_row, rows: width, ..both }));
    }
    let mut one = |name| stack(tensors, &format!("{block}.{name}"), n, (width, dims.hidden), form.biases);
    Ok([one("ffn_gate_exps")?, one("ffn_up_exps")?])
}

/// `{name}.weight` as one matrix an expert. Biases aren't streamed with the matrices: they are small.
fn stack(
    tensors: &mut Tensors<'_>,
    name: &str,
    n: usize,
    (rows, columns): (usize, usize),
    biased: bool,
) -> Result<Stack, ModelError> {
    let weight = tensors.require(&format!("{name}.weight"), &[columns, rows, n], Role::Expert)?;
    let bias = match biased {
        true => Some(tensors.require(&format!("{name}.bias"), &[rows, n], Role::FeedForward)?),
        false => None,
    };
    Ok(Stack { weight, bias, n, stored_rows: rows, first_row: 0, rows, columns })
}

/// The shared expert of block `layer` (`ffn_*_shexp`); `gated` by `ffn_gate_inp_shexp` or added as it is.
pub(in crate::families) fn shared(
    tensors: &mut Tensors<'_>,
    dims: &Dims,
    layer: usize,
    width: usize,
    gated: bool,
) -> Result<SharedExpert, ModelError> {
    let network = network(tensors, dims, layer, "_shexp", width, Activation::Silu)?;
    let gate = match gated {
        true => {
            let name = format!("blk.{layer}.ffn_gate_inp_shexp");
            Some(linear_of_one_row(tensors, &name, dims.hidden)?)
        }
        false => None,
    };
    Ok(SharedExpert { network, norm: None, gate, post_norm: None })
}

/// Routed experts, and one of `expert_shared_feed_forward_length` (`feed_forward_length` if absent) that a sigmoid gates.
pub(in crate::families) fn moe_with_gated_shared(
    keys: &Keys<'_>,
    form: MoeForm,
) -> Result<impl Fn(&mut Tensors<'_>, &Dims, usize) -> Result<FeedForward, ModelError>, ModelError> {
    let width = match keys.some_count("expert_shared_feed_forward_length")? {
        Some(width) => width,
        None => keys.require_count("feed_forward_length")?,
    };
    Ok(move |t: &mut Tensors<'_>, dims: &Dims, i| {
        let mut moe = moe(t, dims, i, &form)?;
        moe.shared = Some(shared(t, dims, i, width, true)?);
        Ok(FeedForward::Moe(moe))
    })
}

/// A matrix of one row, which files hold as a vector or as a matrix.
fn linear_of_one_row(tensors: &mut Tensors<'_>, name: &str, columns: usize) -> Result<Linear, ModelError> {
    let weight = tensors.require(&format!("{name}.weight"), &[columns], Role::FeedForward)?;
    Ok(Linear { weight, bias: None, first_row: 0, rows: 1, columns })
}

/// `expert_gating_func`: 1 softmax, 2 sigmoid; 0 or absent the architecture's default.
pub(in crate::families) fn scoring(keys: &Keys<'_>, default: Scoring) -> Result<Scoring, ModelError> {
    let key = "expert_gating_func";
    match keys.usize(key)? {
        None | Some(0) => Ok(default),
        Some(1) => Ok(Scoring::Softmax),
        Some(2) => Ok(Scoring::Sigmoid),
        Some(other) => Err(keys.bad(key, other, "1 (softmax) or 2 (sigmoid)")),
    }
}

/// `expert_group_count` and `expert_group_used_count`; none where there is one group. A group counts by its `best` experts.
pub(in crate::families) fn groups(
    keys: &Keys<'_>,
    experts: Experts,
    best: usize,
) -> Result<Option<ExpertGroups>, ModelError> {
    let Some(count) = keys.some_count("expert_group_count")?.filter(|&n| n > 1) else { return Ok(None) };
    let used = keys.require_count("expert_group_used_count")?;
    if !experts.count.is_multiple_of(count) || experts.count / count < best {
        let expected = format!("a divisor of expert_count ({}) with groups of {best} or more", experts.count);
        return Err(keys.bad("expert_group_count", count, expected));
    }
    if used > count || used * (experts.count / count) < experts.used {
        let expected = format!("up to {count} groups that hold {} experts or more", experts.used);
        return Err(keys.bad("expert_group_used_count", used, expected));
    }
    Ok(Some(ExpertGroups { count, used, best }))
}
