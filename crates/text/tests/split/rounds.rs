//! A conversation goes around: prompt, raw answer, events, messages, and the next prompt by the model's own template.

use serde_json::{Map, Value, json};
use turbospark_text::{ChatTemplate, Dialect, Event, Message, Splitter, Tool};

use crate::{merged, split};

fn definitions() -> Value {
    json!([{"type": "function", "function": {"name": "get_weather", "description": "Weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}])
}

/// The message that an answer becomes; arguments as an object, which is what templates print.
fn message(events: &[Event]) -> Message {
    let (mut content, mut reasoning, mut arguments) = (String::new(), String::new(), String::new());
    let mut calls: Vec<Value> = Vec::new();
    for event in events {
        match event {
            Event::Text(text) => content.push_str(text),
            Event::Reasoning(text) => reasoning.push_str(text),
            Event::ToolCallStart { name, .. } => {
                arguments.clear();
                calls.push(json!({"type": "function", "function": {"name": name}}));
            }
            Event::ToolCallArguments { delta, .. } => arguments.push_str(delta),
            Event::ToolCallEnd { .. } => {
                calls.last_mut().unwrap()["function"]["arguments"] =
                    serde_json::from_str(&arguments).unwrap();
            }
            Event::ToolCallFailed { reason, raw, .. } => panic!("{reason}: {raw}"),
        }
    }
    let mut message = Message::new("assistant", content);
    message.fields.insert("tool_calls".into(), Value::Array(calls));
    if !reasoning.is_empty() {
        message.fields.insert("reasoning_content".into(), reasoning.clone().into());
        message.fields.insert("thinking".into(), reasoning.into());
    }
    message
}

/// Renders a question, splits `raw`, and renders the prompt after the tool's result. Returns both prompts.
fn round(source: &str, dialect: Dialect, extra: &Map<String, Value>, raw: &str) -> [String; 2] {
    let template = ChatTemplate::new(source, "", "").unwrap().at_time(1_722_000_000);
    let definitions = definitions();
    assert_eq!(Dialect::detect(Some(source), "", |_| false), dialect);
    let mut messages = vec![Message::new("user", "Weather in Rome?")];
    let first = template.render(&messages, Some(&definitions), true, extra).unwrap();
    let tools = Tool::from_definitions(&definitions);
    let events = split(Splitter::new(dialect, &tools).after_prompt(&first), &[raw]);
    messages.push(message(&merged(events)));
    let mut result = Message::new("tool", "{\"degrees\": 21}");
    result.fields.insert("name".into(), "get_weather".into());
    result.fields.insert("tool_call_id".into(), "call_0".into());
    messages.push(result);
    let second = template.render(&messages, Some(&definitions), true, extra).unwrap();
    [first, second]
}

#[test]
fn chatml_puts_the_call_back_as_the_model_wrote_it() {
    let call = "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>";
    for (source, raw) in [
        (include_str!("../../testdata/templates/qwen2_5.jinja"), call.to_owned()),
        (
            include_str!("../../testdata/templates/qwen3.jinja"),
            format!("<think>\nRome it is.\n</think>\n\n{call}"),
        ),
    ] {
        let [first, second] = round(source, Dialect::Hermes, &Map::new(), &raw);
        assert!(first.contains("get_weather") && first.ends_with("<|im_start|>assistant\n"));
        assert!(second.starts_with(&format!("{first}{raw}<|im_end|>")), "{second}");
        assert!(second.contains("<tool_response>\n{\"degrees\": 21}\n</tool_response>"));
    }
}

#[test]
fn thinking_is_switched_by_a_variable_and_the_splitter_sees_it() {
    let source = include_str!("../../testdata/templates/qwen3.jinja");
    let extra = Map::from_iter([("enable_thinking".to_owned(), false.into())]);
    let template = ChatTemplate::new(source, "", "").unwrap();
    let prompt = template.render(&[Message::new("user", "x")], None, true, &extra).unwrap();
    assert!(prompt.ends_with("</think>\n\n"));
    assert!(!Dialect::Hermes.opens_reasoning(&prompt));
    assert!(Dialect::Hermes.opens_reasoning("<|im_start|>assistant\n<think>\n"));
    let events = split(Splitter::new(Dialect::Hermes, &[]).after_prompt(&prompt), &["\nHi"]);
    assert_eq!(events, [Event::Text("Hi".into())]);
}

/// A template in the manner of harmony's: headers, channels, the effort of reasoning.
const HARMONY: &str = r#"<|start|>system<|message|>Reasoning: {{ reasoning_effort }}<|end|>
{%- if tools %}<|start|>developer<|message|>{% for t in tools %}type {{ t.function.name }}{% endfor %}<|end|>{% endif %}
{%- for m in messages %}
{%- if m.tool_calls %}
{%- if m.thinking %}<|start|>assistant<|channel|>analysis<|message|>{{ m.thinking }}<|end|>{% endif %}
{%- for c in m.tool_calls %}<|start|>assistant<|channel|>commentary to=functions.{{ c.function.name }} <|constrain|>json<|message|>{{ c.function.arguments | tojson }}<|call|>{% endfor %}
{%- elif m.role == 'tool' %}<|start|>functions.{{ m.name }} to=assistant<|channel|>commentary<|message|>{{ m.content }}<|end|>
{%- else %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|start|>assistant{% endif %}"#;

#[test]
fn harmony_puts_reasoning_and_call_back() {
    let raw = "<|channel|>analysis<|message|>Rome it is.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{\"city\": \"Rome\"}<|call|>";
    let extra = Map::from_iter([("reasoning_effort".to_owned(), "low".into())]);
    let [first, second] = round(HARMONY, Dialect::Harmony, &extra, raw);
    assert!(first.contains("Reasoning: low") && first.contains("type get_weather"));
    assert_eq!(
        second,
        format!(
            "{first}{raw}<|start|>functions.get_weather to=assistant<|channel|>commentary<|message|>{{\"degrees\": 21}}<|end|><|start|>assistant"
        )
    );
}
