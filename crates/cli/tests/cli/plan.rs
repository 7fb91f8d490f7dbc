//! `plan`: what people read and what machines read, and the refusals.

use serde_json::Value;

use crate::support::{arg, fixture, small, turbospark};

fn model() -> std::path::PathBuf {
    fixture("gpt_oss-b-f32.gguf")
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&turbospark(args).done().out).unwrap()
}

#[test]
fn a_plan_adds_up_to_its_budget() {
    let model = model();
    let report = json(&["plan", arg(&model), "--memory", "1GiB", "--context", "256", "--json"]);
    let parts = report["parts"].as_array().unwrap();
    let sum: u64 = parts.iter().map(|p| p["bytes"].as_u64().unwrap()).sum();
    assert_eq!(report["total"], sum);
    assert_eq!(sum + report["unused"].as_u64().unwrap(), 1 << 30);
    assert_eq!(report["all_in_memory"], true);
    assert!(report["floor"].as_u64() <= report["comfortable"].as_u64());
    assert!(report["comfortable"].as_u64() <= report["whole"].as_u64());
    let text = turbospark(&["plan", arg(&model), "--memory", "1G", "--context", "256"]).done().out;
    for part in
        ["1,024.0 MiB for a context of 256 (f16)", "KV cache", "stay in memory", "smallest that opens"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_model_smaller_than_its_read_buffers_is_never_streamed() {
    let model = model();
    let common = ["plan", arg(&model), "--context", "64", "--threads", "1", "--disk", "800"];
    let report = json(&[&common[..], &["--memory", "1G", "--json"]].concat());
    assert_eq!(report["floor"], report["whole"]);
    let whole = report["whole"].as_u64().unwrap();
    turbospark(&[&common[..], &["--memory", &whole.to_string()]].concat()).done();
    turbospark(&[&common[..], &["--memory", &(whole - 1).to_string()]].concat())
        .refused(1, &["not enough for this model", "smallest that opens"]);
}

#[test]
fn below_the_floor_the_arithmetic_is_shown() {
    let model = model();
    turbospark(&["plan", arg(&model), "--memory", "1M", "--context", "64"])
        .refused(1, &["1MiB of memory is not enough", "resident weights", "KV cache", "= ", "--memory"]);
    turbospark(&["plan", arg(&small()), "--memory", "1M"]).refused(
        1,
        &["not enough for this model", "resident weights", "= ", "smallest that opens", "--memory"],
    );
}

#[test]
fn sizes_that_are_none_are_wrong_usage() {
    let ran = turbospark(&["plan", arg(&small()), "--memory", "lots"]);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("expected a size as 4GiB"), "{}", ran.err);
}

#[test]
fn without_a_budget_the_machines_is_taken() {
    let report = json(&["plan", arg(&small()), "--json"]);
    if cfg!(target_os = "linux") {
        assert_eq!(report["budget"], report["available"]["bytes"]);
    }
    assert_eq!(report["experts"], 0);
}
