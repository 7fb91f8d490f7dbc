//! `chat` over a pipe.

use std::fs;

use serde_json::Value;

use crate::support::{arg, turbospark, turbospark_with, with_template};

#[test]
fn each_turn_sees_the_conversation_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let (model, saved) = (with_template(dir.path()), dir.path().join("saved.json"));
    let input = format!("/system be brief\nhi\nand\n/save {}\n", arg(&saved));
    let ran = turbospark_with(&["chat", arg(&model), "--greedy", "-n", "6", "-q"], &input).done();
    let messages: Vec<Value> = serde_json::from_slice(&fs::read(&saved).unwrap()).unwrap();
    let field = |i: usize, name: &str| messages[i][name].as_str().unwrap().to_owned();
    let roles: Vec<String> = (0..messages.len()).map(|i| field(i, "role")).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user", "assistant"]);
    let (first, second) = (field(2, "content"), field(4, "content"));
    assert_eq!(ran.out, format!("{first}\n{second}\n"));
    // What the model saw is the template's text of all messages so far, as one raw prompt.
    let before = format!("[system] be brief\n[user] hi\n[assistant] {first}\n[user] and\n");
    let file = dir.path().join("before.txt");
    fs::write(&file, before + "\n").unwrap();
    let tail = ["--raw", "--greedy", "-n", "6", "-q"];
    let alone = turbospark(&[&["run", arg(&model), "--file", arg(&file)], &tail[..]].concat()).done();
    assert_eq!(alone.out, second);
}

#[test]
fn reset_forgets_and_system_can_be_removed() {
    let dir = tempfile::tempdir().unwrap();
    let model = with_template(dir.path());
    let chat = |input: &str| turbospark_with(&["chat", arg(&model), "--greedy", "-n", "6"], input).done().out;
    let one = chat("hi\n");
    assert_eq!(chat("hi\n/reset\nhi\n"), format!("{one}{one}"));
    assert_eq!(chat("/system x\n/system\nhi\n"), one);
    assert_eq!(chat("hi\n/exit\nhi\n"), one);
    assert_eq!(chat("\n/help\nhi\n"), one);
}

#[test]
fn a_line_goes_on_after_a_backslash() {
    let dir = tempfile::tempdir().unwrap();
    let model = with_template(dir.path());
    let two = turbospark_with(&["chat", arg(&model), "--greedy", "-n", "6"], "a\\\nb\n").done().out;
    let raw =
        turbospark(&["run", arg(&model), "[user] a\nb\n", "--raw", "--greedy", "-n", "6", "-q"]).done().out;
    assert_eq!(two, format!("{raw}\n"));
}

#[test]
fn commands_that_cannot_be_obeyed_fail_a_script() {
    let dir = tempfile::tempdir().unwrap();
    let model = with_template(dir.path());
    let chat = |input: &str| turbospark_with(&["chat", arg(&model), "--greedy", "-n", "6"], input);
    chat("/frobnicate\n").refused(2, &["/frobnicate", "/help"]);
    chat("/save\n").refused(2, &["file name"]);
    chat("/reset now\n").refused(2, &["/reset"]);
    chat("/save /nowhere/at/all.json\n").refused(1, &["/nowhere/at/all.json"]);
}

#[test]
fn a_conversation_over_the_context_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let model = with_template(dir.path());
    let ran = turbospark_with(&["chat", arg(&model), "--context", "24"], &format!("{}\n", "zq".repeat(40)));
    ran.refused(1, &["context of 24", "/reset"]);
}
