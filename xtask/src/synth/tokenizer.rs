//! A byte-level BPE vocabulary of any size, as small a one as readers accept.
//!
//! Invariant: every piece is another string, and each but the special ones is reached by merges from single bytes, so
//! that any text can be encoded.

use super::shape::{Family, Shape};
use turbospark_format::Value;

/// The single bytes and the special tokens.
pub(super) const SMALLEST: i64 = 256 + 3;
/// More than any published vocabulary; pieces of three bytes would end at 2^24.
pub(super) const LARGEST: i64 = 1 << 22;

/// Token types of the GGUF format.
const NORMAL: i32 = 1;
const CONTROL: i32 = 3;

/// The tokenizer's keys. Special tokens have the last ids.
pub(super) fn metadata(shape: &Shape) -> Vec<(String, Value)> {
    // Each by its text and its place in the list: beginning, end and padding.
    let (pre, special, [bos, eos, pad]): (_, &[&str], _) = match shape.family {
        Family::GptOss => ("gpt-4o", &["<|startoftext|>", "<|endoftext|>", "<|return|>"], [0, 2, 1]),
        Family::Qwen3Moe | Family::Qwen3 => {
            ("qwen2", &["<|endoftext|>", "<|im_start|>", "<|im_end|>"], [0, 2, 0])
        }
    };
    let normal = shape.vocab - special.len() as u32;
    let letters = byte_letters();
    let mut tokens: Vec<String> = letters.iter().map(char::to_string).collect();
    let mut merges = Vec::new();
    // Piece 256 + i is piece i with another byte behind it: first all pairs, then triples.
    for id in 256..normal as usize {
        let (left, right) = ((id - 256) / 256, letters[id % 256]);
        merges.push(format!("{} {right}", tokens[left]));
        tokens.push(format!("{}{right}", tokens[left]));
    }
    tokens.extend(special.iter().map(ToString::to_string));
    let mut types = vec![NORMAL; normal as usize];
    types.resize(tokens.len(), CONTROL);
    let id = |place: u32| Value::from(normal + place);
    [
        ("model", Value::from("gpt2")),
        ("pre", pre.into()),
        ("tokens", tokens.into()),
        ("token_type", types.into()),
        ("merges", merges.into()),
        ("bos_token_id", id(bos)),
        ("eos_token_id", id(eos)),
        ("padding_token_id", id(pad)),
        ("add_bos_token", false.into()),
    ]
    .map(|(key, value)| (format!("tokenizer.ggml.{key}"), value))
    .into()
}

/// The character by which GPT-2's vocabulary writes each byte, in the order of that vocabulary: printable bytes as
/// themselves, then the others as the characters from U+0100 on.
fn byte_letters() -> Vec<char> {
    let printable = |b: &u8| matches!(b, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let shown = (0..=255).filter(printable).map(char::from);
    let hidden = (0..=255).filter(|b| !printable(b)).zip('\u{100}'..).map(|(_, c)| c);
    shown.chain(hidden).collect()
}
