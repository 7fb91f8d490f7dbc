//! Loads the tokenizer of a GGUF file or a `tokenizer.json`, says how long that took, and encodes a text file.
//!
//! `cargo run --release -p turbospark-text --example tokenize -- MODEL [TEXT]`

use std::{path::Path, time::Instant};

use turbospark_format::Gguf;
use turbospark_text::{Specials, Tokenizer};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let model = args.next().ok_or("usage: tokenize MODEL [TEXT]")?;
    let start = Instant::now();
    let tokenizer = if Path::new(&model).extension().is_some_and(|e| e == "json") {
        Tokenizer::from_file(&model)?
    } else {
        let file = Gguf::open(&model)?;
        println!("open      {:>8.1} ms", start.elapsed().as_secs_f64() * 1e3);
        let start = Instant::now();
        let tokenizer = Tokenizer::from_metadata(file.metadata())?;
        println!("tokenizer {:>8.1} ms", start.elapsed().as_secs_f64() * 1e3);
        tokenizer
    };
    println!("loaded    {:>8.1} ms, {} tokens", start.elapsed().as_secs_f64() * 1e3, tokenizer.vocab_size());
    if let Some(path) = args.next() {
        let text = std::fs::read_to_string(path)?;
        let start = Instant::now();
        let ids = tokenizer.encode(&text, Specials::ALL)?;
        let seconds = start.elapsed().as_secs_f64();
        println!("encoded   {:>8.1} ms, {} bytes, {} ids", seconds * 1e3, text.len(), ids.len());
        println!("decodes back: {}", tokenizer.decode(&tokenizer.encode(&text, Specials::NONE)?) == text);
    }
    Ok(())
}
