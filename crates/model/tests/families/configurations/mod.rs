//! Every fixture's spec says what the checkpoint's own configuration says.
//!
//! The configuration is that of the transformers package, in its names; what a family does beyond it is written here from
//! that package's code. A fixture without a row in `FAMILIES` fails.

mod attention;
mod case;
mod experts;
mod mixers;

use std::path::PathBuf;

use serde_json::Value as Json;

use crate::edits::fixture;
use case::{Case, Config};
use turbospark_model::{Activation, ModelSpec, Pairing};

/// How names of fixtures begin, the architecture of their files, and what holds for them.
type Row = (&'static str, &'static str, fn(&Case));

/// Of the rows that a name begins with, the longest counts.
const FAMILIES: &[Row] = &[
    ("deepseek_v2", "deepseek2", mixers::deepseek),
    ("deepseek_v3", "deepseek2", mixers::deepseek),
    ("gemma3", "gemma3", gemma3),
    ("gemma4", "gemma4", attention::gemma4),
    ("glm4_moe", "glm4moe", glm4_moe),
    ("gpt_oss", "gpt-oss", gpt_oss),
    ("granite", "granite", granite),
    ("granitemoe", "granitemoe", granite),
    ("llama", "llama", llama),
    ("minimax_m2", "minimax-m2", minimax_m2),
    ("ministral3", "mistral3", ministral3),
    ("mixtral", "llama", llama),
    ("olmoe", "olmoe", olmoe),
    ("phi3", "phi3", phi3),
    ("qwen2", "qwen2", qwen2),
    ("qwen2_moe", "qwen2moe", qwen2),
    ("qwen3", "qwen3", qwen3),
    ("qwen3_5", "qwen35", mixers::hybrid),
    ("qwen3_5_moe", "qwen35moe", mixers::hybrid),
    ("qwen3_moe", "qwen3moe", qwen3),
    ("qwen3_next", "qwen3next", mixers::hybrid),
    ("qwen3_vl", "qwen3vl", qwen3),
    ("qwen3_vl_moe", "qwen3vlmoe", qwen3),
    ("smollm3", "smollm3", smollm3),
];

#[test]
fn each_spec_says_what_its_configuration_says() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/oracle");
    let mut files = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let Some(stem) = file.strip_suffix(".gguf").filter(|f| !f.contains("mmproj")) else { continue };
        let [family, letter] = [0, 1].map(|i| stem.split('-').nth(i).unwrap());
        let row = FAMILIES.iter().filter(|row| family.starts_with(row.0)).max_by_key(|row| row.0.len());
        let &(_, architecture, check) = row.unwrap_or_else(|| panic!("no row for {file}"));
        let gguf = fixture(&file);
        let spec = ModelSpec::from_gguf(&gguf).unwrap_or_else(|e| panic!("{file}: {e}"));
        assert_eq!(spec.architecture, architecture, "{file}");
        let config = Config::read(&folder.join(format!("{family}-{letter}.json")));
        let case = Case { file, config, gguf, spec };
        case.dimensions();
        check(&case);
        files += 1;
    }
    assert!(files >= 20, "only {files} fixtures in {}", folder.display());
}

fn llama(case: &Case) {
    let factors = case.config.rope("rope_type").is_some_and(|t| t == "llama3");
    for i in case.layers() {
        let a = attention::plain(case, i, Pairing::Interleaved);
        let rope = a.rope.as_ref().unwrap();
        assert_eq!(rope.freq_factors.map(|f| case.name(f)), factors.then_some("rope_freqs.weight"));
        case.no_biases(i);
        match case.config.get("num_local_experts") {
            None => case.dense(i, "intermediate_size", Activation::Silu),
            Some(_) => experts::softmax_of_selected(case, i),
        }
    }
}

fn qwen2(case: &Case) {
    for i in case.layers() {
        let a = attention::plain(case, i, Pairing::Halves);
        assert_eq!((a.q_norm, a.o.bias), (None, None));
        let (k, v, _) = case.own(i);
        let biases = [a.q, k, v].map(|l| case.name(l.bias.unwrap()).to_owned());
        assert_eq!(biases, ["q", "k", "v"].map(|x| format!("blk.{i}.attn_{x}.bias")));
        match case.config.get("num_experts") {
            None => case.dense(i, "intermediate_size", Activation::Silu),
            Some(_) => experts::softmax(case, i),
        }
    }
}

fn qwen3(case: &Case) {
    for i in case.layers() {
        attention::plain(case, i, Pairing::Halves);
        attention::head_norms(case, i);
        case.no_biases(i);
        match case.config.get("num_experts") {
            None => case.dense(i, "intermediate_size", Activation::Silu),
            Some(_) => experts::softmax(case, i),
        }
    }
}

fn olmoe(case: &Case) {
    for i in case.layers() {
        let a = attention::plain(case, i, Pairing::Halves);
        attention::whole_norms(case, i);
        assert!(a.window.is_none());
        experts::softmax(case, i);
    }
}

fn minimax_m2(case: &Case) {
    for i in case.layers() {
        attention::partial(case, i, Pairing::Halves, case.config.n("rotary_dim"));
        attention::whole_norms(case, i);
        let router = experts::sigmoid(case, i, "num_local_experts", "intermediate_size");
        assert!(router.normalise && router.groups.is_none() && router.weight_scale == 1.0);
    }
}

fn gpt_oss(case: &Case) {
    for i in case.layers() {
        let a = attention::plain(case, i, Pairing::Halves);
        // The configuration's default: sliding first, then full, in turn.
        let sliding = i % 2 == 0;
        assert_eq!(a.window, sliding.then(|| case.config.n("sliding_window")), "layer {i}");
        assert_eq!(case.name(a.sinks.unwrap()), format!("blk.{i}.attn_sinks.weight"));
        let (k, v, _) = case.own(i);
        assert!([a.q, k, v, a.o].iter().all(|l| l.bias.is_some()) && a.q_norm.is_none());
        attention::yarn(case, a.rope.as_ref().unwrap(), false);
        let factor = case.config.rope("factor").unwrap().as_f64().unwrap() as f32;
        assert_eq!(a.rope.as_ref().unwrap().magnitude, 1.0 + 0.1 * factor.ln());
        experts::gpt_oss(case, i);
    }
}

fn ministral3(case: &Case) {
    for i in case.layers() {
        let a = attention::plain(case, i, Pairing::Interleaved);
        attention::yarn(case, a.rope.as_ref().unwrap(), true);
        assert_eq!(a.rope.as_ref().unwrap().magnitude, 1.0);
        let temperature = a.temperature.unwrap();
        let of = |key| case.config.rope(key).unwrap();
        assert_eq!(temperature.scale, of("llama_4_scaling_beta").as_f64().unwrap() as f32);
        assert_eq!(Some(temperature.period as u64), of("original_max_position_embeddings").as_u64());
        case.dense(i, "intermediate_size", Activation::Silu);
    }
}

fn phi3(case: &Case) {
    let share = case.config.rope("partial_rotary_factor").map_or(1.0, |x| x.as_f64().unwrap());
    for i in case.layers() {
        let dims = (case.head_dim() as f64 * share) as usize;
        let a = attention::partial(case, i, Pairing::Halves, dims);
        assert_eq!(a.window, case.config.get("sliding_window").map(|_| case.config.n("sliding_window")));
        let (k, v, _) = case.own(i);
        let at = [a.q, k, v].map(|l| (case.name(l.weight).to_owned(), l.first_row));
        let rows = [0, a.q.rows, a.q.rows + k.rows];
        assert_eq!(at, rows.map(|row| (format!("blk.{i}.attn_qkv.weight"), row)));
        let ff = case.dense_network(i, "intermediate_size", Activation::Silu);
        assert_eq!(case.name(ff.gate.weight), format!("blk.{i}.ffn_up.weight"));
        assert_eq!(ff.gate.weight, ff.up.weight);
        assert_eq!((ff.gate.first_row, ff.up.first_row), (0, ff.width));
    }
}

fn smollm3(case: &Case) {
    let interval = case.config.n("no_rope_layer_interval");
    for i in case.layers() {
        if (i + 1) % interval == 0 {
            assert!(case.attention(i).rope.is_none(), "layer {i}");
        } else {
            attention::plain(case, i, Pairing::Interleaved);
        }
        case.dense(i, "intermediate_size", Activation::Silu);
    }
}

fn granite(case: &Case) {
    let c = &case.config;
    assert_eq!(case.spec.embedding.scale, c.f("embedding_multiplier"));
    assert_eq!(case.spec.head.logit_scale, 1.0 / c.f("logits_scaling"));
    for i in case.layers() {
        let a = case.attention(i);
        assert_eq!(a.scale, c.f("attention_multiplier"));
        attention::rotary(case, i, Pairing::Interleaved, a.head_dim);
        assert_eq!(case.spec.layers[i].residual_scale, c.f("residual_multiplier"));
        match c.get("num_local_experts") {
            None => case.dense(i, "intermediate_size", Activation::Silu),
            Some(_) => experts::softmax_of_selected(case, i),
        }
    }
}

fn glm4_moe(case: &Case) {
    let c = &case.config;
    let share = c.rope("partial_rotary_factor").unwrap().as_f64().unwrap();
    for i in case.layers() {
        attention::partial(case, i, Pairing::Halves, (case.head_dim() as f64 * share) as usize);
        let biased = c.get("attention_bias").is_some_and(|x| x == true);
        assert_eq!(case.attention(i).q.bias.is_some(), biased);
        match c.get("use_qk_norm").is_some_and(|x| x == true) {
            true => attention::head_norms(case, i),
            false => assert!(case.attention(i).q_norm.is_none()),
        }
        experts::leading_dense(case, i);
    }
}

fn gemma3(case: &Case) {
    let c = &case.config;
    assert_eq!(case.spec.embedding.scale, (case.spec.hidden as f32).sqrt());
    for i in case.layers() {
        let a = case.attention(i);
        let full = (i + 1) % 6 == 0;
        assert_eq!(a.window, (!full).then(|| c.n("sliding_window")), "layer {i}");
        assert_eq!(a.scale, 1.0 / c.f("query_pre_attn_scalar").sqrt());
        let kind = if full { "full_attention" } else { "sliding_attention" };
        let of = |key: &str| c.rope(kind).unwrap().get(key).and_then(Json::as_f64);
        let rope = a.rope.as_ref().unwrap();
        assert_eq!(Some(f64::from(rope.theta)), of("rope_theta"), "layer {i}");
        let factor = of("factor").unwrap_or(1.0) as f32;
        assert_eq!(rope.scaling, turbospark_model::RopeScaling::Linear(factor), "layer {i}");
        attention::head_norms(case, i);
        case.sandwich(i);
        case.dense(i, "intermediate_size", Activation::GeluTanh);
    }
}
