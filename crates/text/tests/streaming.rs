//! Streamed text is the whole text, however tokens cut it, and byte-level vocabularies lose nothing.

#[path = "support/convert.rs"]
mod convert;
mod support;

use convert::to_metadata;
use proptest::prelude::*;
use std::sync::LazyLock;
use support::{json, testdata};
use turbospark_format::{Array, Metadata, Value};
use turbospark_text::{Specials, Tokenizer};

/// Every byte is a token of its own: `<0x00>` is id 3.
fn bytes_only(add_space_prefix: bool) -> Tokenizer {
    let mut tokens: Vec<String> = vec!["<unk>".into(), "<s>".into(), "</s>".into()];
    tokens.extend((0..=255u8).map(|b| format!("<0x{b:02X}>")));
    tokens.extend(["▁".to_owned(), "▁a".to_owned(), "a".to_owned(), "<think>".to_owned()]);
    let mut types = vec![2, 3, 3];
    types.extend([6; 256]);
    types.extend([1, 1, 1, 4]);
    let scores = vec![0.0f32; tokens.len()];
    let mut m = Metadata::default();
    m.insert("tokenizer.ggml.model", Value::String("llama".into()));
    m.insert("tokenizer.ggml.tokens", Value::Array(Array::String(tokens)));
    m.insert("tokenizer.ggml.token_type", Value::Array(Array::I32(types)));
    m.insert("tokenizer.ggml.scores", Value::Array(Array::F32(scores)));
    m.insert("tokenizer.ggml.bos_token_id", Value::U32(1));
    m.insert("tokenizer.ggml.eos_token_id", Value::U32(2));
    m.insert("tokenizer.ggml.add_space_prefix", Value::Bool(add_space_prefix));
    Tokenizer::from_metadata(&m).unwrap()
}

fn byte_ids(bytes: &[u8]) -> Vec<u32> {
    bytes.iter().map(|&b| 3 + u32::from(b)).collect()
}

fn pieces(tokenizer: &Tokenizer, ids: &[u32]) -> Vec<String> {
    let mut stream = tokenizer.stream();
    let mut out: Vec<String> = ids.iter().map(|&id| stream.push(id).to_owned()).collect();
    out.push(stream.finish().to_owned());
    out
}

#[test]
fn a_character_comes_out_with_its_last_byte() {
    let tokenizer = bytes_only(false);
    assert_eq!(pieces(&tokenizer, &byte_ids("€x".as_bytes())), ["", "", "€", "x", ""]);
}

#[test]
fn half_a_character_at_the_end_is_flushed_once() {
    let tokenizer = bytes_only(false);
    assert_eq!(pieces(&tokenizer, &byte_ids(b"a\xf0\x9f\x91")), ["a", "", "", "", "\u{fffd}"]);
}

#[test]
fn an_invalid_byte_is_replaced_as_soon_as_it_is_decided() {
    let tokenizer = bytes_only(false);
    assert_eq!(pieces(&tokenizer, &byte_ids(b"\xffa\xe2\x82b")), ["\u{fffd}", "a", "", "", "\u{fffd}b", ""]);
}

#[test]
fn control_tokens_are_hidden_and_user_defined_ones_shown() {
    let tokenizer = bytes_only(false);
    let think = tokenizer.id_of("<think>").unwrap();
    let ids = [1, think, 3 + u32::from(b'x'), 2];
    assert_eq!(tokenizer.decode(&ids), "<think>x");
    let mut stream = tokenizer.stream().show_special(true);
    let shown: String = ids.iter().map(|&id| stream.push(id).to_owned()).collect();
    assert_eq!(shown, "<s><think>x</s>");
}

#[test]
fn the_vocabularys_own_space_is_dropped_only_at_the_start() {
    let tokenizer = bytes_only(true);
    let ids = tokenizer.encode("a a", Specials::ALL).unwrap();
    let word = tokenizer.id_of("▁a").unwrap();
    assert_eq!(ids, [1, word, word]);
    assert_eq!(tokenizer.decode(&ids), "a a");
    let mut stream = tokenizer.stream_continuation();
    assert_eq!(stream.push(word), " a");
}

#[test]
fn bos_is_not_doubled_and_user_defined_tokens_are_atomic_in_plain_text() {
    let tokenizer = bytes_only(false);
    let think = tokenizer.id_of("<think>").unwrap();
    let a = tokenizer.id_of("a").unwrap();
    assert_eq!(tokenizer.encode("<s><think>a", Specials::ALL).unwrap(), [1, think, a]);
    assert_eq!(tokenizer.encode("<think>", Specials::NONE).unwrap(), [think]);
    assert_eq!(tokenizer.encode("<s>", Specials::NONE).unwrap(), byte_ids(b"<s>"));
    assert_eq!(tokenizer.encode("", Specials::ALL).unwrap(), [1]);
}

#[test]
fn ids_outside_of_the_vocabulary_decode_to_nothing() {
    let tokenizer = bytes_only(false);
    assert_eq!(tokenizer.decode(&[u32::MAX, 100_000]), "");
    assert_eq!(tokenizer.token_bytes(u32::MAX), None);
}

/// Pre-tokenizer without normalisation, so that nothing of the text changes.
static BYTE_LEVEL: LazyLock<Tokenizer> = LazyLock::new(|| {
    let tokenizer = json(&testdata("small/small_bytes.json"));
    Tokenizer::from_metadata(&to_metadata(&tokenizer, "gpt2", Some("llama-bpe"))).unwrap()
});

static PIECES: LazyLock<Tokenizer> = LazyLock::new(|| {
    let tokenizer = json(&testdata("small/small_pieces.json"));
    Tokenizer::from_metadata(&to_metadata(&tokenizer, "llama", None)).unwrap()
});

proptest! {
    #[test]
    fn any_text_survives_a_byte_level_vocabulary(text in any::<String>()) {
        let ids = BYTE_LEVEL.encode(&text, Specials::NONE).unwrap();
        prop_assert_eq!(BYTE_LEVEL.decode(&ids), text);
    }

    #[test]
    fn any_text_survives_a_vocabulary_of_pieces(text in any::<String>()) {
        let ids = PIECES.encode(&text, Specials::NONE).unwrap();
        prop_assert_eq!(PIECES.decode(&ids), text.replace('▁', " "));
    }

    #[test]
    fn streaming_equals_decoding_of_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let tokenizer = bytes_only(false);
        let ids = byte_ids(&bytes);
        let whole = String::from_utf8_lossy(&bytes).into_owned();
        prop_assert_eq!(pieces(&tokenizer, &ids).concat(), whole.clone());
        prop_assert_eq!(tokenizer.decode(&ids), whole);
    }

    #[test]
    fn streaming_never_takes_text_back(ids in proptest::collection::vec(0u32..3300, 0..64)) {
        let mut shown = String::new();
        let mut stream = BYTE_LEVEL.stream();
        for (i, &id) in ids.iter().enumerate() {
            shown.push_str(stream.push(id));
            prop_assert!(BYTE_LEVEL.decode(&ids[..=i]).starts_with(&shown));
        }
        shown.push_str(stream.finish());
        prop_assert_eq!(BYTE_LEVEL.decode(&ids), shown);
    }
}
