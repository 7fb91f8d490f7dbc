//! Models larger than their budget, through the binary: the bits of their logits, and dense models.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::budget::{BUDGET, Group, model, peak};
use crate::support::{Ran, arg, real, turbospark};

/// The logits of some tokens, as the file that holds them.
fn logits(path: &Path, more: &[&str]) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let (tokens, out) = (dir.path().join("tokens.json"), dir.path().join("logits.safetensors"));
    let ids: Vec<u32> = (0..48).map(|i| i * 37 % 250).collect();
    fs::write(&tokens, serde_json::to_vec(&ids).unwrap()).unwrap();
    let base = ["eval", "logits", arg(path), "--tokens", arg(&tokens), "--out", arg(&out)];
    turbospark(&[&base[..], more].concat()).done();
    fs::read(&out).unwrap()
}

fn plan(path: &Path) -> serde_json::Value {
    let ran = turbospark(&["plan", arg(path), "--memory", "100GiB", "--context", "64", "--json"]).done();
    serde_json::from_str(&ran.out).unwrap()
}

#[test]
fn logits_have_the_same_bits_whatever_the_budget_and_however_experts_are_read() {
    let whole = logits(model(), &["--memory", "100GiB"]);
    let floor = plan(model())["floor"].as_u64().unwrap().to_string();
    let (budget, most) = (BUDGET.to_string(), (2 * BUDGET).to_string());
    for memory in [&floor, &budget, &most] {
        for io in ["direct", "buffered"] {
            for chunk in ["48", "1"] {
                let args = ["--memory", memory, "--io", io, "--chunk", chunk];
                assert!(logits(model(), &args) == whole, "{args:?}");
            }
        }
    }
    assert!(logits(model(), &["--memory", &budget, "--chunk", "1", "--no-look-ahead"]) == whole);
}

#[test]
fn a_dense_model_streams_within_its_budget_and_says_the_same() {
    let Some(path) = real("smollm2-135m-instruct-q4_1.gguf") else { return };
    let run = ["run", arg(&path), "Rivers run to the", "--raw", "--greedy", "-c", "512", "-n", "12"];
    let whole = turbospark(&[&run[..], &["--memory", "100GiB", "-q"]].concat()).done().out;
    let limits = plan(&path);
    let (floor, all) = (limits["floor"].as_u64().unwrap(), limits["whole"].as_u64().unwrap());
    assert!(floor < all, "{limits}");
    // More than the floor for a longer context, less than the layers take.
    let budget = floor + (all - floor) / 2;
    let Some(group) = Group::new(budget) else { return };
    let memory = budget.to_string();
    let args = [&run[..], &["--memory", &memory]].concat();
    let child = group.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap()).done();
    assert_eq!(ran.out, whole);
    assert!(ran.err.contains("layers") && ran.err.contains("read a token"), "not streamed: {}", ran.err);
    assert!(peak(&ran.err) <= budget as f64, "{budget}: {}", ran.err);
}
