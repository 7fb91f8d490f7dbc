//! What attention has to be.

use serde_json::Value as Json;
use turbospark_model::{Activation, Attention, FeedForward, KeyValues, Pairing, Rope, RopeScaling, Scoring};

use super::case::Case;

/// Heads and scale of the configuration, rotary embedding of whole heads, nothing else of the unusual.
pub(crate) fn plain(case: &Case, layer: usize, pairing: Pairing) -> &Attention {
    partial(case, layer, pairing, case.head_dim())
}

/// As [`plain`], with a rotary embedding of `dims` elements.
pub(crate) fn partial(case: &Case, layer: usize, pairing: Pairing, dims: usize) -> &Attention {
    let (a, c) = (case.attention(layer), &case.config);
    let at = format!("{} layer {layer}", case.file);
    let heads = [a.n_heads, a.n_kv_heads, a.head_dim, a.v_dim];
    let expected = [c.n("num_attention_heads"), c.n("num_key_value_heads"), case.head_dim(), case.head_dim()];
    assert_eq!(heads, expected, "{at}");
    assert_eq!(a.scale, 1.0 / (case.head_dim() as f32).sqrt(), "{at}");
    let (k, v, _) = case.own(layer);
    let kv_rows = a.n_kv_heads * a.head_dim;
    assert_eq!((a.q.rows, k.rows, v.rows), (a.n_heads * a.head_dim, kv_rows, kv_rows), "{at}");
    assert_eq!((a.o.rows, a.o.columns), (case.spec.hidden, a.q.rows), "{at}");
    assert!(!a.output_gate, "{at}");
    rotary(case, layer, pairing, dims);
    a
}

pub(crate) fn rotary(case: &Case, layer: usize, pairing: Pairing, dims: usize) {
    let rope = case.attention(layer).rope.as_ref().unwrap();
    assert_eq!((rope.pairing, rope.dims), (pairing, dims), "{} layer {layer}", case.file);
    let theta = case.config.rope("rope_theta").or(case.config.get("rope_theta")).and_then(Json::as_f64);
    assert_eq!(Some(rope.theta), theta.map(|x| x as f32), "{}", case.file);
}

/// The parameters of YaRN as the configuration has them.
pub(crate) fn yarn(case: &Case, rope: &Rope, round: bool) {
    let of = |key| case.config.rope(key).and_then(Json::as_f64).unwrap();
    let expected = RopeScaling::Yarn {
        factor: of("factor") as f32,
        original_context: of("original_max_position_embeddings") as usize,
        beta_fast: of("beta_fast") as f32,
        beta_slow: of("beta_slow") as f32,
        round,
    };
    assert_eq!(rope.scaling, expected, "{}", case.file);
    assert_eq!(case.config.rope("truncate").is_none_or(|x| x == true), round, "{}", case.file);
}

/// Norms of each head of q and k.
pub(crate) fn head_norms(case: &Case, layer: usize) {
    let a = case.attention(layer);
    let norms = [a.q_norm, case.own(layer).2].map(|n| n.unwrap());
    assert!(norms.iter().all(|n| n.width == a.head_dim), "{} layer {layer}", case.file);
    let names = norms.map(|n| case.name(n.weight.unwrap()).to_owned());
    assert_eq!(names, ["q", "k"].map(|x| format!("blk.{layer}.attn_{x}_norm.weight")));
}

/// Norms of all heads of q, and of all of k.
pub(crate) fn whole_norms(case: &Case, layer: usize) {
    let a = case.attention(layer);
    let widths = [a.q_norm, case.own(layer).2].map(|n| n.unwrap().width);
    assert_eq!(widths, [a.n_heads * a.head_dim, a.n_kv_heads * a.head_dim], "{} layer {layer}", case.file);
}

pub(crate) fn gemma4(case: &Case) {
    let (c, spec) = (&case.config, &case.spec);
    let hidden = spec.hidden as f32;
    assert_eq!(spec.embedding.scale, hidden.sqrt());
    assert_eq!(spec.head.soft_cap, c.get("final_logit_softcapping").map(|x| x.as_f64().unwrap() as f32));
    let kinds: Vec<&str> =
        c.get("layer_types").unwrap().as_array().unwrap().iter().map(|x| x.as_str().unwrap()).collect();
    let n_own = spec.layers.len() - c.get("num_kv_shared_layers").map_or(0, |_| c.n("num_kv_shared_layers"));
    for (i, &kind) in kinds.iter().enumerate() {
        let a = case.attention(i);
        let at = format!("{} layer {i}", case.file);
        let full = kind == "full_attention";
        let head_dim = if full { c.n("global_head_dim") } else { c.n("head_dim") };
        let same_kv = full && c.get("attention_k_eq_v").is_some_and(|x| x == true);
        let key = if same_kv { "num_global_key_value_heads" } else { "num_key_value_heads" };
        assert_eq!((a.n_heads, a.n_kv_heads), (c.n("num_attention_heads"), c.n(key)), "{at}");
        assert_eq!((a.head_dim, a.v_dim, a.scale), (head_dim, head_dim, 1.0), "{at}");
        assert_eq!(a.window, (!full).then(|| c.n("sliding_window")), "{at}");
        let rope = a.rope.as_ref().unwrap();
        let theta = c.rope(kind).unwrap()["rope_theta"].as_f64().unwrap() as f32;
        assert_eq!((rope.theta, rope.dims, rope.pairing), (theta, head_dim, Pairing::Halves), "{at}");
        assert_eq!(rope.freq_factors.is_some(), full, "{at}");
        assert_eq!(a.q_norm.unwrap().width, head_dim, "{at}");
        match &a.kv {
            KeyValues::Own { v, k_norm, v_norm, .. } => {
                assert!(i < n_own, "{at}");
                assert_eq!(v.is_none(), same_kv, "{at}");
                assert_eq!(k_norm.unwrap().width, head_dim, "{at}");
                let v_norm = v_norm.unwrap();
                assert_eq!((v_norm.weight, v_norm.width), (None, head_dim), "{at}");
            }
            KeyValues::OfLayer(source) => {
                assert!(i >= n_own, "{at}");
                assert_eq!(Some(*source), kinds[..n_own].iter().rposition(|k| *k == kind), "{at}");
            }
        }
        case.sandwich(i);
        let scale = spec.layers[i].output_scale.unwrap();
        assert_eq!(case.name(scale), format!("blk.{i}.layer_output_scale.weight"));
        gemma4_feed_forward(case, i, i >= n_own);
    }
    let width = c.n("hidden_size_per_layer_input");
    match &spec.side {
        None => assert_eq!(width, 0),
        Some(side) => {
            assert_eq!((side.width, side.norm.width), (width, width));
            assert_eq!(side.embedding.scale, (width as f32).sqrt());
            assert_eq!(side.projection_scale, 1.0 / hidden.sqrt());
            assert_eq!(side.scale, 0.5f32.sqrt());
            assert!(spec.layers.iter().all(|l| l.side.as_ref().is_some_and(|s| s.gate.rows == width)));
        }
    }
}

fn gemma4_feed_forward(case: &Case, layer: usize, sharing: bool) {
    let c = &case.config;
    let l = &case.spec.layers[layer];
    let wide = sharing && c.get("use_double_wide_mlp").is_some_and(|x| x == true);
    let width = c.n("intermediate_size") * if wide { 2 } else { 1 };
    let named = |norm: Option<turbospark_model::Norm>| case.name(norm.unwrap().weight.unwrap()).to_owned();
    let dense = match &l.feed_forward {
        FeedForward::Dense(dense) => dense,
        FeedForward::Moe(moe) => {
            assert_eq!((moe.n_experts, moe.top_k), (c.n("num_experts"), c.n("top_k_experts")));
            assert_eq!((moe.width, moe.activation), (c.n("moe_intermediate_size"), Activation::GeluTanh));
            let (r, shared) = (&moe.router, moe.shared.as_ref().unwrap());
            assert_eq!((r.scoring, r.normalise), (Scoring::Softmax, true));
            assert_eq!(r.logit_scale, 1.0 / (case.spec.hidden as f32).sqrt());
            let block = |name: &str| format!("blk.{layer}.{name}");
            assert_eq!(named(r.norm), block("ffn_gate_inp.scale"));
            assert_eq!(case.name(r.expert_scale.unwrap()), block("ffn_down_exps.scale"));
            assert_eq!(named(Some(l.ff_norm)), block("pre_ffw_norm_2.weight"));
            assert_eq!(named(moe.post_norm), block("post_ffw_norm_2.weight"));
            assert_eq!(named(shared.norm), block("ffn_norm.weight"));
            assert_eq!(named(shared.post_norm), block("post_ffw_norm_1.weight"));
            assert!(shared.gate.is_none());
            let rows = [moe.gate, moe.up].map(|s| (s.stored_rows, s.first_row, s.rows));
            assert_eq!(rows, [0, moe.width].map(|first| (2 * moe.width, first, moe.width)));
            &shared.network
        }
    };
    assert_eq!((dense.width, dense.activation), (width, Activation::GeluTanh), "{} layer {layer}", case.file);
    let experts = c.get("enable_moe_block").is_some_and(|x| x == true);
    assert_eq!(matches!(l.feed_forward, FeedForward::Moe(_)), experts);
}
