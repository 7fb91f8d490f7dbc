//! Tool calls: the grammar of a dialect allows what its splitter reads, and only calls that satisfy the schema.

use serde_json::json;
use turbospark_text::{
    CallOptions, Constraints, Dialect, Event, Grammar, GrammarError, OutputFormat, Tool, ToolChoice,
};

use crate::{accepts, bytes::tokenizer};

fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "get_weather",
            json!({"type": "object", "properties": {
                "city": {"type": "string"}, "days": {"type": "integer", "maximum": 9}, "unit": {"type": "string", "enum": ["C", "F"]}
            }, "required": ["city"]}),
        ),
        Tool::new("ping", json!({"type": "object", "properties": {}})),
    ]
}

/// Control tokens and what the grammar must allow and forbid, for a call of `get_weather` and, where more than one call is
/// possible, of `ping` after it.
struct Case {
    dialect: Dialect,
    control: &'static [&'static str],
    good: &'static [&'static str],
    bad: &'static [&'static str],
}

const CASES: [Case; 11] = [
    Case {
        dialect: Dialect::Hermes,
        control: &["<|im_end|>"],
        good: &[
            "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"x</tool_call>\", \"days\": 3}}\n</tool_call>",
            "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"x\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"ping\", \"arguments\": {}}\n</tool_call>",
        ],
        bad: &[
            "Sure!",
            "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"days\": 3}}\n</tool_call>",
            "<tool_call>\n{\"name\": \"other\"",
        ],
    },
    Case {
        dialect: Dialect::QwenXml,
        control: &["<|im_end|>"],
        good: &[
            "<tool_call>\n<function=get_weather>\n<parameter=city>\na <b> \"c\"\nd\n</parameter>\n<parameter=days>\n3\n</parameter>\n<parameter=unit>\nF\n</parameter>\n</function>\n</tool_call>",
            "<tool_call>\n<function=get_weather>\n<parameter=city>\nx\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=ping>\n</function>\n</tool_call>",
        ],
        bad: &[
            "<tool_call>\n<function=get_weather>\n<parameter=days>",
            "<tool_call>\n<function=get_weather>\n<parameter=city>\nx\n</parameter>\n<parameter=days>\n10\n</parameter>",
            "<tool_call>\n<function=get_weather>\n<parameter=city>\nx\n</parameter>\n<parameter=unit>\nK",
        ],
    },
    Case {
        dialect: Dialect::LlamaJson,
        control: &["<|eot_id|>"],
        good: &[
            "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"x\"}}; {\"name\": \"ping\", \"parameters\": {}}",
        ],
        bad: &["Hi", "{\"name\": \"get_weather\", \"parameters\": {\"town\""],
    },
    Case {
        dialect: Dialect::Gemma3,
        control: &["<end_of_turn>"],
        good: &["```json\n{\"name\": \"get_weather\", \"parameters\": {\"city\": \"x\"}}\n```"],
        bad: &["Hi"],
    },
    Case {
        dialect: Dialect::Mistral,
        control: &["[TOOL_CALLS]", "[ARGS]", "<|im_end|>"],
        good: &[
            "[TOOL_CALLS]get_weather[ARGS]{\"city\": \"x\"}",
            "[TOOL_CALLS]get_weather[ARGS]{\"city\": \"x\"}[TOOL_CALLS]ping[ARGS]{}",
        ],
        bad: &["[TOOL_CALLS]get_weather{", "[TOOL_CALLS][{"],
    },
    Case {
        dialect: Dialect::Mistral,
        control: &["[TOOL_CALLS]", "<|im_end|>"],
        good: &["[TOOL_CALLS][{\"name\": \"get_weather\", \"arguments\": {\"city\": \"x\"}}]"],
        bad: &["[TOOL_CALLS]get_weather"],
    },
    Case {
        dialect: Dialect::Harmony,
        control: &[
            "<|channel|>",
            "<|message|>",
            "<|end|>",
            "<|start|>",
            "<|call|>",
            "<|constrain|>",
            "<|return|>",
        ],
        good: &[
            "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{\"city\": \"x\"}",
            "<|channel|>analysis<|message|>Need it, é.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{\"city\": \"x\"}",
        ],
        bad: &[
            "<|channel|>final",
            "<|channel|>analysis<|message|>a<|return|>",
            "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{\"city\": 1",
        ],
    },
    Case {
        dialect: Dialect::DeepSeek,
        control: &["<｜end▁of▁sentence｜>"],
        good: &[
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\": \"x\"}<｜tool▁call▁end｜><｜tool▁call▁begin｜>ping<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        ],
        bad: &["<｜tool▁calls▁begin｜><｜tool▁calls▁end｜>"],
    },
    Case {
        dialect: Dialect::Kimi,
        control: &["<|im_end|>", "<|tool_calls_section_begin|>"],
        good: &[
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{\"city\": \"x\"}<|tool_call_end|><|tool_calls_section_end|>",
        ],
        bad: &["Hi"],
    },
    Case {
        dialect: Dialect::MiniMax,
        control: &["<|im_end|>"],
        good: &[
            "<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">x y</parameter>\n<parameter name=\"days\">2</parameter>\n</invoke>\n<invoke name=\"ping\">\n</invoke>\n</minimax:tool_call>",
        ],
        bad: &["<minimax:tool_call>\n</minimax"],
    },
    Case {
        dialect: Dialect::Glm,
        control: &["<|im_end|>"],
        good: &[
            "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>x</arg_value>\n<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call>",
            "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>x</arg_value>\n</tool_call>\n<tool_call>ping\n</tool_call>",
        ],
        bad: &["<tool_call>get_weather\n</tool_call>"],
    },
];

#[test]
fn grammars_and_splitters_agree() {
    for case in &CASES {
        let tokenizer = tokenizer(case.control);
        let c = Constraints::new(&tokenizer).unwrap();
        let parallel = CallOptions { parallel: true, reasoning_open: false };
        let grammar = Grammar::tool_call(case.dialect, &tools(), &ToolChoice::Required, parallel).unwrap();
        for good in case.good {
            assert!(accepts(&c, case.control, &grammar, good), "{good}");
            let mut splitter = OutputFormat::new(case.dialect, &tokenizer).splitter(&tools());
            let mut ended = 0;
            let mut rest = *good;
            let mut events = Vec::new();
            while let Some(c) = rest.chars().next() {
                let token = case.control.iter().position(|t| rest.starts_with(t));
                let n = token.map_or(c.len_utf8(), |i| case.control[i].len());
                events.extend(splitter.push(token.map_or(0, |i| 256 + i as u32), &rest[..n]));
                rest = &rest[n..];
            }
            events.extend(splitter.finish());
            for event in &events {
                assert!(!matches!(event, Event::Text(_) | Event::ToolCallFailed { .. }), "{good}: {event:?}");
                ended += usize::from(matches!(event, Event::ToolCallEnd { .. }));
            }
            assert_eq!(ended, if good.contains("ping") { 2 } else { 1 }, "{good}");
        }
        for bad in case.bad {
            assert!(!accepts(&c, case.control, &grammar, bad), "{bad}");
        }
        let one = Grammar::tool_call(
            case.dialect,
            &tools(),
            &ToolChoice::Named("get_weather".into()),
            CallOptions::default(),
        );
        for good in case.good {
            assert_eq!(
                accepts(&c, case.control, one.as_ref().unwrap(), good),
                !good.contains("ping"),
                "{good}"
            );
        }
    }
}

#[test]
fn a_free_choice_allows_text_or_a_call_but_no_broken_call() {
    let control = ["<|im_end|>"];
    let c = Constraints::new(&tokenizer(&control)).unwrap();
    let g = Grammar::tool_call(Dialect::Hermes, &tools(), &ToolChoice::Auto, CallOptions::default()).unwrap();
    let call = "<tool_call>\n{\"name\": \"ping\", \"arguments\": {}}\n</tool_call>";
    for good in ["", "Just text, é < 3.", call, &format!("First this.\n{call}")] {
        assert!(accepts(&c, &control, &g, good), "{good}");
    }
    for bad in ["text <tool_call>", "a <tool_call>\n{\"name\": \"x"] {
        assert!(!accepts(&c, &control, &g, bad), "{bad}");
    }
}

#[test]
fn open_reasoning_comes_first() {
    for control in [&["<|im_end|>"][..], &["<|im_end|>", "</think>"][..]] {
        let c = Constraints::new(&tokenizer(control)).unwrap();
        let options = CallOptions { parallel: false, reasoning_open: true };
        let g = Grammar::tool_call(Dialect::Hermes, &tools(), &ToolChoice::Required, options).unwrap();
        let call = "<tool_call>\n{\"name\": \"ping\", \"arguments\": {}}\n</tool_call>";
        assert!(accepts(&c, control, &g, &format!("Hm.\n</think>\n\n{call}")));
        assert!(!accepts(&c, control, &g, "Hm.\n"));
        assert!(!accepts(&c, control, &g, "Hm.</think> No."));
    }
}

#[test]
fn what_cannot_be_constrained_is_named() {
    let make = |dialect, tools: &[Tool], choice: &ToolChoice| {
        Grammar::tool_call(dialect, tools, choice, CallOptions::default()).unwrap_err()
    };
    let required = &ToolChoice::Required;
    for dialect in [Dialect::LlamaPythonic, Dialect::Gemma4, Dialect::Plain] {
        assert!(matches!(make(dialect, &tools(), required), GrammarError::Unsupported { .. }));
    }
    assert!(matches!(
        make(Dialect::LlamaJson, &tools(), &ToolChoice::Auto),
        GrammarError::Unsupported { .. }
    ));
    let named = ToolChoice::Named("nothing".into());
    assert_eq!(make(Dialect::Hermes, &tools(), &named), GrammarError::UnknownTool { name: "nothing".into() });
    let odd = [Tool::new("f", json!({"properties": {"a": {"type": "string", "pattern": "x+"}}}))];
    assert!(make(Dialect::QwenXml, &odd, required).to_string().contains("pattern"));
    let bad = [Tool::new("a b\u{1}", json!({}))];
    assert!(matches!(make(Dialect::Hermes, &bad, required), GrammarError::Unsupported { .. }));

    let c = Constraints::new(&tokenizer(&["<|im_end|>"])).unwrap();
    let wrong = [Tool::new("f", json!({"type": "object", "properties": {"a": {"type": "strin"}}}))];
    let grammar = Grammar::tool_call(Dialect::Hermes, &wrong, required, CallOptions::default()).unwrap();
    let error = c.start(&grammar).unwrap_err();
    assert!(
        matches!(&error, GrammarError::Schema { place, .. } if place == "#/tools/f/parameters/properties/a"),
        "{error}"
    );
}
