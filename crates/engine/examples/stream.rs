//! Streams text: `cargo run --release --example stream -- model.gguf "Once upon a time"`.

use std::io::{Write, stdout};

use turbospark_engine::{Engine, EngineOptions, GenerateOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(model), Some(text)) = (args.next(), args.next()) else {
        return Err("usage: stream MODEL TEXT".into());
    };
    let engine = Engine::open(model, EngineOptions::default())?;
    let prompt = engine.encode(&text)?;
    let mut session = engine.session();
    let options = GenerateOptions { max_tokens: Some(128), ..GenerateOptions::default() };
    for piece in session.generate(&prompt, options)? {
        print!("{}", piece?.text);
        stdout().flush()?;
    }
    Ok(())
}
