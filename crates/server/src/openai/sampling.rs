//! Fields about sampling, formats and tools, as several endpoints have them.

use serde_json::{Map, Value};
use turbospark_engine::SamplingParams;

use crate::{Fields, Format, Refusal, ToolUse, ids};

/// Answers to one request.
pub(super) const MOST_ANSWERS: usize = 16;
/// Stop strings of one request.
pub(super) const MOST_STOPS: usize = 16;

/// Reads how tokens are chosen. OpenAI's defaults are temperature 1 and the whole distribution.
pub(super) fn sampling(fields: &mut Fields) -> Result<SamplingParams, Refusal> {
    Ok(SamplingParams {
        temperature: fields.number_in("temperature", 0.0, 2.0)?.unwrap_or(1.0),
        top_p: fields.number_in("top_p", 0.0, 1.0)?.unwrap_or(1.0).max(f32::MIN_POSITIVE),
        top_k: fields.count("top_k")?.unwrap_or(0),
        min_p: fields.number_in("min_p", 0.0, 1.0)?.unwrap_or(0.0),
        repetition_penalty: fields.number("repetition_penalty")?.unwrap_or(1.0),
        presence_penalty: fields.number_in("presence_penalty", -2.0, 2.0)?.unwrap_or(0.0),
        frequency_penalty: fields.number_in("frequency_penalty", -2.0, 2.0)?.unwrap_or(0.0),
        logit_bias: logit_bias(fields)?,
        seed: fields.seed("seed")?.unwrap_or_else(ids::random),
    })
}

fn logit_bias(fields: &mut Fields) -> Result<Vec<(u32, f32)>, Refusal> {
    let Some(biases) = fields.object("logit_bias")? else { return Ok(Vec::new()) };
    let mut out = Vec::new();
    for (token, bias) in biases.rest() {
        let wrong = |message| Err(fields.wrong("logit_bias", message));
        let Ok(id) = token.parse() else { return wrong(format!("{token:?} is no token id")) };
        match bias.as_f64() {
            // -100 is a ban by OpenAI's own description.
            Some(bias) if bias <= -100.0 => out.push((id, f32::NEG_INFINITY)),
            Some(bias) if bias <= 100.0 => out.push((id, bias as f32)),
            _ => return wrong(format!("the bias of token {token} must be a number from -100 to 100")),
        }
    }
    Ok(out)
}

/// Reads `name`, a format as chat completions have it: `{"type": "json_schema", "json_schema": {"schema": …}}`.
pub(super) fn format(fields: &mut Fields, name: &str) -> Result<Format, Refusal> {
    let Some(mut format) = fields.object(name)? else { return Ok(Format::Text) };
    let kind = format.required_text("type")?;
    let found = match kind.as_str() {
        "text" => Format::Text,
        "json_object" => Format::JsonObject,
        "json_schema" => {
            // The Responses API has the schema's fields beside the type.
            let mut inner = match format.object("json_schema")? {
                Some(inner) => inner,
                None => std::mem::replace(&mut format, Fields::of(name, Value::Object(Map::new()))?),
            };
            // Schemas are always followed, whether strict or not.
            inner.ignore(&["name", "description"]);
            inner.flag("strict")?;
            let schema =
                inner.take("schema").ok_or_else(|| inner.wrong("schema", "this field is required"))?;
            inner.finish()?;
            Format::JsonSchema(schema)
        }
        "regex" => Format::Regex(format.required_text("pattern")?),
        "grammar" | "lark" => Format::Lark(format.required_text("grammar")?),
        _ => {
            let why = "expected text, json_object, json_schema, regex or grammar";
            return Err(format.wrong("type", why));
        }
    };
    format.finish()?;
    Ok(found)
}

/// Tools of a request in the neutral form, and their use.
pub(super) struct Tools {
    pub(super) tools: Vec<Value>,
    pub(super) tool_use: ToolUse,
    pub(super) parallel: bool,
}

/// Reads `tools`, `tool_choice` and `parallel_tool_calls`; tools are `{"type": "function", "function": {…}}` or, as the
/// Responses API writes them, without the inner object.
pub(super) fn tools(fields: &mut Fields) -> Result<Tools, Refusal> {
    let mut tools = Vec::new();
    for (i, tool) in fields.list("tools")?.unwrap_or_default().into_iter().enumerate() {
        let mut tool = Fields::of(format!("tools[{i}]"), tool)?;
        if tool.required_text("type")? != "function" {
            return Err(tool.wrong("type", "only function tools are supported"));
        }
        let mut function = match tool.object("function")? {
            Some(function) => {
                tool.finish()?;
                function
            }
            None => tool,
        };
        let mut neutral = Map::new();
        let name = function.required_text("name")?;
        neutral.insert("name".to_owned(), name.into());
        if let Some(description) = function.text("description")? {
            neutral.insert("description".to_owned(), description.into());
        }
        let parameters = function.take("parameters");
        if parameters.as_ref().is_some_and(|p| !p.is_object()) {
            return Err(function.wrong("parameters", "expected a JSON schema, an object"));
        }
        let empty = || serde_json::json!({"type": "object", "properties": {}});
        neutral.insert("parameters".to_owned(), parameters.unwrap_or_else(empty));
        if let Some(strict) = function.flag("strict")? {
            neutral.insert("strict".to_owned(), strict.into());
        }
        function.finish()?;
        tools.push(serde_json::json!({"type": "function", "function": neutral}));
    }
    let tool_use = tool_use(fields, tools.is_empty())?;
    let parallel = fields.flag("parallel_tool_calls")?.unwrap_or(true);
    Ok(Tools { tools, tool_use, parallel })
}

fn tool_use(fields: &mut Fields, no_tools: bool) -> Result<ToolUse, Refusal> {
    let name = "tool_choice";
    let tool_use = match fields.take(name) {
        None => ToolUse::Auto,
        Some(Value::String(choice)) => match choice.as_str() {
            "auto" => ToolUse::Auto,
            "none" => ToolUse::None,
            "required" => ToolUse::Required,
            _ => return Err(fields.wrong(name, "expected auto, none, required or a function")),
        },
        Some(value) => {
            let mut choice = Fields::of(name, value)?;
            if choice.required_text("type")? != "function" {
                return Err(choice.wrong("type", "expected function"));
            }
            match choice.object("function")? {
                Some(mut function) => ToolUse::Named(function.required_text("name")?),
                None => ToolUse::Named(choice.required_text("name")?),
            }
        }
    };
    if no_tools && matches!(tool_use, ToolUse::Required | ToolUse::Named(_)) {
        return Err(fields.wrong(name, "there are no tools to call"));
    }
    Ok(tool_use)
}

/// Reads what the template is told: `reasoning_effort` and `chat_template_kwargs`.
pub(super) fn extras(fields: &mut Fields) -> Result<Map<String, Value>, Refusal> {
    let mut extras = fields.object("chat_template_kwargs")?.map(Fields::rest).unwrap_or_default();
    if let Some(reserved) =
        ["messages", "tools", "add_generation_prompt"].iter().find(|n| extras.contains_key(**n))
    {
        return Err(fields.wrong("chat_template_kwargs", format!("{reserved} is set by the request itself")));
    }
    if let Some(effort) = fields.text("reasoning_effort")? {
        effort_extras(&effort, &mut extras).map_err(|why| fields.wrong("reasoning_effort", why))?;
    }
    Ok(extras)
}

/// What a reasoning effort is to templates: some read the word, others only whether to think at all.
pub(super) fn effort_extras(effort: &str, extras: &mut Map<String, Value>) -> Result<(), &'static str> {
    match effort {
        "none" => {
            extras.insert("enable_thinking".to_owned(), false.into());
        }
        "minimal" | "low" | "medium" | "high" | "xhigh" => {
            extras.insert("enable_thinking".to_owned(), true.into());
            let word = match effort {
                "minimal" => "low",
                "xhigh" => "high",
                word => word,
            };
            extras.insert("reasoning_effort".to_owned(), word.into());
        }
        _ => return Err("expected none, minimal, low, medium or high"),
    }
    Ok(())
}
