//! Feed-forwards in words.

use turbospark_model::{Activation, DenseFeedForward, FeedForward, Moe, Router, Scoring, SharedExpert};

use crate::output::count;

/// One line for a dense network; for experts one of the router, and one of the shared expert.
pub(super) fn lines(feed_forward: &FeedForward) -> Vec<String> {
    match feed_forward {
        FeedForward::Dense(dense) => vec![format!("feed-forward of {}", network(dense))],
        FeedForward::Moe(moe) => experts(moe),
    }
}

pub(super) fn activation(activation: Activation) -> String {
    match activation {
        Activation::Silu => "SiLU".to_owned(),
        Activation::GeluTanh => "GELU (tanh)".to_owned(),
        Activation::ClampedSwiglu { limit, alpha } => {
            format!("clamped SwiGLU (limit {limit}, alpha {alpha})")
        }
    }
}

fn network(dense: &DenseFeedForward) -> String {
    let fused = if dense.gate.weight == dense.up.weight { ", gate and up in one tensor" } else { "" };
    format!("{}, {}{fused}", count(dense.width), activation(dense.activation))
}

fn experts(moe: &Moe) -> Vec<String> {
    let mut first = format!(
        "{} experts of {}, {} a row, {}",
        count(moe.n_experts),
        count(moe.width),
        moe.top_k,
        activation(moe.activation)
    );
    if moe.gate.bias.is_some() {
        first += ", biases";
    }
    if moe.gate.weight == moe.up.weight {
        first += ", gate and up in one tensor";
    }
    if moe.post_norm.is_some() {
        first += ", norm of their sum";
    }
    let mut lines = vec![first, format!("router: {}", router(&moe.router))];
    lines.extend(moe.shared.as_ref().map(|s| format!("shared expert of {}", shared(s))));
    lines
}

fn router(r: &Router) -> String {
    let mut parts = Vec::new();
    if r.norm.is_some() {
        parts.push("reads the stream through its own norm".to_owned());
    }
    if r.projection.bias.is_some() {
        parts.push("bias".to_owned());
    }
    if r.logit_scale != 1.0 {
        parts.push(format!("logits times {}", r.logit_scale));
    }
    parts.push(
        match r.scoring {
            Scoring::Softmax => "softmax over all",
            Scoring::SoftmaxOfSelected => "softmax over the chosen",
            Scoring::Sigmoid => "sigmoid of each",
        }
        .to_owned(),
    );
    if r.correction.is_some() {
        parts.push("correction for the choice".to_owned());
    }
    if let Some(g) = r.groups {
        let best = if g.best == 1 { "their best".to_owned() } else { format!("their best {}", g.best) };
        parts.push(format!("from {} of {} groups by {best}", g.used, g.count));
    }
    if r.normalise {
        parts.push("weights normalised".to_owned());
    }
    if r.weight_scale != 1.0 {
        parts.push(format!("weights times {}", r.weight_scale));
    }
    if r.expert_scale.is_some() {
        parts.push("weights times a factor of the expert".to_owned());
    }
    parts.join(", ")
}

fn shared(s: &SharedExpert) -> String {
    let mut text = network(&s.network);
    for (there, what) in [
        (s.gate.is_some(), ", gated by a sigmoid"),
        (s.norm.is_some(), ", reads the stream through its own norm"),
        (s.post_norm.is_some(), ", norm of its output"),
    ] {
        if there {
            text += what;
        }
    }
    text
}
