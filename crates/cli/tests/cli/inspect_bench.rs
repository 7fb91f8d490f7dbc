//! `inspect` and `bench`: what people read and what machines read.

use serde_json::Value;

use crate::support::{arg, fixture, small, turbospark};

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&turbospark(args).done().out).unwrap()
}

#[test]
fn inspect_tells_the_model_and_its_sizes() {
    let model = fixture("gemma3-a-f32.gguf");
    let text = turbospark(&["inspect", arg(&model), "--tensors"]).done().out;
    for part in [
        "gemma3",
        "window",
        "Sizes by block type",
        "Sizes by role",
        "KV cache",
        "token_embd.weight",
        "× string",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let report = json(&["inspect", arg(&model), "--json"]);
    let tensors = report["tensors"].as_array().unwrap();
    let sum: u64 = tensors.iter().map(|t| t["bytes"].as_u64().unwrap()).sum();
    assert_eq!(report["tensor_bytes"], sum);
    for sizes in [&report["bytes_by_type"], &report["model"]["bytes_by_role"]] {
        assert_eq!(sizes.as_object().unwrap().values().map(|v| v.as_u64().unwrap()).sum::<u64>(), sum);
    }
    // Each layer without a window keeps a key and a value of each KV head.
    let layers = report["model"]["layers"].as_array().unwrap();
    let per_token: u64 = layers
        .iter()
        .filter(|l| l["window"].is_null())
        .map(|l| 2 * 2 * l["n_kv_heads"].as_u64().unwrap() * l["head_dim"].as_u64().unwrap())
        .sum();
    assert_eq!(report["model"]["kv_bytes_per_token"]["f16"], per_token);
    assert!(report["model"]["kv_bytes_fixed"]["f16"].as_u64().unwrap() > 0);
    assert_eq!(report["metadata"]["general.architecture"], "gemma3");
}

#[test]
fn inspect_tells_what_each_family_has_of_its_own() {
    let cases: [(&str, &[&str]); 5] = [
        (
            "gpt_oss-b-f32.gguf",
            &["layers 0, 2", "window 5", "a sink for each head", "YaRN times 32", "not rounded"],
        ),
        (
            "gpt_oss-b-f32.gguf",
            &["6 experts of 10, 2 a row", "clamped SwiGLU", "softmax over the chosen", "biases on"],
        ),
        (
            "deepseek_v3-b-f32.gguf",
            &["latent attention", "sigmoid of each, correction", "groups", "shared expert"],
        ),
        ("ministral3-b-f32.gguf", &["queries times 1 + "]),
        ("granitemoe-b-f32.gguf", &["embedding      times", "logits times", "each branch times"]),
    ];
    for (file, parts) in cases {
        let text = turbospark(&["inspect", arg(&fixture(file))]).done().out;
        for part in parts {
            assert!(text.contains(part), "{file} {part}: {text}");
        }
    }
    let report = json(&["inspect", arg(&fixture("deepseek_v3-b-f32.gguf")), "--json"]);
    let layers = report["model"]["layers"].as_array().unwrap();
    assert!(
        layers.iter().all(|l| l["mixer"] == "latent attention" && l["rope"]["scaling"]["type"] == "yarn")
    );
    assert_eq!(layers.last().unwrap()["router"]["scoring"], "sigmoid");
}

#[test]
fn metadata_numbers_are_shown_as_written() {
    let text = turbospark(&["inspect", arg(&small())]).done().out;
    let eps = text.lines().find(|l| l.contains("layer_norm_rms_epsilon")).unwrap();
    assert!(eps.len() < 60, "{eps}");
}

#[test]
fn bench_reports_each_phase_and_length() {
    let model = small();
    let args = ["bench", arg(&model), "-p", "16,32", "-n", "4", "-r", "3", "--threads", "1"];
    let report = json(&[&args[..], &["--json"]].concat());
    assert_eq!((report["threads"].as_u64(), report["kv"].as_str()), (Some(1), Some("f16")));
    let results = report["results"].as_array().unwrap();
    let seen: Vec<_> =
        results.iter().map(|r| (r["phase"].as_str().unwrap(), r["tokens"].as_u64().unwrap())).collect();
    assert_eq!(seen, [("prefill", 16), ("prefill", 32), ("decode", 4)]);
    for r in results {
        let [median, min, max] = ["tokens_per_second", "min", "max"].map(|k| r[k].as_f64().unwrap());
        assert!(0.0 < min && min <= median && median <= max, "{r}");
        assert_eq!(r["runs"], 3);
        assert_eq!(r.as_object().unwrap().len(), 6);
    }
    let table = turbospark(&args).done().out;
    assert_eq!(table.lines().count(), 5, "{table}");
    assert_eq!(
        json(&["bench", arg(&model), "-p", "0", "-n", "2", "-r", "1", "--json"])["results"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}
