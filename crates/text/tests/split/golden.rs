//! Turns of tool use in each dialect, as the models write them.

use serde_json::json;
use turbospark_text::Dialect;

use crate::turn;

#[test]
fn harmony_turns_are_split_by_channel() {
    let prompt = "<|start|>user<|message|>Weather?<|end|><|start|>assistant";
    turn(
        Dialect::Harmony,
        prompt,
        "<|channel|>analysis<|message|>Need the {weather}.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{\"city\": \"Köln\", \"days\": 2}<|call|>",
        &json!([{"think": "Need the {weather}."}, {"call": "get_weather", "args": {"city": "Köln", "days": 2}}]),
    );
    let after_tool = format!(
        "{prompt}<|channel|>commentary to=functions.f<|message|>{{}}<|call|><|start|>functions.get_weather to=assistant<|channel|>commentary<|message|>{{}}<|end|><|start|>assistant"
    );
    turn(
        Dialect::Harmony,
        &after_tool,
        "<|channel|>final<|message|>Sunny, < 20 °C.<|return|>",
        &json!([{"text": "Sunny, < 20 °C."}]),
    );
}

#[test]
fn harmony_headers_come_in_many_orders() {
    let args = json!([{"call": "get_weather", "args": {"city": "x"}}]);
    for header in [
        "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>",
        "<|channel|>commentary to=functions.get_weather json<|message|>",
        "<|channel|>commentary to=functions.get_weather<|constrain|>json<|message|>",
        "<|channel|>commentary json to=functions.get_weather<|message|>",
        " to=functions.get_weather<|channel|>commentary <|constrain|>json<|message|>",
        " to=functions.get_weather<|channel|>analysis code<|message|>",
        "<|start|>assistant to=functions.get_weather<|channel|>commentary<|constrain|>json<|message|>",
        "<|channel|>commentary functions.get_weather <|constrain|>json<|message|>",
    ] {
        for end in ["<|call|>", "<|end|>", "", "\n<|call|>"] {
            turn(Dialect::Harmony, "<|start|>assistant", &format!("{header}{{\"city\":\"x\"}}{end}"), &args);
        }
    }
}

#[test]
fn harmony_preambles_are_text_and_calls_without_arguments_are_calls() {
    turn(
        Dialect::Harmony,
        "<|start|>assistant",
        "<|channel|>commentary<|message|>I'll look.<|end|><|start|>assistant<|channel|>commentary to=functions.ping<|message|><|call|><|start|>assistant<|channel|>commentary to=functions.ping<|message|>{}<|call|>",
        &json!([{"text": "I'll look."}, {"call": "ping", "args": {}}, {"call": "ping", "args": {}}]),
    );
    turn(
        Dialect::Harmony,
        "<|start|>assistant<|channel|>final<|message|>",
        "All <|fine.",
        &json!([{"text": "All <|fine."}]),
    );
    turn(
        Dialect::Harmony,
        "<|start|>assistant",
        "Just words, no header.",
        &json!([{"text": "Just words, no header."}]),
    );
}

#[test]
fn hermes_turns() {
    let prompt = "<|im_start|>assistant\n";
    turn(
        Dialect::Hermes,
        prompt,
        "<think>\nThe user wants <tool_call> things.\n</think>\n\nLet me look.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Köln \\\"}</tool_call>\", \"hours\": [1, 2]}}\n</tool_call>\n<tool_call>\n{\"arguments\": {\"a\": {\"b\": null}}, \"name\": \"ping\"}\n</tool_call>",
        &json!([
            {"think": "The user wants <tool_call> things."},
            {"text": "Let me look."},
            {"call": "get_weather", "args": {"city": "Köln \"}</tool_call>", "hours": [1, 2]}},
            {"call": "ping", "args": {"a": {"b": null}}}
        ]),
    );
    turn(
        Dialect::Hermes,
        "<|im_start|>assistant\n<think>\n\n</think>\n\n",
        "It is warm. Use <think> & <tool> tags.\n",
        &json!([{"text": "It is warm. Use <think> & <tool> tags.\n"}]),
    );
    turn(
        Dialect::Hermes,
        "<|im_start|>assistant\n<think>\n",
        "Warm.\n</think>\n\n<tool_call>[{\"name\":\"ping\"},{\"name\":\"ping\",\"arguments\":\"{\\\"a\\\":1}\"}]</tool_call>",
        &json!([{"think": "Warm."}, {"call": "ping", "args": {}}, {"call": "ping", "args": {"a": 1}}]),
    );
}

#[test]
fn hermes_repairs_line_breaks_in_strings() {
    turn(
        Dialect::Hermes,
        "",
        "<tool_call>{\"name\": \"write_file\", \"arguments\": {\"content\": \"a\nb\tc\"}}</tool_call>Done.",
        &json!([{"call": "write_file", "args": {"content": "a\nb\tc"}}, {"text": "Done."}]),
    );
}

#[test]
fn qwen_tags_are_typed_by_the_schema() {
    turn(
        Dialect::QwenXml,
        "<|im_start|>assistant\n<think>\n",
        "Hm.\n</think>\n\nLooking.\n\n<tool_call>\n<function=get_weather>\n<parameter=city>\n5\n</parameter>\n<parameter=days>\n3\n</parameter>\n<parameter=exact>\nTrue\n</parameter>\n<parameter=hours>\n[1, 2]\n</parameter>\n<parameter=where>\n{'a': None}\n</parameter>\n<parameter=note>\nnull\n</parameter>\n</function>\n</tool_call>",
        &json!([
            {"think": "Hm."}, {"text": "Looking."},
            {"call": "get_weather", "args": {"city": "5", "days": 3, "exact": true, "hours": [1, 2], "where": {"a": null}, "note": null}}
        ]),
    );
    turn(
        Dialect::QwenXml,
        "",
        "<tool_call>\n<function=write_file>\n<parameter=content>\n<a>\"x\"</a>\n\n\\n</param>\n\n</parameter>\n</function>\n<function=ping>\n</function>\n</tool_call>\n<tool_call>\n{\"name\": \"ping\", \"arguments\": {}}\n</tool_call>",
        &json!([
            {"call": "write_file", "args": {"content": "<a>\"x\"</a>\n\n\\n</param>\n"}},
            {"call": "ping", "args": {}}, {"call": "ping", "args": {}}
        ]),
    );
}

#[test]
fn llama_json_needs_no_marker_but_a_known_name() {
    let call = json!([{"call": "get_weather", "args": {"city": "x"}}]);
    for raw in [
        "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"x\"}}",
        "<|python_tag|>{\"type\": \"function\", \"name\": \"get_weather\", \"parameters\": {\"city\": \"x\"}}",
        "\n\n{\"type\": \"function\", \"name\": \"get_weather\", \"parameters\": {\"city\": \"x\"}}",
    ] {
        turn(Dialect::LlamaJson, "", raw, &call);
    }
    turn(
        Dialect::LlamaJson,
        "",
        "{\"name\": \"ping\", \"parameters\": {}}; {\"name\": \"ping\", \"parameters\": {}}",
        &json!([{"call": "ping", "args": {}}, {"call": "ping", "args": {}}]),
    );
    for raw in ["{\"name\": \"Bob\", \"age\": 5}", "{\"a\": [1, {}]} is JSON", "{", "[1, 2] are numbers"] {
        turn(Dialect::LlamaJson, "", raw, &json!([{ "text": raw }]));
    }
    let mention = "Write {\"name\": \"ping\", \"parameters\": {}} to call.";
    turn(Dialect::LlamaJson, "", mention, &json!([{ "text": mention }]));
}

#[test]
fn llama_pythonic_lists_are_calls() {
    turn(
        Dialect::LlamaPythonic,
        "",
        "[get_weather(city='K, \"ö\\'ln\"', days=2, hours=[1, (2, 3)], where={'a': True}), ping()]",
        &json!([
            {"call": "get_weather", "args": {"city": "K, \"ö'ln\"", "days": 2, "hours": [1, [2, 3]], "where": {"a": true}}},
            {"call": "ping", "args": {}}
        ]),
    );
    turn(
        Dialect::LlamaPythonic,
        "",
        "<|python_start|>[ping()]<|python_end|>",
        &json!([{"call": "ping", "args": {}}]),
    );
    turn(
        Dialect::LlamaJson,
        "",
        "<|python_tag|>brave_search.call(query=\"rust\")",
        &json!([{"call": "brave_search", "args": {"query": "rust"}}]),
    );
}

#[test]
fn mistral_has_two_forms() {
    turn(
        Dialect::Mistral,
        "[INST]Weather?[/INST]",
        "[TOOL_CALLS][{\"name\": \"get_weather\", \"arguments\": {\"city\": \"]\"}, \"id\": \"abc123456\"}, {\"name\": \"ping\", \"arguments\": {}}]",
        &json!([{"call": "get_weather", "args": {"city": "]"}}, {"call": "ping", "args": {}}]),
    );
    turn(
        Dialect::Mistral,
        "",
        "[THINK]Hm [x].[/THINK]I look.[TOOL_CALLS]get_weather[ARGS]{\"city\": \"x\"}[TOOL_CALLS]ping[CALL_ID]abc123456[ARGS]{}",
        &json!([
            {"think": "Hm [x]."}, {"text": "I look."},
            {"call": "get_weather", "args": {"city": "x"}}, {"call": "ping", "id": "abc123456", "args": {}}
        ]),
    );
    turn(
        Dialect::Mistral,
        "",
        "[1] is a footnote, [TOOLS] too.",
        &json!([{"text": "[1] is a footnote, [TOOLS] too."}]),
    );
}

#[test]
fn gemma3_writes_what_its_prompt_taught() {
    let call = json!([{"call": "get_weather", "args": {"city": "x"}}]);
    for raw in [
        "```tool_code\nget_weather(city=\"x\")\n```",
        "```json\n{\"name\": \"get_weather\", \"parameters\": {\"city\": \"x\"}}\n```",
        "[get_weather(city='x')]",
        "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"x\"}}",
    ] {
        turn(Dialect::Gemma3, "", raw, &call);
    }
    let code = "```json\n{\"a\": 1}\n```\nis JSON.";
    turn(Dialect::Gemma3, "", code, &json!([{ "text": code }]));
}

#[test]
fn gemma4_writes_bare_keys_and_marked_strings() {
    turn(
        Dialect::Gemma4,
        "<|turn>model\n",
        "<|channel>thought\nHm.\n<channel|>I look.<|tool_call>call:get_weather{city:<|\"|>a, {b}: \"c\"<|\"|>,days:2,hours:[1,2],where:{a:true,b:[<|\"|>x<|\"|>]}}<tool_call|><|tool_call>call:ping{}<tool_call|>",
        &json!([
            {"think": "Hm."}, {"text": "I look."},
            {"call": "get_weather", "args": {"city": "a, {b}: \"c\"", "days": 2, "hours": [1, 2], "where": {"a": true, "b": ["x"]}}},
            {"call": "ping", "args": {}}
        ]),
    );
    turn(
        Dialect::Gemma4,
        "",
        "<start_function_call>call:get_weather{city:<escape>x<escape>}<end_function_call><start_function_response>",
        &json!([{"call": "get_weather", "args": {"city": "x"}}]),
    );
}

#[test]
fn deepseek_versions() {
    turn(
        Dialect::DeepSeek,
        "<｜Assistant｜><think>\n",
        "Hm.</think>Looking.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{\"city\": \"`x\"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>ping\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        &json!([
            {"think": "Hm."}, {"text": "Looking."},
            {"call": "get_weather", "args": {"city": "`x"}}, {"call": "ping", "args": {}}
        ]),
    );
    turn(
        Dialect::DeepSeek,
        "<｜Assistant｜></think>",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\": \"x\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        &json!([{"call": "get_weather", "args": {"city": "x"}}]),
    );
    turn(
        Dialect::DeepSeekTags,
        "<｜Assistant｜><think>",
        "a</think>\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"get_weather\">\n<｜DSML｜parameter name=\"city\" string=\"true\">12</｜DSML｜parameter>\n<｜DSML｜parameter name=\"days\" string=\"false\">12</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
        &json!([{"think": "a"}, {"call": "get_weather", "args": {"city": "12", "days": 12}}]),
    );
}

#[test]
fn kimi_ids_carry_the_name() {
    turn(
        Dialect::Kimi,
        "",
        "I look.<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{\"city\": \"x\"}<|tool_call_end|><|tool_call_begin|>functions.ping:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
        &json!([
            {"text": "I look."},
            {"call": "get_weather", "id": "functions.get_weather:0", "args": {"city": "x"}},
            {"call": "ping", "id": "functions.ping:1", "args": {}}
        ]),
    );
}

#[test]
fn minimax_tags() {
    turn(
        Dialect::MiniMax,
        "]~b]ai\n<think>\n",
        "Hm.\n</think>\n\nLooking.\n<minimax:tool_call>\n<invoke name=\"get_weather\">\n<parameter name=\"city\">São \"Paulo\"</parameter>\n<parameter name=\"days\">2</parameter>\n</invoke>\n<invoke name=\"ping\">\n</invoke>\n</minimax:tool_call>",
        &json!([
            {"think": "Hm."}, {"text": "Looking."},
            {"call": "get_weather", "args": {"city": "São \"Paulo\"", "days": 2}}, {"call": "ping", "args": {}}
        ]),
    );
}

#[test]
fn glm_tags() {
    turn(
        Dialect::Glm,
        "<|assistant|>",
        "\n<think>Hm.</think>\nLooking.\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>7</arg_value>\n<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call>\n<tool_call>ping\n</tool_call>",
        &json!([
            {"think": "Hm."}, {"text": "Looking."},
            {"call": "get_weather", "args": {"city": "7", "days": 2}}, {"call": "ping", "args": {}}
        ]),
    );
    turn(
        Dialect::Glm,
        "<|assistant|><think>",
        "Hm.</think><tool_call>get_weather<arg_key>city</arg_key><arg_value>a\n</arg_value></tool_call>",
        &json!([{"think": "Hm."}, {"call": "get_weather", "args": {"city": "a\n"}}]),
    );
}
