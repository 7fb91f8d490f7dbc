//! `tokenizer.json` files as the GGUF metadata that a converter writes for them.

use serde_json::Value as Json;
use turbospark_format::{Array, Metadata, Value};

/// The metadata that a converter writes for a byte-pair `tokenizer.json`: `model` is `gpt2` or `gemma4` with merges, or
/// `llama`, whose scores are the order in which pieces are merged.
pub(crate) fn to_metadata(tokenizer: &Json, model: &str, pre: Option<&str>) -> Metadata {
    let vocab = tokenizer["model"]["vocab"].as_object().unwrap();
    let added = tokenizer["added_tokens"].as_array().unwrap();
    let id = |v: &Json| v.as_u64().unwrap() as usize;
    let size = 1 + vocab.values().map(id).chain(added.iter().map(|t| id(&t["id"]))).max().unwrap();
    let mut tokens: Vec<String> = (0..size).map(|i| format!("[PAD{i}]")).collect();
    let mut types = vec![5i32; size];
    for (piece, n) in vocab {
        let is_byte = model != "gpt2" && piece.len() == 6 && piece.starts_with("<0x");
        types[id(n)] = if is_byte { 6 } else { 1 };
        tokens[id(n)].clone_from(piece);
    }
    for token in added {
        let n = id(&token["id"]);
        let special = token["special"] == true;
        types[n] = if special { 3 } else { 4 };
        // Converters write the spaces of user-defined tokens as spaces.
        let text = token["content"].as_str().unwrap();
        tokens[n] = if special { text.to_owned() } else { text.replace('▁', " ") };
    }
    let pairs: Vec<(String, String)> =
        tokenizer["model"]["merges"].as_array().unwrap().iter().map(pair).collect();
    let mut m = Metadata::default();
    m.insert("tokenizer.ggml.model", Value::String(model.to_owned()));
    if let Some(pre) = pre {
        m.insert("tokenizer.ggml.pre", Value::String(pre.to_owned()));
    }
    if model == "llama" {
        let mut scores = vec![-1e6f32; size];
        for (rank, (left, right)) in pairs.iter().enumerate().rev() {
            scores[id(&vocab[&format!("{left}{right}")])] = -(rank as f32);
        }
        let prefix = tokenizer["normalizer"].to_string().contains("Prepend");
        m.insert("tokenizer.ggml.scores", Value::Array(Array::F32(scores)));
        m.insert("tokenizer.ggml.add_space_prefix", Value::Bool(prefix));
    } else {
        let merges = pairs.into_iter().map(|(l, r)| format!("{l} {r}")).collect();
        m.insert("tokenizer.ggml.merges", Value::Array(Array::String(merges)));
    }
    if let Some(unknown) = tokenizer["model"]["unk_token"].as_str() {
        m.insert("tokenizer.ggml.unknown_token_id", Value::U32(id(&vocab[unknown]) as u32));
    }
    m.insert("tokenizer.ggml.tokens", Value::Array(Array::String(tokens)));
    m.insert("tokenizer.ggml.token_type", Value::Array(Array::I32(types)));
    m
}

fn pair(merge: &Json) -> (String, String) {
    match merge {
        Json::String(s) => s.split_once(' ').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap(),
        other => (other[0].as_str().unwrap().to_owned(), other[1].as_str().unwrap().to_owned()),
    }
}
