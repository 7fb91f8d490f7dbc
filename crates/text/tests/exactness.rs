//! The ids are those of the reference implementation, for real tokenizers, on texts chosen for what goes wrong.
//!
//! Each tokenizer is read twice, from its `tokenizer.json` and from the GGUF metadata that a converter writes for it. The
//! expected ids come from `tools/fixtures/text_tokenizers.py`.

#[path = "support/convert.rs"]
mod convert;
mod support;

use std::io::Write;
use std::path::{Path, PathBuf};

use convert::to_metadata;
use serde_json::Value as Json;
use support::{json, testdata};
use turbospark_format::Gguf;
use turbospark_text::{Specials, Tokenizer};

/// A file under `models/` of the workspace, or a loud note that its test was skipped.
fn model(name: &str, fetch: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(name);
    if !path.exists() {
        // Not eprintln: the test runner hides what passing tests print by it.
        let _ = writeln!(std::io::stderr(), "SKIPPED: {} is not there; run {fetch}", path.display());
        return None;
    }
    Some(path)
}

fn ids(v: &Json) -> Option<Vec<u32>> {
    v.as_array().map(|a| a.iter().map(|id| id.as_u64().unwrap() as u32).collect())
}

/// Compares every case and reports all that differ; `known` are the comparisons that are left out.
fn check(tokenizer: &Tokenizer, expected: &str, source: &str, known: &[&str]) {
    let corpus = json(&testdata("corpus.json"));
    let expected = json(&testdata("expected").join(format!("{expected}.json")));
    let corpus = corpus.as_array().unwrap();
    let cases = expected["cases"].as_array().unwrap();
    assert_eq!(cases.len(), corpus.len(), "the corpus changed; run tools/fixtures/text_tokenizers.py again");
    let mut failures = Vec::new();
    for (case, text) in cases.iter().zip(corpus) {
        let (name, text) = (text["name"].as_str().unwrap(), text["text"].as_str().unwrap());
        let want = ids(&case["ids"]).unwrap();
        let plain = ids(&case["plain"]).unwrap_or_else(|| want.clone());
        for (parse, want) in [(true, want), (false, plain.clone())] {
            let comparison = if parse { name.to_owned() } else { format!("{name}, plain") };
            let got = tokenizer.encode(text, Specials { add_bos_eos: false, parse }).unwrap();
            if known.contains(&comparison.as_str()) {
                assert_ne!(got, want, "{source}: {comparison} is no longer different");
            } else if got != want {
                let at = got.iter().zip(&want).take_while(|(a, b)| a == b).count();
                let show = |ids: &[u32]| -> Vec<String> {
                    let near = ids.iter().skip(at.saturating_sub(1)).take(6);
                    near.map(|&id| format!("{id} {:?}", tokenizer.token_text(id).unwrap_or_default()))
                        .collect()
                };
                failures.push(format!(
                    "{comparison}, from id {at}:\n  got  {:?}\n  want {:?}",
                    show(&got),
                    show(&want)
                ));
            }
        }
        let decoded = case["decoded"].as_str().unwrap_or(text);
        let got = tokenizer.decode(&plain);
        if expected["reference"].as_str().unwrap().starts_with("tokenizers")
            && got != decoded
            && !known.contains(&format!("{name}, decoded").as_str())
        {
            failures.push(format!("{name}, decoded:\n  got  {got:?}\n  want {decoded:?}"));
        }
    }
    assert!(failures.is_empty(), "{source}: {} differences\n{}", failures.len(), failures.join("\n"));
}

fn real(name: &str, kind: &str, pre: Option<&str>) {
    real_except(name, kind, pre, &[]);
}

/// `known` are comparisons that the GGUF form can't meet.
fn real_except(name: &str, kind: &str, pre: Option<&str>, known: &[&str]) {
    let file = format!("tokenizers/{name}/tokenizer.json");
    let Some(path) = model(&file, "tools/fetch-tokenizers") else { return };
    check(&Tokenizer::from_file(&path).unwrap(), name, "tokenizer.json", &[]);
    let metadata = to_metadata(&json(&path), kind, pre);
    check(&Tokenizer::from_metadata(&metadata).unwrap(), name, "GGUF metadata", known);
}

#[test]
fn llama_2_matches() {
    real("llama2", "llama", None);
}

#[test]
fn llama_3_2_matches() {
    real("llama3_2", "gpt2", Some("llama-bpe"));
}

#[test]
fn qwen_2_5_matches() {
    real("qwen2_5", "gpt2", Some("qwen2"));
}

#[test]
fn qwen_3_matches() {
    real("qwen3", "gpt2", Some("qwen2"));
}

#[test]
fn gpt_oss_matches() {
    real("gptoss", "gpt2", Some("gpt-4o"));
}

#[test]
fn mistral_nemo_matches() {
    real("mistral_nemo", "gpt2", Some("tekken"));
}

#[test]
fn deepseek_v3_matches() {
    real("deepseek_v3", "gpt2", Some("deepseek-v3"));
}

#[test]
fn gpt_2_matches() {
    real("gpt2", "gpt2", Some("gpt-2"));
}

#[test]
fn internlm_2_matches() {
    // GGUF has no key for a decoder that strips a space which encoding didn't add.
    let known = ["space, decoded", "leading space, decoded", "punctuation runs, decoded"];
    real_except("internlm2", "llama", None, &known);
}

#[test]
fn gemma_3_matches_with_scores_and_with_merges() {
    // In GGUF runs of spaces are user-defined tokens with spaces for ▁, so that a literal ▁▁ is not one of them.
    let known = ["metaspace", "metaspace, plain"];
    real_except("gemma3", "llama", None, &known);
    real_except("gemma3", "gemma4", None, &known);
}

#[test]
fn smollm2_file_matches_llama_cpp() {
    let Some(path) = model("smollm2-135m-instruct-q4_1.gguf", "tools/fetch-models") else { return };
    let file = Gguf::open(path).unwrap();
    check(&Tokenizer::from_metadata(file.metadata()).unwrap(), "smollm2", "smollm2 GGUF", &[]);
}

#[test]
fn gemma_3_file_matches_llama_cpp() {
    // llama.cpp takes every token named </s> for a control token; in this file it is an HTML tag, user-defined.
    let known = ["special tokens, plain"];
    let Some(path) = model("gemma-3-270m-q4_k_m.gguf", "tools/fetch-models") else { return };
    let file = Gguf::open(path).unwrap();
    check(&Tokenizer::from_metadata(file.metadata()).unwrap(), "gemma3_gguf", "gemma3 GGUF", &known);
}

#[test]
fn small_byte_level_vocabulary_matches() {
    let path = testdata("small/small_bytes.json");
    check(&Tokenizer::from_file(&path).unwrap(), "small_bytes", "tokenizer.json", &[]);
    let metadata = to_metadata(&json(&path), "gpt2", Some("qwen2"));
    check(&Tokenizer::from_metadata(&metadata).unwrap(), "small_bytes", "GGUF metadata", &[]);
}

#[test]
fn small_vocabulary_of_pieces_matches() {
    let path = testdata("small/small_pieces.json");
    check(&Tokenizer::from_file(&path).unwrap(), "small_pieces", "tokenizer.json", &[]);
    let metadata = to_metadata(&json(&path), "llama", None);
    check(&Tokenizer::from_metadata(&metadata).unwrap(), "small_pieces", "GGUF metadata", &[]);
}

#[test]
fn pre_tokenizers_match_llama_cpp_on_a_small_vocabulary() {
    // Qwen's own tokenizer normalises to form C, llama.cpp doesn't.
    let not_normalised =
        ["combining", "composed against decomposed"].map(|n| [n.to_owned(), format!("{n}, plain")]);
    let not_normalised: Vec<&str> = not_normalised.iter().flatten().map(String::as_str).collect();
    // In llama.cpp the optional white space before punctuation is ASCII only.
    let ascii_space = ["other white space", "other white space, plain"];
    let small = json(&testdata("small/small_bytes.json"));
    for (pre, known) in [
        ("default", &[][..]),
        ("refact", &[]),
        ("falcon", &[]),
        ("qwen35", &not_normalised),
        ("minimax-m2", &[]),
        ("deepseek-llm", &ascii_space),
        ("deepseek-coder", &[]),
        ("kimi-k2", &[]),
        ("glm4", &[]),
        ("bailingmoe", &[]),
        ("seed-coder", &[]),
    ] {
        let tokenizer = Tokenizer::from_metadata(&to_metadata(&small, "gpt2", Some(pre))).unwrap();
        // llama.cpp takes a user-defined <|fim_prefix|> for a control token, by its name.
        check(&tokenizer, &format!("pre-{pre}"), pre, &[known, &["added tokens, plain"]].concat());
    }
}
