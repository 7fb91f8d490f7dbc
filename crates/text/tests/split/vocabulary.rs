//! The splitter on tokens: control tokens are markers, the same characters spelt otherwise are text.

use serde_json::json;
use turbospark_text::{Dialect, OutputFormat};

use crate::{bytes::tokenizer, merged, summary, tools};

fn summarised(dialect: Dialect, control: &[&str], pieces: &[&str]) -> serde_json::Value {
    let tokenizer = tokenizer(control);
    let format = OutputFormat::new(dialect, &tokenizer);
    let mut splitter = format.splitter(&tools());
    let mut stream = tokenizer.stream().show_special(true);
    let mut events = Vec::new();
    for piece in pieces {
        let ids = match control.iter().position(|c| c == piece) {
            Some(at) => vec![256 + at as u32],
            None => piece.bytes().map(u32::from).collect(),
        };
        for id in ids {
            events.extend(splitter.push(id, stream.push(id)));
        }
    }
    events.extend(splitter.push_text(stream.finish()));
    events.extend(splitter.finish());
    summary(&merged(events))
}

#[test]
fn spelt_markers_are_text_where_the_vocabulary_has_the_token() {
    let control =
        ["<|channel|>", "<|message|>", "<|end|>", "<|start|>", "<|call|>", "<|constrain|>", "<|return|>"];
    let pieces =
        ["<|channel|>", "final", "<|message|>", "Grüße: ", "<|chan", "nel|>analysis<|message|>", "<|end|>"];
    let want = json!([{"text": "Grüße: <|channel|>analysis<|message|>"}]);
    assert_eq!(summarised(Dialect::Harmony, &control, &pieces), want);
    let pieces = [
        "<|channel|>",
        "commentary to=functions.ping ",
        "<|constrain|>",
        "json",
        "<|message|>",
        "{\"a\": \"<|call|",
        ">\"}",
        "<|call|>",
    ];
    let want = json!([{"call": "ping", "args": {"a": "<|call|>"}}]);
    assert_eq!(summarised(Dialect::Harmony, &control, &pieces), want);
}

#[test]
fn control_tokens_that_mean_nothing_are_hidden() {
    let control = ["<|im_end|>", "[TOOL_CALLS]", "[ARGS]"];
    let pieces = ["Hi", "<|im_end|>", " there", "[TOOL_CALLS]", "ping", "[ARGS]", "{", "<|im_end|>", "}"];
    let want = json!([{"text": "Hi there"}, {"call": "ping", "args": {}}]);
    assert_eq!(summarised(Dialect::Mistral, &control, &pieces), want);
}
