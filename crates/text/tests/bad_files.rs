//! Tokenizers from strangers: each fault is an error that names the key, never a panic.

use turbospark_format::{Array, Metadata, Value};
use turbospark_text::{Specials, TextError, Tokenizer};

fn strings(list: &[&str]) -> Value {
    Value::Array(Array::String(list.iter().map(|s| (*s).to_owned()).collect()))
}

fn byte_level() -> Metadata {
    let mut m = Metadata::default();
    m.insert("tokenizer.ggml.model", Value::String("gpt2".into()));
    m.insert("tokenizer.ggml.pre", Value::String("llama-bpe".into()));
    m.insert("tokenizer.ggml.tokens", strings(&["a", "b", "ab", "<|end|>"]));
    m.insert("tokenizer.ggml.token_type", Value::Array(Array::I32(vec![1, 1, 1, 3])));
    m.insert("tokenizer.ggml.merges", strings(&["a b"]));
    m
}

fn scored() -> Metadata {
    let mut m = Metadata::default();
    m.insert("tokenizer.ggml.model", Value::String("llama".into()));
    m.insert("tokenizer.ggml.tokens", strings(&["<unk>", "a", "▁"]));
    m.insert("tokenizer.ggml.scores", Value::Array(Array::F32(vec![0.0, -1.0, f32::NAN])));
    m
}

fn error(m: &Metadata) -> TextError {
    Tokenizer::from_metadata(m).expect_err("the file must be refused")
}

/// The error of a sound file with one key changed.
fn with(mut m: Metadata, key: &str, value: Value) -> TextError {
    m.insert(key, value);
    error(&m)
}

fn without(m: &Metadata, key: &str) -> TextError {
    error(&m.iter().filter(|(k, _)| *k != key).map(|(k, v)| (k.to_owned(), v.clone())).collect())
}

#[test]
fn the_sound_files_load() {
    let tokenizer = Tokenizer::from_metadata(&byte_level()).unwrap();
    assert_eq!(tokenizer.encode("abba<|end|>", Specials::ALL).unwrap(), [2, 1, 0, 3]);
    assert_eq!(tokenizer.stop_tokens(), [3]);
    assert!(Tokenizer::from_metadata(&scored()).is_ok());
}

#[test]
fn absent_parts_are_named() {
    for (m, key) in [
        (byte_level(), "tokenizer.ggml.model"),
        (byte_level(), "tokenizer.ggml.tokens"),
        (byte_level(), "tokenizer.ggml.merges"),
        (scored(), "tokenizer.ggml.scores"),
    ] {
        let error = without(&m, key);
        assert!(matches!(error, TextError::MissingKey { key: k, .. } if k == key), "{error}");
    }
}

#[test]
fn unknown_kinds_are_named() {
    let error = with(byte_level(), "tokenizer.ggml.model", Value::String("rwkv".into()));
    assert!(matches!(&error, TextError::UnknownModel { model } if model == "rwkv"));
    let error = with(byte_level(), "tokenizer.ggml.pre", Value::String("dinkum".into()));
    assert!(matches!(&error, TextError::UnknownPre { pre } if pre == "dinkum"));
    assert!(error.to_string().contains("dinkum"));
}

#[test]
fn arrays_of_the_wrong_length_or_type_are_refused() {
    let short = Value::Array(Array::F32(vec![0.0]));
    let error = with(scored(), "tokenizer.ggml.scores", short);
    assert!(matches!(error, TextError::WrongLength { found: 1, expected: 3, .. }), "{error}");
    let long = Value::Array(Array::I32(vec![1; 9]));
    let error = with(byte_level(), "tokenizer.ggml.token_type", long);
    assert!(matches!(error, TextError::WrongLength { found: 9, expected: 4, .. }), "{error}");
    let error = with(byte_level(), "tokenizer.ggml.tokens", Value::U32(7));
    assert!(matches!(error, TextError::Format(_)), "{error}");
    let error = with(byte_level(), "tokenizer.ggml.tokens", strings(&[]));
    assert!(matches!(error, TextError::VocabSize { .. } | TextError::WrongLength { .. }), "{error}");
}

#[test]
fn an_empty_vocabulary_is_refused() {
    let mut m = byte_level();
    m.insert("tokenizer.ggml.token_type", Value::Array(Array::I32(vec![])));
    let error = with(m, "tokenizer.ggml.tokens", strings(&[]));
    assert!(matches!(error, TextError::VocabSize { tokens: 0, .. }), "{error}");
}

#[test]
fn merges_that_make_no_sense_are_refused_with_their_place() {
    for (merges, at) in [
        (&["a b", "a"][..], 1),
        (&["a b", ""][..], 1),
        (&["a b", "a "][..], 1),
        (&["a b", " b"][..], 1),
        (&["a x"][..], 0),
        (&["b a"][..], 0),
        (&["é"][..], 0),
    ] {
        let error = with(byte_level(), "tokenizer.ggml.merges", strings(merges));
        assert!(matches!(error, TextError::BadMerge { index, .. } if index == at), "{merges:?}: {error}");
    }
}

#[test]
fn special_tokens_outside_of_the_vocabulary_are_refused() {
    for key in ["bos_token_id", "eos_token_id", "eot_token_id", "unknown_token_id"] {
        let key = format!("tokenizer.ggml.{key}");
        let error = with(byte_level(), &key, Value::U32(4));
        assert!(matches!(error, TextError::BadTokenId { id: 4, size: 4, .. }), "{error}");
    }
}

#[test]
fn a_bos_that_is_asked_for_must_be_named() {
    let error = with(byte_level(), "tokenizer.ggml.add_bos_token", Value::Bool(true));
    assert!(matches!(error, TextError::MissingKey { key: "tokenizer.ggml.bos_token_id", .. }), "{error}");
}

#[test]
fn a_character_that_nothing_spells_is_an_error_without_an_unknown_token() {
    let m: Metadata = scored().iter().map(|(k, v)| (k.to_owned(), v.clone())).collect();
    let tokenizer = Tokenizer::from_metadata(&m).unwrap();
    let error = tokenizer.encode("aé", Specials::NONE).unwrap_err();
    assert!(matches!(error, TextError::NoPiece { text } if text == "é"));
}

#[test]
fn unreadable_and_malformed_tokenizer_json_files_are_errors_with_the_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    assert!(matches!(Tokenizer::from_file(&path), Err(TextError::Io { .. })));
    assert!(matches!(Tokenizer::from_file(folder.path()), Err(TextError::Io { .. })));
    for text in [
        "",
        "{",
        "[]",
        "{}",
        r#"{"model": {"type": "Unigram"}}"#,
        r#"{"model": {"vocab": {}, "merges": []}}"#,
        r#"{"model": {"vocab": {"a": -1}, "merges": []}}"#,
        r#"{"model": {"vocab": {"a": 99999999999}, "merges": []}}"#,
        r#"{"model": {"vocab": {"a": 0}, "merges": [["a"]]}}"#,
        r#"{"model": {"vocab": {"a": 0}, "merges": ["a b"]}}"#,
        r#"{"model": {"vocab": {"a": 0}, "merges": []}, "normalizer": {"type": "Lowercase"}}"#,
        r#"{"model": {"vocab": {"a": 0}, "merges": []}, "added_tokens": [{"id": 1}]}"#,
        r#"{"model": {"vocab": {"a": 0}, "merges": []}, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated"}}"#,
    ] {
        std::fs::write(&path, text).unwrap();
        let result = Tokenizer::from_file(&path);
        assert!(result.is_err() || text.contains(r#""vocab": {}"#), "{text}");
    }
}
