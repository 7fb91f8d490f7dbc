//! `eval`: against the oracle's reference, and against definitions computed here.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use turbospark_format::{Gguf, SafeTensors};
use turbospark_text::{Specials, Tokenizer};

use crate::support::{arg, fixture, small, turbospark};

/// Logits `[rows][n_vocab]` that the command writes for `ids`.
fn logits(model: &Path, ids: &[u32], more: &[&str]) -> Vec<Vec<f32>> {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.safetensors");
    save(model, ids, &out, more);
    let file = SafeTensors::open(&out).unwrap();
    let shape = file.tensor("logits").unwrap().shape.to_vec();
    assert_eq!(shape[0], ids.len());
    file.f32("logits").unwrap().chunks_exact(shape[1]).map(<[f32]>::to_vec).collect()
}

fn save(model: &Path, ids: &[u32], out: &Path, more: &[&str]) {
    let tokens = out.with_extension("json");
    fs::write(&tokens, serde_json::to_string(ids).unwrap()).unwrap();
    let base = ["eval", "logits", arg(model), "--tokens", arg(&tokens), "--out", arg(out), "--kv", "f32"];
    let ran = turbospark(&[&base[..], more].concat()).done();
    assert_eq!((ran.out, ran.err), (String::new(), String::new()));
}

fn prompt(name: &str, p: usize) -> Vec<u32> {
    let meta: Value = serde_json::from_slice(&fs::read(fixture(name)).unwrap()).unwrap();
    let ids = meta["prompts"][p]["ids"].as_array().unwrap();
    ids.iter().map(|v| v.as_u64().unwrap() as u32).collect()
}

#[test]
fn logits_are_the_references_whatever_the_chunk() {
    let ids = prompt("llama-a.json", 1);
    let whole = logits(&small(), &ids, &[]);
    let meta: Value = serde_json::from_slice(&fs::read(fixture("llama-a.json")).unwrap()).unwrap();
    let reference = SafeTensors::open(fixture("llama-a.safetensors")).unwrap().f32("p1_logits").unwrap();
    let n_vocab = whole[0].len();
    for (i, row) in meta["prompts"][1]["logits_positions"].as_array().unwrap().iter().enumerate() {
        let ours = &whole[row.as_u64().unwrap() as usize];
        for (a, b) in ours.iter().zip(&reference[i * n_vocab..]) {
            assert!((a - b).abs() <= 1e-3, "row {row}: {a} {b}");
        }
    }
    for chunk in ["1", "7"] {
        assert_eq!(logits(&small(), &ids, &["--chunk", chunk]), whole, "chunks of {chunk}");
    }
}

#[test]
fn tokens_that_make_no_rows_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (tokens, out) = (dir.path().join("ids.json"), dir.path().join("out.safetensors"));
    let cases = [
        ("[]", 2, "no token ids"),
        ("[99999]", 1, "99999"),
        ("{}", 1, "JSON array"),
        ("[-1]", 1, "JSON array"),
    ];
    for (text, status, part) in cases {
        fs::write(&tokens, text).unwrap();
        let ran =
            turbospark(&["eval", "logits", arg(&small()), "--tokens", arg(&tokens), "--out", arg(&out)]);
        ran.refused(status, &[part]);
        assert!(!out.exists());
    }
}

/// A file of some hundred tokens of the small vocabulary.
fn text(dir: &Path) -> PathBuf {
    let path = dir.join("text.txt");
    let words = "In winter the old harbour froze, and boats stood on the ice like thoughts unsaid. ";
    fs::write(&path, words.repeat(2)).unwrap();
    path
}

fn log_probability(logits: &[f32], token: u32) -> f64 {
    let sum: f64 = logits.iter().map(|&x| f64::from(x).exp()).sum();
    f64::from(logits[token as usize]) - sum.ln()
}

#[test]
fn perplexity_scores_the_second_half_of_each_window_after_bos() {
    let dir = tempfile::tempdir().unwrap();
    let file = text(dir.path());
    let model = small();
    let gguf = Gguf::open(&model).unwrap();
    let tokenizer = Tokenizer::from_metadata(gguf.metadata()).unwrap();
    let specials = Specials { add_bos_eos: true, parse: false };
    let ids = tokenizer.encode(&fs::read_to_string(&file).unwrap(), specials).unwrap();
    assert!(tokenizer.adds_bos() && ids.len() > 64);
    let (window, mut nll, mut count) = (32, 0.0, 0);
    for part in ids.chunks_exact(window) {
        let mut fed = part.to_vec();
        fed[0] = tokenizer.bos().unwrap();
        let rows = logits(&small(), &fed, &[]);
        for i in window / 2..window - 1 {
            nll -= log_probability(&rows[i], part[i + 1]);
            count += 1;
        }
    }
    let args =
        ["eval", "perplexity", arg(&model), "--file", arg(&file), "--context", "32", "--kv", "f32", "--json"];
    let report: Value = serde_json::from_str(&turbospark(&args).done().out).unwrap();
    let (ours, expected) = (report["perplexity"].as_f64().unwrap(), (nll / f64::from(count)).exp());
    assert!((ours / expected - 1.0).abs() < 1e-5, "{ours} {expected}");
    assert_eq!(report["tokens_scored"], count);
    assert_eq!(report["windows"], ids.len() / window);
    let shown = turbospark(&args[..args.len() - 1]).done().out;
    assert!(shown.starts_with(&format!("perplexity {ours:.4} ± ")), "{shown}");
}

#[test]
fn a_text_under_two_windows_is_refused_with_the_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let file = text(dir.path());
    turbospark(&["eval", "perplexity", arg(&small()), "--file", arg(&file)])
        .refused(1, &["too few", "512", "1024"]);
}

#[test]
fn divergence_is_zero_of_itself_and_not_of_a_coarser_file() {
    let dir = tempfile::tempdir().unwrap();
    let (tokens, saved) = (dir.path().join("saved.json"), dir.path().join("saved.safetensors"));
    let ids = prompt("llama_q-a.json", 2);
    let [fine, coarse] = ["llama_q-a-q8_0.gguf", "llama_q-a-q2_k.gguf"].map(fixture);
    save(&fine, &ids, &saved, &[]);
    let measure = |model: &Path, against: &Path| -> [f64; 4] {
        let base = ["eval", "divergence", arg(model), "--against", arg(against), "--tokens", arg(&tokens)];
        let ran = turbospark(&[&base[..], &["--kv", "f32", "--json"]].concat()).done();
        let report: Value = serde_json::from_str(&ran.out).unwrap();
        ["mean_kl", "max_kl", "top1_agreement", "rows"].map(|k| report[k].as_f64().unwrap())
    };
    let rows = ids.len() as f64;
    assert_eq!(measure(&fine, &fine), [0.0, 0.0, 1.0, rows]);
    assert_eq!(measure(&fine, &saved), [0.0, 0.0, 1.0, rows]);
    let [mean, max, agreement, _] = measure(&coarse, &saved);
    assert_eq!(measure(&coarse, &fine), [mean, max, agreement, rows]);
    // The definition, with p from the reference.
    let (p, q) = (logits(&fine, &ids, &[]), logits(&coarse, &ids, &[]));
    let expected: f64 = p
        .iter()
        .zip(&q)
        .map(|(p, q)| {
            (0..p.len() as u32)
                .map(|t| {
                    let log_p = log_probability(p, t);
                    log_p.exp() * (log_p - log_probability(q, t))
                })
                .sum::<f64>()
        })
        .sum::<f64>()
        / rows;
    assert!(mean > 0.0 && max >= mean && agreement < 1.0, "{mean} {max} {agreement}");
    assert!((mean / expected - 1.0).abs() < 1e-3, "{mean} {expected}");
}

#[test]
fn references_of_other_tokens_or_vocabularies_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let saved = dir.path().join("saved.safetensors");
    let tokens = dir.path().join("other.json");
    save(&small(), &[1, 2, 3], &saved, &[]);
    fs::write(&tokens, "[1, 2]").unwrap();
    let measure = |model: &Path, against: &Path| {
        turbospark(&["eval", "divergence", arg(model), "--against", arg(against), "--tokens", arg(&tokens)])
    };
    measure(&small(), &saved).refused(1, &["[3, 384]", "[2, 384]"]);
    let other = fixture("llama_16-a-f16.gguf");
    let n = |path: &Path| Gguf::open(path).unwrap().tensor("token_embd.weight").unwrap().shape[1];
    if n(&other) == n(&small()) {
        measure(&small(), &other).done();
    } else {
        measure(&small(), &other).refused(1, &["vocabulary", "can't be compared"]);
    }
}
