//! Real chat templates render what the reference (transformers with Jinja2) renders, tools included.
//!
//! The expected texts come from `tools/fixtures/text_templates.py`; where the reference raises, rendering must fail.

mod support;

use serde_json::{Map, Value as Json};
use support::{json, testdata};
use turbospark_format::{Metadata, Value};
use turbospark_text::{ChatTemplate, Message};

const NOW: i64 = 1_722_000_000;

fn messages(case: &Json) -> Vec<Message> {
    serde_json::from_value(case["messages"].clone()).unwrap()
}

#[test]
fn ten_published_templates_render_as_the_reference_does() {
    let conversations = json(&testdata("templates/conversations.json"));
    let expected = json(&testdata("templates/expected.json"));
    let expected = expected.as_object().unwrap();
    assert_eq!(expected.len(), 10);
    let mut failures = Vec::new();
    for (name, golden) in expected {
        let source = std::fs::read_to_string(testdata("templates").join(format!("{name}.jinja"))).unwrap();
        let (bos, eos) = (golden["bos"].as_str().unwrap(), golden["eos"].as_str().unwrap());
        let template = ChatTemplate::new(&source, bos, eos).unwrap().at_time(NOW);
        for case in conversations.as_array().unwrap() {
            let title = case["name"].as_str().unwrap();
            let extra = case["extra"].as_object().cloned().unwrap_or_default();
            let generate = case["add_generation_prompt"].as_bool().unwrap_or(true);
            let got = template.render(&messages(case), case.get("tools"), generate, &extra);
            match (got, golden["rendered"][title].as_str()) {
                (Ok(got), Some(want)) if got == want => {}
                (Err(_), None) => {}
                (got, want) => failures.push(format!("{name}, {title}:\n  got  {got:?}\n  want {want:?}")),
            }
        }
    }
    assert!(failures.is_empty(), "{} differences\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn what_templates_use_of_jinja_and_python_means_the_same() {
    let conversations = json(&testdata("templates/conversations.json"));
    let case = conversations.as_array().unwrap().iter().find(|c| c["name"] == "tool call").unwrap();
    let mut failures = Vec::new();
    for snippet in json(&testdata("templates/snippets.json")).as_array().unwrap() {
        let source = snippet["source"].as_str().unwrap();
        let want = snippet["rendered"].as_str();
        let got = ChatTemplate::new(source, "", "")
            .and_then(|t| t.at_time(NOW).render(&messages(case), case.get("tools"), true, &Map::new()));
        match (got, want) {
            (Ok(got), Some(want)) if got == want => {}
            (Err(_), None) => {}
            (got, want) => failures.push(format!("{source}:\n  got  {got:?}\n  want {want:?}")),
        }
    }
    assert!(failures.is_empty(), "{} differences\n{}", failures.len(), failures.join("\n"));
}

fn file(templates: &[(&str, &str)]) -> Metadata {
    let mut m = Metadata::default();
    for (key, source) in templates {
        m.insert(*key, Value::String((*source).to_owned()));
    }
    m
}

fn render(m: &Metadata, tools: Option<&Json>) -> String {
    let template = ChatTemplate::from_metadata(m).unwrap().unwrap();
    template.render(&[Message::new("user", "x")], tools, true, &Map::new()).unwrap()
}

#[test]
fn the_tool_use_variant_is_for_conversations_with_tools() {
    let m = file(&[("tokenizer.chat_template", "plain"), ("tokenizer.chat_template.tool_use", "tools")]);
    assert_eq!(render(&m, None), "plain");
    assert_eq!(render(&m, Some(&serde_json::json!([]))), "tools");
}

#[test]
fn the_variant_named_default_stands_in_for_the_default() {
    let m = file(&[("tokenizer.chat_template.default", "d"), ("tokenizer.chat_template.tool_use", "t")]);
    assert_eq!(render(&m, None), "d");
}

#[test]
fn a_file_without_a_template_has_none() {
    assert!(ChatTemplate::from_metadata(&Metadata::default()).unwrap().is_none());
}
