//! Output that is cut off, malformed or made to confuse: nothing is lost, nothing panics, cuts change nothing.

use proptest::prelude::*;
use serde_json::json;
use turbospark_text::{Dialect, Event, Splitter};

use crate::{events, merged, split, summary, tools, turn};

const ALL: [Dialect; 14] = [
    Dialect::Harmony,
    Dialect::Hermes,
    Dialect::QwenXml,
    Dialect::LlamaJson,
    Dialect::LlamaPythonic,
    Dialect::Mistral,
    Dialect::Gemma3,
    Dialect::Gemma4,
    Dialect::DeepSeek,
    Dialect::DeepSeekTags,
    Dialect::Kimi,
    Dialect::MiniMax,
    Dialect::Glm,
    Dialect::Plain,
];

/// One call in each dialect, after a word.
const CALLS: [(Dialect, &str); 12] = [
    (
        Dialect::Harmony,
        "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{\"city\": \"x\"}<|call|>",
    ),
    (
        Dialect::Hermes,
        "a<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"x\"}}\n</tool_call>",
    ),
    (
        Dialect::QwenXml,
        "a<tool_call>\n<function=get_weather>\n<parameter=city>\nx\n</parameter>\n</function>\n</tool_call>",
    ),
    (Dialect::LlamaJson, "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"x\"}}"),
    (Dialect::LlamaPythonic, "[get_weather(city=\"x\")]"),
    (Dialect::Mistral, "a[TOOL_CALLS]get_weather[ARGS]{\"city\": \"x\"}"),
    (Dialect::Gemma3, "a```tool_code\nget_weather(city=\"x\")\n```"),
    (Dialect::Gemma4, "a<|tool_call>call:get_weather{city:<|\"|>x<|\"|>}<tool_call|>"),
    (
        Dialect::DeepSeek,
        "a<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\": \"x\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ),
    (
        Dialect::Kimi,
        "a<|tool_calls_section_begin|><|tool_call_begin|>get_weather<|tool_call_argument_begin|>{\"city\": \"x\"}<|tool_call_end|><|tool_calls_section_end|>",
    ),
    (
        Dialect::MiniMax,
        "a<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">x</parameter>\n</invoke>\n</minimax:tool_call>",
    ),
    (
        Dialect::Glm,
        "a<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>x</arg_value>\n</tool_call>",
    ),
];

#[test]
fn a_call_cut_off_anywhere_is_text_or_a_failure() {
    for (dialect, raw) in CALLS {
        for (at, _) in raw.char_indices() {
            let cut = &raw[..at];
            let got = events(|| Splitter::new(dialect, &tools()), cut);
            let mut open = 0i32;
            let mut kept = String::new();
            let mut ended = false;
            for event in &got {
                match event {
                    Event::Text(text) => kept.push_str(text),
                    Event::ToolCallStart { .. } => open += 1,
                    Event::ToolCallEnd { .. } => {
                        open -= 1;
                        ended = true;
                    }
                    Event::ToolCallFailed { raw, reason, .. } => {
                        open = 0;
                        assert!(!reason.is_empty());
                        kept.push_str(raw);
                    }
                    _ => {}
                }
            }
            assert_eq!(open, 0, "{cut:?}: {got:?}");
            // A call that has ended is whole but for its closing markers; a header without a recipient says nothing.
            let header = dialect == Dialect::Harmony && !cut.contains("to=");
            assert!(ended || header || kept == cut, "{cut:?}: {got:?}");
        }
    }
}

#[test]
fn a_call_that_goes_wrong_keeps_its_text_and_the_next_one_works() {
    turn(
        Dialect::Hermes,
        "",
        "<tool_call>{\"name\": \"ping\", \"arguments\": {\"a\": True}}</tool_call>\n<tool_call>{\"name\": \"ping\"}</tool_call>after",
        &json!([
            {"call": "ping"},
            {"failed": "<tool_call>{\"name\": \"ping\", \"arguments\": {\"a\": True}}</tool_call>"},
            {"call": "ping", "args": {}}, {"text": "after"}
        ]),
    );
    turn(
        Dialect::Mistral,
        "",
        "[TOOL_CALLS]ping[ARGS]{]}[TOOL_CALLS]ping[ARGS]{}",
        &json!([{"call": "ping"}, {"failed": "[TOOL_CALLS]ping[ARGS]{]}"}, {"call": "ping", "args": {}}]),
    );
    turn(
        Dialect::Harmony,
        "<|start|>assistant",
        "<|channel|>commentary to=functions.ping<|message|>{} x<|call|><|start|>assistant<|channel|>final<|message|>y",
        &json!([
            {"call": "ping"},
            {"failed": "<|channel|>commentary to=functions.ping<|message|>{} x"},
            {"text": "y"}
        ]),
    );
}

#[test]
fn markers_without_a_call_are_text_unchanged() {
    for (dialect, raw) in [
        (Dialect::Hermes, "a \n<tool_call> is a tag"),
        (Dialect::Hermes, "<tool_call><tool_call></tool_call>"),
        (Dialect::Hermes, "<tool_call>{\"arguments\": {}}</tool_call>"),
        (Dialect::QwenXml, "<tool_call><function=></function></tool_call>"),
        (Dialect::Mistral, "x [TOOL_CALLS] y z"),
        (Dialect::DeepSeek, "<｜tool▁calls▁begin｜>x<｜tool▁calls▁end｜>"),
        (Dialect::Kimi, "<|tool_calls_section_begin|><|tool_calls_section_end|>"),
        (Dialect::MiniMax, "<minimax:tool_call> x </minimax:tool_call>"),
        (Dialect::Gemma4, "<|tool_call>cal"),
        (Dialect::LlamaJson, "<|python_tag|>print(1)"),
        (Dialect::Plain, "a </think> b <tool_call>"),
    ] {
        turn(dialect, "", raw, &json!([{ "text": raw }]));
    }
}

#[test]
fn a_call_inside_a_broken_one_is_found() {
    turn(
        Dialect::Hermes,
        "",
        "<tool_call><tool_call>{\"name\": \"ping\"}</tool_call>",
        &json!([{"text": "<tool_call>"}, {"call": "ping", "args": {}}]),
    );
}

#[test]
fn without_tools_markers_of_calls_are_text() {
    for (dialect, raw) in CALLS {
        if dialect != Dialect::Harmony {
            let got = events(|| Splitter::new(dialect, &[]), raw);
            assert_eq!(summary(&got), json!([{ "text": raw }]));
        }
    }
}

#[test]
fn reasoning_that_never_ends_stays_reasoning() {
    let got = events(|| Splitter::new(Dialect::Hermes, &tools()).reasoning_open(), "a <tool_call>{</thin");
    assert_eq!(summary(&got), json!([{"think": "a <tool_call>{</thin"}]));
}

#[test]
fn long_nested_failures_take_linear_time() {
    for dialect in ALL {
        for unit in [
            "<tool_call>",
            "<tool_call>{\"a\":",
            "[TOOL_CALLS][",
            "<|channel|>",
            "{",
            "[",
            "<｜tool▁calls▁begin｜>",
        ] {
            let raw = unit.repeat(20_000);
            let got = split(Splitter::new(dialect, &tools()), &[&raw]);
            assert!(got.len() < 100_000);
        }
    }
}

fn noise() -> impl Strategy<Value = String> {
    let pieces: Vec<&'static str> = vec![
        "<tool_call>",
        "</tool_call>",
        "<think>",
        "</think>",
        "{\"name\": \"ping\"",
        ", \"arguments\": {",
        "}",
        "{",
        "[",
        "]",
        "\"",
        "\\",
        "<function=ping>",
        "<parameter=a>",
        "</parameter>",
        "</function>",
        "[TOOL_CALLS]",
        "[ARGS]",
        "ping(",
        "a=1",
        ")",
        ",",
        "'",
        "<|tool_call>call:ping{",
        "<|\"|>",
        "a:",
        "<tool_call|>",
        "<|channel>thought",
        "<channel|>",
        "<｜tool▁calls▁begin｜>",
        "<｜tool▁call▁begin｜>",
        "<｜tool▁sep｜>",
        "<｜tool▁call▁end｜>",
        "<｜tool▁calls▁end｜>",
        "<minimax:tool_call>",
        "<invoke name=\"ping\">",
        "<parameter name=\"a\">",
        "</invoke>",
        "</minimax:tool_call>",
        "<arg_key>",
        "</arg_key>",
        "<arg_value>",
        "</arg_value>",
        "<|start|>",
        "assistant",
        "<|channel|>",
        "analysis",
        "commentary to=functions.ping",
        "<|message|>",
        "<|end|>",
        "<|call|>",
        "<|constrain|>",
        "\n",
        " ",
        "é",
        "ping",
        "```tool_code\n",
        "```",
        "<|python_tag|>",
        ";",
        "\u{0}",
        "null",
        "1",
    ];
    proptest::collection::vec(proptest::sample::select(pieces), 0..24).prop_map(|p| p.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn cuts_never_change_the_events(raw in noise(), cuts in proptest::collection::vec(1usize..9, 1..40)) {
        for dialect in ALL {
            let whole = split(Splitter::new(dialect, &tools()), &[&raw]);
            let mut splitter = Splitter::new(dialect, &tools());
            let (mut got, mut rest, mut cuts) = (Vec::new(), raw.as_str(), cuts.iter().cycle());
            while !rest.is_empty() {
                let n = cuts.next().map_or(1, |n| *n);
                let at = rest.char_indices().nth(n).map_or(rest.len(), |(at, _)| at);
                got.extend(splitter.push_text(&rest[..at]));
                rest = &rest[at..];
            }
            got.extend(splitter.finish());
            prop_assert_eq!(merged(got), whole.clone());
            // Panics where the arguments of a call that ended are no JSON object.
            summary(&whole);
        }
    }
}
