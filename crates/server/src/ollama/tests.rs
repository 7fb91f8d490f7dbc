//! Requests and answers as exact JSON.

use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};

use super::request::{self, EmbedRequest};
use super::response::{Endpoint, Lines, Whole};
use crate::fields::Fields;
use crate::{Ask, Finish, Format, Part, Prompt, Refusal, TokenInfo, Usage};

const CONTEXT: usize = 4096;
const NOON: &str = "1970-01-01T12:00:00.000000Z";

fn fields(body: Value) -> Fields {
    Fields::of("", body).unwrap()
}

fn chat(extra: &Value) -> Result<request::Request, Refusal> {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
    for (field, value) in extra.as_object().unwrap() {
        body[field] = value.clone();
    }
    request::chat(fields(body), |_| Some(CONTEXT))
}

fn generate(extra: &Value) -> Result<request::Request, Refusal> {
    let mut body = json!({"model": "m", "prompt": "Hi"});
    for (field, value) in extra.as_object().unwrap() {
        body[field] = value.clone();
    }
    request::generate(fields(body), |_| Some(CONTEXT))
}

fn prompt(ask: &Ask) -> Value {
    match &ask.prompt {
        Prompt::Chat { messages, tools, extras, .. } => {
            json!({"messages": messages, "tools": tools, "extras": extras})
        }
        Prompt::Text(text) => json!(text),
        Prompt::Tokens(_) => panic!("nothing asks with tokens"),
    }
}

fn field(refused: Result<request::Request, Refusal>) -> String {
    match refused {
        Err(Refusal::Bad { field: Some(field), .. }) => field,
        other => panic!("expected a refusal of a field, got {other:?}"),
    }
}

#[test]
fn options_reach_the_ask() {
    let options = json!({
        "num_predict": 9, "temperature": 0, "top_k": 3, "top_p": 0.5, "min_p": 0.25, "seed": 7, "stop": "END",
        "repeat_penalty": 1.5, "presence_penalty": 0.5, "frequency_penalty": -0.5, "num_ctx": 4096,
    });
    let request =
        chat(&json!({"options": options, "format": "json", "logprobs": true, "top_logprobs": 2})).unwrap();
    let ask = request.ask.unwrap();
    let s = &ask.sampling;
    assert_eq!((s.temperature, s.top_k, s.top_p, s.min_p, s.seed), (0.0, 3, 0.5, 0.25, 7));
    assert_eq!((s.repetition_penalty, s.presence_penalty, s.frequency_penalty), (1.5, 0.5, -0.5));
    assert_eq!((ask.max_tokens, ask.stop, ask.format), (Some(9), vec!["END".to_owned()], Format::JsonObject));
    assert_eq!((ask.logprobs, request.stream), (Some(2), true));
    let schema = json!({"type": "object"});
    let ask = generate(&json!({"format": schema, "options": {"num_predict": -1}, "stream": false})).unwrap();
    assert!(!ask.stream);
    let ask = ask.ask.unwrap();
    assert_eq!((ask.format, ask.max_tokens), (Format::JsonSchema(schema), None));
}

#[test]
fn conversations_are_as_templates_know_them() {
    let messages = json!([
        {"role": "system", "content": "S"},
        {"role": "user", "content": "U"},
        {"role": "assistant", "content": "", "thinking": "hm", "tool_calls": [
            {"id": "c1", "function": {"index": 0, "name": "f", "arguments": {"x": 1}}},
        ]},
        {"role": "tool", "content": "42", "tool_name": "f", "tool_call_id": "c1"},
    ]);
    let parameters =
        json!({"type": "object", "$defs": null, "properties": {"x": {"type": "integer", "enum": null}}});
    let tools = json!([{"type": "function", "function": {"name": "f", "description": "d", "parameters": parameters}}]);
    let ask = chat(&json!({"messages": messages, "tools": tools, "think": "low"})).unwrap().ask.unwrap();
    assert_eq!(
        prompt(&ask),
        json!({
            "messages": [
                {"role": "system", "content": "S"},
                {"role": "user", "content": "U"},
                {"role": "assistant", "content": "", "reasoning_content": "hm", "tool_calls": [
                    {"type": "function", "function": {"name": "f", "arguments": {"x": 1}}, "id": "c1"},
                ]},
                {"role": "tool", "content": "42", "name": "f", "tool_call_id": "c1"},
            ],
            "tools": [{"type": "function", "function": {
                "name": "f", "description": "d",
                "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}},
            }}],
            "extras": {"enable_thinking": true, "reasoning_effort": "low"},
        })
    );
}

#[test]
fn generate_makes_a_conversation_or_takes_the_text_raw() {
    let ask = generate(&json!({"system": "S", "think": false})).unwrap().ask.unwrap();
    let messages = json!([{"role": "system", "content": "S"}, {"role": "user", "content": "Hi"}]);
    assert_eq!(
        prompt(&ask),
        json!({"messages": messages, "tools": [], "extras": {"enable_thinking": false}})
    );
    let ask = generate(&json!({"raw": true})).unwrap().ask.unwrap();
    assert_eq!(prompt(&ask), json!("Hi"));
    assert!(generate(&json!({"prompt": "", "keep_alive": "5m"})).unwrap().ask.is_none(), "only loads");
    assert!(chat(&json!({"messages": [], "keep_alive": -1})).unwrap().ask.is_none(), "only loads");
}

#[test]
fn what_cannot_take_effect_is_named() {
    for (extra, named) in [
        (json!({"suffix": "x"}), "suffix"),
        (json!({"template": "x"}), "template"),
        (json!({"images": ["x"]}), "images"),
        (json!({"context": [1]}), "context"),
        (json!({"raw": true, "system": "x"}), "system"),
        (json!({"think": "much"}), "think"),
        (json!({"model": null}), "model"),
    ] {
        assert_eq!(field(generate(&extra)), named);
    }
    for (extra, named) in [
        (json!({"options": {"num_ctx": 4097}}), "options.num_ctx"),
        (json!({"options": {"num_predict": 0}}), "options.num_predict"),
        (json!({"options": {"mirostat": 1}}), "options.mirostat"),
        (json!({"options": {"top_p": 0}}), "options.top_p"),
        (json!({"options": {"stop": [""]}}), "options.stop"),
        (json!({"format": "xml"}), "format"),
        (json!({"keep_alive": "soon"}), "keep_alive"),
        (json!({"top_logprobs": 3}), "top_logprobs"),
        (json!({"shift": true}), "shift"),
        (json!({"messages": [{"role": "user", "images": ["x"]}]}), "messages[0].images"),
        (json!({"messages": [{"role": "robot"}]}), "messages[0].role"),
        (json!({"tools": [{"type": "web"}]}), "tools[0].type"),
    ] {
        assert_eq!(field(chat(&extra)), named);
    }
}

#[test]
fn embeddings_take_one_text_or_many() {
    let many = request::embed(fields(json!({"model": "m", "input": ["a", "b"], "truncate": false})), "input")
        .unwrap();
    assert_eq!(many, EmbedRequest { model: "m".to_owned(), input: vec!["a".to_owned(), "b".to_owned()] });
    let one = request::embed(fields(json!({"model": "m", "prompt": "a"})), "prompt").unwrap();
    assert_eq!(one.input, ["a"]);
    for wrong in [
        json!({"model": "m"}),
        json!({"model": "m", "input": [1]}),
        json!({"model": "m", "input": "a", "dimensions": 3}),
    ] {
        assert!(matches!(request::embed(fields(wrong), "input"), Err(Refusal::Bad { .. })));
    }
}

fn parts() -> Vec<Part> {
    let usage = Usage {
        prompt_tokens: 10,
        completion_tokens: 7,
        queued: 0.5,
        first_token: 1.0,
        total: 3.0,
        ..Usage::default()
    };
    let token = TokenInfo { bytes: b"Hey".to_vec(), logprob: -0.5, top: vec![(b"Ho".to_vec(), -1.5)] };
    vec![
        Part::Started { prompt_tokens: 10, cached_tokens: 0 },
        Part::Reasoning("hm".to_owned()),
        Part::Text { text: "Hey".to_owned(), tokens: vec![token] },
        Part::CallStart { index: 0, id: "c1".to_owned(), name: "f".to_owned() },
        Part::CallArguments { index: 0, delta: "{\"x\":".to_owned() },
        Part::CallArguments { index: 0, delta: "1}".to_owned() },
        Part::CallEnd { index: 0 },
        Part::Finished { finish: Finish::Calls, usage },
    ]
}

fn ending() -> Value {
    json!({
        "done": true, "done_reason": "stop", "total_duration": 3_000_000_000_u64, "load_duration": 500_000_000,
        "prompt_eval_count": 10, "prompt_eval_duration": 500_000_000, "eval_count": 7, "eval_duration": 2_000_000_000,
    })
}

fn merged(mut a: Value, b: Value) -> Value {
    let (Some(fields), Value::Object(more)) = (a.as_object_mut(), b) else { panic!("no objects") };
    fields.extend(more);
    a
}

#[test]
fn parts_become_lines() {
    let noon = UNIX_EPOCH + Duration::from_secs(43_200);
    let mut lines = Lines::new(Endpoint::Chat, "m".to_owned());
    let got: Vec<_> = parts().into_iter().filter_map(|part| lines.push(part, noon)).collect();
    let call = json!({"id": "c1", "function": {"index": 0, "name": "f", "arguments": {"x": 1}}});
    let logprobs = json!([{
        "token": "Hey", "logprob": -0.5, "bytes": [72, 101, 121],
        "top_logprobs": [{"token": "Ho", "logprob": -1.5, "bytes": [72, 111]}],
    }]);
    let line = |message: Value| json!({"model": "m", "created_at": NOON, "message": message, "done": false});
    let expected = vec![
        line(json!({"role": "assistant", "content": "", "thinking": "hm"})),
        merged(line(json!({"role": "assistant", "content": "Hey"})), json!({"logprobs": logprobs})),
        line(json!({"role": "assistant", "content": "", "tool_calls": [call]})),
        merged(line(json!({"role": "assistant", "content": ""})), ending()),
    ];
    assert_eq!(got, expected);
    let mut whole = Whole::new(Endpoint::Chat, "m".to_owned());
    let got = parts().into_iter().find_map(|part| whole.push(part, noon).unwrap()).unwrap();
    let message = json!({"role": "assistant", "content": "Hey", "thinking": "hm", "tool_calls": [call]});
    assert_eq!(got, merged(merged(line(message), ending()), json!({"logprobs": logprobs})));
}

#[test]
fn generated_text_stands_in_response() {
    let noon = UNIX_EPOCH + Duration::from_secs(43_200);
    let usage = Usage::default();
    let text = Part::Text { text: "Hey".to_owned(), tokens: Vec::new() };
    let mut lines = Lines::new(Endpoint::Generate, "m".to_owned());
    let line = lines.push(text.clone(), noon).unwrap();
    assert_eq!(line, json!({"model": "m", "created_at": NOON, "response": "Hey", "done": false}));
    let last = lines.push(Part::Finished { finish: Finish::Length, usage }, noon).unwrap();
    assert_eq!((&last["response"], &last["done_reason"]), (&json!(""), &json!("length")));
    let failed = Part::Failed(Refusal::Internal("no".to_owned()));
    assert_eq!(lines.push(failed.clone(), noon), Some(json!({"error": "no"})));
    let mut whole = Whole::new(Endpoint::Generate, "m".to_owned());
    assert_eq!(whole.push(text, noon), Ok(None));
    assert_eq!(whole.push(failed, noon), Err(Refusal::Internal("no".to_owned())));
    let loaded = Endpoint::Generate.loaded("m", noon);
    assert_eq!(
        loaded,
        json!({"model": "m", "created_at": NOON, "response": "", "done": true, "done_reason": "load"})
    );
}
