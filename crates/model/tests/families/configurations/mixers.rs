//! What latent attention and delta nets have to be.

use serde_json::Value as Json;
use turbospark_model::{Activation, DeltaGates, HeadOrder, LatentQuery, Mixer, Pairing, Role};

use super::case::Case;
use super::{attention, experts};

pub(crate) fn deepseek(case: &Case) {
    let c = &case.config;
    for i in case.layers() {
        let Mixer::Latent(a) = &case.spec.layers[i].mixer else { panic!("{} layer {i}", case.file) };
        let sizes = [a.n_heads, a.rank, a.nope_dim, a.rope_dim, a.v_dim];
        let keys =
            ["num_attention_heads", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"];
        assert_eq!(sizes, keys.map(|key| c.n(key)), "{}", case.file);
        assert_eq!((a.rope.pairing, a.rope.dims), (Pairing::Interleaved, a.rope_dim));
        let mut scale = 1.0 / f64::sqrt((a.nope_dim + a.rope_dim) as f64);
        let of = |key| c.rope(key).and_then(Json::as_f64);
        if c.rope("rope_type").is_some_and(|t| t == "yarn") {
            attention::yarn(case, &a.rope, true);
            let mscale = |m: f64| 0.1 * m * of("factor").unwrap().ln() + 1.0;
            let all = mscale(of("mscale_all_dim").unwrap());
            scale *= all * all;
            assert_eq!(f64::from(a.rope.magnitude), mscale(of("mscale").unwrap()) / all, "{}", case.file);
        }
        assert!((f64::from(a.scale) / scale - 1.0).abs() < 1e-5, "{}: {} {scale}", case.file, a.scale);
        let q_rows = a.n_heads * (a.nope_dim + a.rope_dim);
        match (&a.q, c.get("q_lora_rank")) {
            (LatentQuery::Direct(q), None) => assert_eq!(q.rows, q_rows),
            (LatentQuery::LowRank { down, norm, up }, Some(rank)) => {
                assert_eq!(Some(down.rows as u64), rank.as_u64());
                assert_eq!((norm.width, up.columns, up.rows), (down.rows, down.rows, q_rows));
            }
            (other, rank) => panic!("{}: {other:?} {rank:?}", case.file),
        }
        assert_eq!((a.kv.rows, a.kv_norm.width), (a.rank + a.rope_dim, a.rank));
        let stacks = [a.k_up, a.v_up].map(|s| (s.n, s.rows, s.columns));
        assert_eq!(stacks, [(a.n_heads, a.rank, a.nope_dim), (a.n_heads, a.v_dim, a.rank)]);
        assert_eq!(a.o.columns, a.n_heads * a.v_dim);
        experts::leading_dense(case, i);
    }
}

pub(crate) fn hybrid(case: &Case) {
    let c = &case.config;
    let kinds = c.get("layer_types").unwrap().as_array().unwrap();
    let next = case.spec.architecture == "qwen3next";
    let share = c.rope("partial_rotary_factor").unwrap().as_f64().unwrap();
    for (i, kind) in kinds.iter().enumerate() {
        let at = format!("{} layer {i}", case.file);
        match &case.spec.layers[i].mixer {
            Mixer::Attention(a) => {
                assert_eq!(kind, "full_attention", "{at}");
                assert!(a.output_gate && a.window.is_none(), "{at}");
                assert_eq!(a.q.rows, 2 * a.n_heads * a.head_dim, "{at}");
                let heads = (c.n("num_attention_heads"), c.n("num_key_value_heads"), c.n("head_dim"));
                assert_eq!((a.n_heads, a.n_kv_heads, a.head_dim), heads, "{at}");
                attention::rotary(case, i, Pairing::Halves, (a.head_dim as f64 * share) as usize);
                attention::head_norms(case, i);
            }
            Mixer::Delta(d) => {
                assert_eq!(kind, "linear_attention", "{at}");
                let sizes = [d.n_k_heads, d.n_v_heads, d.k_dim, d.v_dim, d.conv_width];
                let keys = [
                    "linear_num_key_heads",
                    "linear_num_value_heads",
                    "linear_key_head_dim",
                    "linear_value_head_dim",
                    "linear_conv_kernel_dim",
                ];
                assert_eq!(sizes, keys.map(|key| c.n(key)), "{at}");
                assert_eq!((d.qkv.rows, d.norm.width), (d.channels(), d.v_dim), "{at}");
                assert_eq!(d.heads, if next { HeadOrder::Grouped } else { HeadOrder::Tiled }, "{at}");
                match &d.gates {
                    DeltaGates::PerKeyHead(both) => {
                        assert!(next && both.rows == 2 * d.n_v_heads, "{at}");
                    }
                    DeltaGates::Split { beta, alpha } => {
                        let names = [beta, alpha].map(|l| case.name(l.weight).to_owned());
                        assert_eq!(names, ["beta", "alpha"].map(|x| format!("blk.{i}.ssm_{x}.weight")));
                    }
                }
            }
            Mixer::Latent(_) => panic!("{at}"),
        }
        match c.get("num_experts") {
            None => case.dense(i, "intermediate_size", Activation::Silu),
            Some(_) => experts::softmax(case, i),
        }
    }
    let predicting = case.file.contains("mtp");
    assert_eq!(case.spec.roles.contains(&Role::Unused), predicting, "{}", case.file);
}
