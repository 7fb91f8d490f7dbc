//! A vocabulary of single bytes and control tokens.

use turbospark_format::{Array, Metadata, Value};
use turbospark_text::Tokenizer;

/// Ids 0 to 255 are bytes, then come the control tokens in their order.
pub(crate) fn tokenizer(control: &[&str]) -> Tokenizer {
    let mut tokens: Vec<String> = (0..=255u8).map(|b| format!("<0x{b:02X}>")).collect();
    let mut types = vec![6i32; 256];
    tokens.extend(control.iter().map(|t| (*t).to_owned()));
    types.extend(control.iter().map(|_| 3));
    let mut m = Metadata::default();
    m.insert("tokenizer.ggml.model", Value::String("llama".into()));
    m.insert("tokenizer.ggml.add_space_prefix", Value::Bool(false));
    m.insert("tokenizer.ggml.add_bos_token", Value::Bool(false));
    m.insert("tokenizer.ggml.scores", Value::Array(Array::F32(vec![0.0; tokens.len()])));
    m.insert("tokenizer.ggml.tokens", Value::Array(Array::String(tokens)));
    m.insert("tokenizer.ggml.token_type", Value::Array(Array::I32(types)));
    Tokenizer::from_metadata(&m).unwrap()
}
