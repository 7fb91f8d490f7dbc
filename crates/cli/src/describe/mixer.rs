//! Mixers in words.

use turbospark_model::{
    Attention, DeltaGates, DeltaNet, HeadOrder, KeyValues, LatentAttention, LatentQuery, Linear, Mixer, Norm,
    Pairing, Rope, RopeScaling,
};

use crate::output::count;

pub(super) fn words(mixer: &Mixer) -> String {
    match mixer {
        Mixer::Attention(a) => attention(a),
        Mixer::Latent(a) => latent(a),
        Mixer::Delta(d) => delta(d),
    }
}

fn attention(a: &Attention) -> String {
    let kv_heads = if a.n_kv_heads == 1 { "KV head" } else { "KV heads" };
    let mut text =
        format!("attention, {} heads over {} {kv_heads} of {}", a.n_heads, a.n_kv_heads, a.head_dim);
    if a.v_dim != a.head_dim {
        text += &format!(" (values of {})", a.v_dim);
    }
    if let Some(window) = a.window {
        text += &format!(", window {}", count(window));
    }
    if a.sinks.is_some() {
        text += ", a sink for each head";
    }
    text += &match &a.rope {
        Some(rope) => rotary(rope, a.head_dim),
        None => ", no positions".to_owned(),
    };
    if let Some(t) = a.temperature {
        text += &format!(", queries times 1 + {} ln(1 + floor(position / {}))", t.scale, count(t.period));
    }
    text += &biases(a);
    text += &key_values(a);
    if a.output_gate {
        text += ", output gate";
    }
    let usual = 1.0 / (a.head_dim as f32).sqrt();
    if a.scale != usual {
        text += &format!(", scores times {}", a.scale);
    }
    text
}

fn biases(a: &Attention) -> String {
    let named = |name, linear: Option<&Linear>| linear.and_then(|l| l.bias).map(|_| name);
    let (k, v) = match &a.kv {
        KeyValues::Own { k, v, .. } => (Some(k), v.as_ref()),
        KeyValues::OfLayer(_) => (None, None),
    };
    let all = [named("q", Some(&a.q)), named("k", k), named("v", v), named("output", Some(&a.o))];
    let names: Vec<&str> = all.into_iter().flatten().collect();
    if names.is_empty() { String::new() } else { format!(", biases on {}", names.join(" ")) }
}

fn key_values(a: &Attention) -> String {
    let over = |norm: &Norm, head| if norm.width == head { "each head" } else { "all heads" };
    let mut text = String::new();
    let (k_norm, v_norm) = match &a.kv {
        KeyValues::Own { k_norm, v_norm, .. } => (k_norm.as_ref(), v_norm.as_ref()),
        KeyValues::OfLayer(_) => (None, None),
    };
    match (&a.q_norm, k_norm) {
        (Some(q), Some(_)) => text += &format!(", query and key norms over {}", over(q, a.head_dim)),
        (Some(q), None) => text += &format!(", query norm over {}", over(q, a.head_dim)),
        (None, Some(k)) => text += &format!(", key norm over {}", over(k, a.head_dim)),
        (None, None) => {}
    }
    match &a.kv {
        KeyValues::OfLayer(layer) => text += &format!(", keys and values of layer {layer}"),
        KeyValues::Own { v: None, .. } => text += ", values from the keys' projection",
        KeyValues::Own { .. } => {}
    }
    if let Some(norm) = v_norm {
        text += if norm.weight.is_some() { ", value norm" } else { ", value norm without weights" };
    }
    text
}

/// A rotary embedding of heads of `width`.
fn rotary(rope: &Rope, width: usize) -> String {
    let pairing = match rope.pairing {
        Pairing::Interleaved => "neighbours",
        Pairing::Halves => "halves",
    };
    let mut text = format!(", rotary base {} ({pairing})", rope.theta);
    if rope.dims != width {
        text += &format!(" on {} of {width}", rope.dims);
    }
    match rope.scaling {
        RopeScaling::Linear(factor) if factor != 1.0 => {
            text += &format!(", positions divided by {factor}");
        }
        RopeScaling::Linear(_) => {}
        RopeScaling::Yarn { factor, original_context, beta_fast, beta_slow, round } => {
            let rounded = if round { "" } else { ", not rounded" };
            let trained = count(original_context);
            text +=
                &format!(", YaRN times {factor} from {trained} (ramp {beta_fast} to {beta_slow}{rounded})");
        }
    }
    if rope.magnitude != 1.0 {
        text += &format!(", turned elements times {}", rope.magnitude);
    }
    if rope.freq_factors.is_some() {
        text += ", frequency factors";
    }
    text
}

fn latent(a: &LatentAttention) -> String {
    let head = a.nope_dim + a.rope_dim;
    let mut text = format!(
        "latent attention, {} heads of {head} ({} with positions) over one row of {} + {}, values of {}",
        a.n_heads,
        a.rope_dim,
        count(a.rank),
        a.rope_dim,
        a.v_dim,
    );
    if let LatentQuery::LowRank { down, .. } = &a.q {
        text += &format!(", queries through rank {}", count(down.rows));
    }
    text += &rotary(&a.rope, a.rope_dim);
    if a.scale != 1.0 / (head as f32).sqrt() {
        text += &format!(", scores times {}", a.scale);
    }
    text
}

fn delta(d: &DeltaNet) -> String {
    let order = match d.heads {
        HeadOrder::Grouped => "grouped",
        HeadOrder::Tiled => "tiled",
    };
    let gates = match d.gates {
        DeltaGates::Split { .. } => "two gate projections",
        DeltaGates::PerKeyHead(_) => "one gate projection",
    };
    format!(
        "gated delta net, {} value heads of {} over {} key heads of {} ({order}), convolution of {}, {gates}",
        d.n_v_heads, d.v_dim, d.n_k_heads, d.k_dim, d.conv_width,
    )
}
