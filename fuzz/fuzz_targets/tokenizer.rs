//! Any bytes as a vocabulary and a text: a tokenizer or an error; what encodes also decodes, whole and streamed alike.
//!
//! The input's first bytes choose the kind of tokenizer, then come pieces, merges and the text, parted by bytes that no
//! UTF-8 text has.
#![no_main]

use libfuzzer_sys::fuzz_target;
use turbospark_format::{Array, Metadata, Value};
use turbospark_text::{ChatTemplate, Message, Specials, StopStrings, Tokenizer};

const PRES: [&str; 10] = [
    "default", "gpt-2", "llama-bpe", "smollm", "qwen2", "gpt-4o", "tekken", "deepseek-v3", "deepseek-llm", "kimi-k2",
];

fn strings(bytes: &[u8]) -> Vec<String> {
    bytes.split(|&b| b == 0xfe).map(|s| String::from_utf8_lossy(s).into_owned()).collect()
}

fuzz_target!(|bytes: &[u8]| {
    let [kind, pre, flags, rest @ ..] = bytes else { return };
    let mut parts = rest.split(|&b| b == 0xff);
    let mut next = || parts.next().unwrap_or_default();
    let tokens = strings(next());
    let merges = strings(next());
    let types: Vec<i32> = next().iter().map(|&b| i32::from(b % 8)).collect();
    let text = String::from_utf8_lossy(next()).into_owned();

    let mut m = Metadata::default();
    let model = ["gpt2", "llama", "gemma4", "bert"][usize::from(kind % 4)];
    m.insert("tokenizer.ggml.model", Value::String(model.to_owned()));
    m.insert("tokenizer.ggml.pre", Value::String(PRES[usize::from(pre % 10)].to_owned()));
    let scores = (0..tokens.len()).map(|i| types.get(i).map_or(0.0, |&t| t as f32 - 3.0)).collect();
    m.insert("tokenizer.ggml.scores", Value::Array(Array::F32(scores)));
    if flags & 1 != 0 {
        let mut all = types.clone();
        all.resize(tokens.len(), 1);
        m.insert("tokenizer.ggml.token_type", Value::Array(Array::I32(all)));
    }
    if flags & 2 != 0 {
        m.insert("tokenizer.ggml.unknown_token_id", Value::U32(u32::from(*flags) / 16));
        m.insert("tokenizer.ggml.bos_token_id", Value::U32(u32::from(*pre) / 16));
    }
    if flags & 4 != 0 {
        m.insert("tokenizer.ggml.add_space_prefix", Value::Bool(flags & 8 != 0));
    }
    m.insert("tokenizer.ggml.tokens", Value::Array(Array::String(tokens)));
    m.insert("tokenizer.ggml.merges", Value::Array(Array::String(merges)));

    if let Ok(tokenizer) = Tokenizer::from_metadata(&m) {
        for parse in [false, true] {
            let Ok(ids) = tokenizer.encode(&text, Specials { add_bos_eos: parse, parse }) else { continue };
            assert!(ids.iter().all(|&id| (id as usize) < tokenizer.vocab_size()));
            let mut stream = tokenizer.stream();
            let mut stops = StopStrings::new(["\n\n", "ab"]);
            let mut streamed = String::new();
            for &id in &ids {
                let piece = stream.push(id);
                stops.push(piece);
                streamed.push_str(piece);
            }
            streamed.push_str(stream.finish());
            assert_eq!(streamed, tokenizer.decode(&ids));
        }
    }
    if let Ok(template) = ChatTemplate::new(&text, "<s>", "</s>") {
        let _ = template.render(&[Message::new("user", "hi")], None, true, &serde_json::Map::new());
    }
});
