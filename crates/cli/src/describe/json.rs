//! A [`ModelSpec`] as JSON: the facts that the words tell, in stable names.

use serde_json::{Map, Value as Json, json};
use turbospark_engine::KvKind;
use turbospark_format::Gguf;
use turbospark_model::{
    Activation, Attention, DeltaGates, DeltaNet, DenseFeedForward, FeedForward, HeadOrder, KeyValues,
    LatentAttention, LatentQuery, Layer, Mixer, ModelSpec, Moe, Norm, Pairing, Rope, RopeScaling, Scoring,
};

use super::CacheSize;

/// The spec's numbers for machines.
pub(crate) fn json(spec: &ModelSpec, gguf: &Gguf) -> Json {
    let by_role: Map<_, _> =
        spec.bytes_by_role(gguf).into_iter().map(|(r, sum)| (r.name().to_owned(), sum.into())).collect();
    let [f16, f32] = [KvKind::F16, KvKind::F32].map(|kind| CacheSize::of(spec, kind));
    let side = spec.side.as_ref().map(|s| {
        json!({
            "width": s.width,
            "embedding_scale": s.embedding.scale,
            "projection_scale": s.projection_scale,
            "scale": s.scale,
        })
    });
    json!({
        "architecture": spec.architecture,
        "name": spec.name,
        "n_vocab": spec.n_vocab,
        "hidden": spec.hidden,
        "context_length": spec.context_length,
        "embedding_scale": spec.embedding.scale,
        "side_embedding": side,
        "head": {
            "tied": spec.head.projection.weight.index == spec.embedding.weight.index,
            "logit_scale": spec.head.logit_scale,
            "soft_cap": spec.head.soft_cap,
        },
        "kv_bytes_per_token": { "f16": f16.a_token, "f32": f32.a_token },
        "kv_bytes_fixed": { "f16": f16.fixed, "f32": f32.fixed },
        "bytes_by_role": by_role,
        "layers": spec.layers.iter().map(layer).collect::<Vec<_>>(),
    })
}

/// Mixer and feed-forward side by side in one object.
fn layer(layer: &Layer) -> Json {
    let mut all = Map::new();
    let parts = [
        match &layer.mixer {
            Mixer::Attention(a) => attention(a),
            Mixer::Latent(a) => latent(a),
            Mixer::Delta(d) => delta(d),
        },
        match &layer.feed_forward {
            FeedForward::Dense(d) => dense(d, "dense"),
            FeedForward::Moe(m) => moe(m),
        },
        json!({
            "norm_eps": layer.mixer_norm.eps,
            "mixer_post_norm": layer.mixer_post_norm.is_some(),
            "ff_post_norm": layer.ff_post_norm.is_some(),
            "residual_scale": layer.residual_scale,
            "side_embedding": layer.side.is_some(),
            "output_scale": layer.output_scale.is_some(),
        }),
    ];
    for part in parts {
        if let Json::Object(fields) = part {
            all.extend(fields);
        }
    }
    Json::Object(all)
}

fn attention(a: &Attention) -> Json {
    let (k_bias, v_bias, k_norm, v_norm, values, of_layer) = match &a.kv {
        KeyValues::Own { k, v, k_norm, v_norm } => {
            let values = if v.is_some() { "own" } else { "keys" };
            let v_bias = v.is_some_and(|v| v.bias.is_some());
            (k.bias.is_some(), v_bias, k_norm.as_ref(), v_norm.as_ref(), values, None)
        }
        KeyValues::OfLayer(layer) => (false, false, None, None, "layer", Some(layer)),
    };
    let biases: Vec<&str> =
        [("q", a.q.bias.is_some()), ("k", k_bias), ("v", v_bias), ("output", a.o.bias.is_some())]
            .into_iter()
            .filter_map(|(name, there)| there.then_some(name))
            .collect();
    let norm = |n: Option<&Norm>| n.map(|n| json!({ "width": n.width, "weights": n.weight.is_some() }));
    json!({
        "mixer": "attention",
        "n_heads": a.n_heads,
        "n_kv_heads": a.n_kv_heads,
        "head_dim": a.head_dim,
        "v_dim": a.v_dim,
        "scale": a.scale,
        "window": a.window,
        "sinks": a.sinks.is_some(),
        "rope": a.rope.as_ref().map(rope),
        "rope_theta": a.rope.as_ref().map(|r| r.theta),
        "temperature": a.temperature.map(|t| json!({ "scale": t.scale, "period": t.period })),
        "biases": biases,
        "q_norm": norm(a.q_norm.as_ref()),
        "k_norm": norm(k_norm),
        "v_norm": norm(v_norm),
        "values": values,
        "kv_of_layer": of_layer,
        "output_gate": a.output_gate,
    })
}

fn rope(r: &Rope) -> Json {
    let scaling = match r.scaling {
        RopeScaling::Linear(factor) => json!({ "type": "linear", "factor": factor }),
        RopeScaling::Yarn { factor, original_context, beta_fast, beta_slow, round } => json!({
            "type": "yarn",
            "factor": factor,
            "original_context": original_context,
            "beta_fast": beta_fast,
            "beta_slow": beta_slow,
            "round": round,
        }),
    };
    json!({
        "theta": r.theta,
        "dims": r.dims,
        "pairing": match r.pairing {
            Pairing::Interleaved => "neighbours",
            Pairing::Halves => "halves",
        },
        "scaling": scaling,
        "magnitude": r.magnitude,
        "freq_factors": r.freq_factors.is_some(),
    })
}

fn latent(a: &LatentAttention) -> Json {
    let q_rank = match &a.q {
        LatentQuery::Direct(_) => None,
        LatentQuery::LowRank { down, .. } => Some(down.rows),
    };
    json!({
        "mixer": "latent attention",
        "n_heads": a.n_heads,
        "rank": a.rank,
        "nope_dim": a.nope_dim,
        "rope_dim": a.rope_dim,
        "v_dim": a.v_dim,
        "q_rank": q_rank,
        "scale": a.scale,
        "rope": rope(&a.rope),
    })
}

fn delta(d: &DeltaNet) -> Json {
    json!({
        "mixer": "delta net",
        "n_k_heads": d.n_k_heads,
        "n_v_heads": d.n_v_heads,
        "k_dim": d.k_dim,
        "v_dim": d.v_dim,
        "conv_width": d.conv_width,
        "heads": match d.heads {
            HeadOrder::Grouped => "grouped",
            HeadOrder::Tiled => "tiled",
        },
        "gates": match d.gates {
            DeltaGates::Split { .. } => "two projections",
            DeltaGates::PerKeyHead(_) => "one projection",
        },
    })
}

fn dense(d: &DenseFeedForward, kind: &str) -> Json {
    json!({ "feed_forward": kind, "width": d.width, "activation": activation(d.activation) })
}

fn activation(activation: Activation) -> Json {
    match activation {
        Activation::Silu => json!("silu"),
        Activation::GeluTanh => json!("gelu_tanh"),
        Activation::ClampedSwiglu { limit, alpha } => {
            json!({ "type": "clamped_swiglu", "limit": limit, "alpha": alpha })
        }
    }
}

fn moe(m: &Moe) -> Json {
    let r = &m.router;
    let shared = m.shared.as_ref().map(|s| {
        json!({
            "width": s.network.width,
            "activation": activation(s.network.activation),
            "gated": s.gate.is_some(),
            "own_norm": s.norm.is_some(),
            "post_norm": s.post_norm.is_some(),
        })
    });
    json!({
        "feed_forward": "experts",
        "n_experts": m.n_experts,
        "top_k": m.top_k,
        "width": m.width,
        "activation": activation(m.activation),
        "expert_biases": m.gate.bias.is_some(),
        "gate_and_up_fused": m.gate.weight == m.up.weight,
        "expert_post_norm": m.post_norm.is_some(),
        "router": {
            "scoring": match r.scoring {
                Scoring::Softmax => "softmax",
                Scoring::SoftmaxOfSelected => "softmax of the chosen",
                Scoring::Sigmoid => "sigmoid",
            },
            "own_norm": r.norm.is_some(),
            "bias": r.projection.bias.is_some(),
            "logit_scale": r.logit_scale,
            "correction": r.correction.is_some(),
            "groups": r.groups.map(|g| json!({ "count": g.count, "used": g.used, "best": g.best })),
            "normalise": r.normalise,
            "weight_scale": r.weight_scale,
            "expert_scale": r.expert_scale.is_some(),
        },
        "shared_expert": shared,
    })
}
