//! Measures constrained sampling: the trie of a vocabulary, the first mask of a schema, and a mask a token.
//!
//! `cargo run --release -p turbospark-text --example constrain -- MODEL`

use std::time::Instant;

use serde_json::json;
use turbospark_format::Gguf;
use turbospark_text::{CallOptions, Constraints, Dialect, Grammar, Specials, Tokenizer, Tool, ToolChoice};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = std::env::args().nth(1).ok_or("usage: constrain MODEL")?;
    let tokenizer = Tokenizer::from_metadata(Gguf::open(&model)?.metadata())?;
    let start = Instant::now();
    let constraints = Constraints::new(&tokenizer)?;
    println!("trie      {:>9.2} ms, {} tokens", ms(start), tokenizer.vocab_size());

    let schema = json!({
        "type": "object",
        "properties": {
            "title": {"type": "string", "maxLength": 80},
            "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 8},
            "kind": {"enum": ["article", "book", "thesis"]},
            "year": {"type": "integer", "minimum": 1900, "maximum": 2100},
            "authors": {"type": "array", "items": {"$ref": "#/$defs/person"}}
        },
        "required": ["title", "tags", "kind", "year", "authors"],
        "additionalProperties": false,
        "$defs": {"person": {"type": "object", "properties": {"name": {"type": "string"}, "born": {"type": ["integer", "null"]}},
            "required": ["name", "born"], "additionalProperties": false}}
    });
    let text = "{\"title\": \"On the electrodynamics of moving bodies\", \"tags\": [\"physics\", \"relativity\"], \"kind\": \"article\", \"year\": 1905, \"authors\": [{\"name\": \"Albert Einstein\", \"born\": 1879}]}";
    measure("schema", &constraints, &tokenizer, &Grammar::json_schema(&schema)?, text)?;
    measure("object", &constraints, &tokenizer, &Grammar::json_object(), text)?;
    let tools = [Tool::new("save", schema)];
    let call = Grammar::tool_call(Dialect::Hermes, &tools, &ToolChoice::Required, CallOptions::default())?;
    let text = format!("<tool_call>\n{{\"name\": \"save\", \"arguments\": {text}}}\n</tool_call>");
    measure("call", &constraints, &tokenizer, &call, &text)?;
    Ok(())
}

fn measure(
    name: &str,
    constraints: &Constraints,
    tokenizer: &Tokenizer,
    grammar: &Grammar,
    text: &str,
) -> Result<(), Box<dyn std::error::Error>> {
    let ids = tokenizer.encode(text, Specials::NONE)?;
    for round in 1..=2 {
        let start = Instant::now();
        let mut matcher = constraints.start(grammar)?;
        matcher.mask()?;
        let first = ms(start);
        let (mut worst, mut total) = (0f64, 0f64);
        for &id in &ids {
            let start = Instant::now();
            matcher.accept(id)?;
            matcher.mask()?;
            worst = worst.max(ms(start));
            total += ms(start);
        }
        let mean = total / ids.len() as f64;
        println!(
            "{name:<9} {first:>9.2} ms to the first mask, {mean:.3} ms a token, at most {worst:.3} ms, {} tokens (round {round})",
            ids.len()
        );
    }
    Ok(())
}

fn ms(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}
