//! What mixtures of experts have to be.

use turbospark_model::{Activation, ExpertGroups, FeedForward, Moe, Router, Scoring, SharedExpert};

use super::case::Case;

fn moe<'a>(case: &'a Case, layer: usize, count: &str, width: &str) -> &'a Moe {
    let FeedForward::Moe(moe) = &case.spec.layers[layer].feed_forward else {
        panic!("{} layer {layer} has no experts", case.file)
    };
    let c = &case.config;
    let at = format!("{} layer {layer}", case.file);
    assert_eq!((moe.n_experts, moe.top_k), (c.n(count), c.n("num_experts_per_tok")), "{at}");
    assert_eq!(moe.width, c.n(width), "{at}");
    let (hidden, width) = (case.spec.hidden, moe.width);
    for (stack, rows, columns, part) in
        [(moe.gate, width, hidden, "gate"), (moe.up, width, hidden, "up"), (moe.down, hidden, width, "down")]
    {
        assert_eq!((stack.n, stack.rows, stack.columns), (moe.n_experts, rows, columns), "{at}");
        assert_eq!((stack.first_row, stack.stored_rows), (0, rows), "{at}");
        assert_eq!(case.name(stack.weight), format!("blk.{layer}.ffn_{part}_exps.weight"));
    }
    let projection = moe.router.projection;
    assert_eq!((projection.rows, projection.columns), (moe.n_experts, hidden), "{at}");
    assert!(moe.router.norm.is_none() && moe.router.expert_scale.is_none() && moe.post_norm.is_none());
    moe
}

/// Softmax over all, normalised where the configuration says so; a gated shared expert where it has one.
pub(crate) fn softmax(case: &Case, layer: usize) {
    let c = &case.config;
    let width = match c.get("moe_intermediate_size") {
        Some(_) => "moe_intermediate_size",
        None => "intermediate_size",
    };
    let moe = moe(case, layer, "num_experts", width);
    assert_eq!((moe.router.scoring, moe.activation), (Scoring::Softmax, Activation::Silu));
    // Where the configuration has no such key, the code always normalises.
    assert_eq!(moe.router.normalise, c.get("norm_topk_prob").is_none_or(|x| x == true), "{}", case.file);
    assert!(moe.router.correction.is_none() && moe.router.groups.is_none());
    match c.get("shared_expert_intermediate_size") {
        None => assert!(moe.shared.is_none()),
        Some(_) => {
            let shared = shared(moe, c.n("shared_expert_intermediate_size"));
            let gate = shared.gate.unwrap();
            assert_eq!((gate.rows, gate.columns), (1, case.spec.hidden));
        }
    }
}

pub(crate) fn softmax_of_selected(case: &Case, layer: usize) {
    let moe = moe(case, layer, "num_local_experts", "intermediate_size");
    assert_eq!((moe.router.scoring, moe.activation), (Scoring::SoftmaxOfSelected, Activation::Silu));
    assert!(moe.shared.is_none() && moe.router.correction.is_none() && moe.router.projection.bias.is_none());
}

pub(crate) fn gpt_oss(case: &Case, layer: usize) {
    let moe = moe(case, layer, "num_local_experts", "intermediate_size");
    assert_eq!(moe.router.scoring, Scoring::SoftmaxOfSelected);
    assert_eq!(moe.activation, Activation::ClampedSwiglu { limit: 7.0, alpha: 1.702 });
    let block = |name: &str| format!("blk.{layer}.{name}.bias");
    let biases = [moe.gate.bias, moe.up.bias, moe.down.bias, moe.router.projection.bias];
    let expected = ["ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", "ffn_gate_inp"].map(block);
    assert_eq!(biases.map(|b| case.name(b.unwrap()).to_owned()), expected);
    assert!(moe.shared.is_none());
}

/// Sigmoids, and a correction that takes part in the choice.
pub(crate) fn sigmoid<'a>(case: &'a Case, layer: usize, count: &str, width: &str) -> &'a Router {
    let moe = moe(case, layer, count, width);
    assert_eq!((moe.router.scoring, moe.activation), (Scoring::Sigmoid, Activation::Silu));
    let correction = case.name(moe.router.correction.unwrap());
    assert_eq!(correction, format!("blk.{layer}.exp_probs_b.bias"));
    &moe.router
}

/// DeepSeek's and GLM's: dense layers first, then experts with a shared one.
pub(crate) fn leading_dense(case: &Case, layer: usize) {
    let c = &case.config;
    if layer < c.n("first_k_dense_replace") {
        return case.dense(layer, "intermediate_size", Activation::Silu);
    }
    let softmax = c.get("scoring_func").is_some_and(|x| x == "softmax");
    let router = match softmax {
        true => &moe(case, layer, "n_routed_experts", "moe_intermediate_size").router,
        false => sigmoid(case, layer, "n_routed_experts", "moe_intermediate_size"),
    };
    let at = format!("{} layer {layer}", case.file);
    if softmax {
        assert_eq!((router.scoring, router.correction), (Scoring::Softmax, None), "{at}");
    }
    assert_eq!(router.normalise, c.get("norm_topk_prob").is_some_and(|x| x == true), "{at}");
    assert_eq!(router.weight_scale, c.f("routed_scaling_factor"), "{at}");
    let (count, used) = (c.n("n_group"), c.n("topk_group"));
    let best = if softmax { 1 } else { 2 };
    assert_eq!(router.groups, (count > 1).then_some(ExpertGroups { count, used, best }), "{at}");
    let moe = moe(case, layer, "n_routed_experts", "moe_intermediate_size");
    let shared = shared(moe, c.n("n_shared_experts") * c.n("moe_intermediate_size"));
    assert!(shared.gate.is_none(), "{at}");
}

fn shared(moe: &Moe, width: usize) -> &SharedExpert {
    let shared = moe.shared.as_ref().unwrap();
    assert_eq!((shared.network.width, shared.network.activation), (width, Activation::Silu));
    assert!(shared.norm.is_none() && shared.post_norm.is_none());
    shared
}
