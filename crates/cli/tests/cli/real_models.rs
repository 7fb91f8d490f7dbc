//! Real models, where tools/fetch-models has put them.

use crate::support::{arg, real, turbospark, turbospark_with};

const SMOLLM2: &str = "smollm2-135m-instruct-q4_1.gguf";
/// What SmolLM2 says to "Write a haiku about the sea."
const HAIKU: &str = "The waves of the sea, a silent beauty,\nA gentle lapping of the shore,\nA fleeting moment of peace,\nA fleeting moment of light.";
const GEMMA3: &str = "gemma-3-270m-q4_k_m.gguf";

#[test]
fn smollm2_writes_its_greedy_text() {
    let Some(model) = real(SMOLLM2) else { return };
    let ask =
        |more: &[&str]| turbospark(&[&["run", arg(&model), "--greedy", "-q"], more].concat()).done().out;
    assert_eq!(ask(&["The capital of France is", "--raw", "-n", "3"]), " Paris.\n");
    let haiku = ask(&["Write a haiku about the sea.", "-n", "40"]);
    assert_eq!(haiku, HAIKU);
}

#[test]
fn smollm2_chats_over_a_pipe() {
    let Some(model) = real(SMOLLM2) else { return };
    let ran =
        turbospark_with(&["chat", arg(&model), "--greedy", "-n", "40"], "Write a haiku about the sea.\n")
            .done();
    assert_eq!(ran.out, format!("{HAIKU}\n"));
}

#[test]
fn gemma3_writes_its_greedy_text() {
    let Some(model) = real(GEMMA3) else { return };
    let ran = turbospark(&["run", arg(&model), "The sky is", "--raw", "--greedy", "-n", "6", "-q"]).done();
    assert_eq!(ran.out, " the limit for the 2");
}
