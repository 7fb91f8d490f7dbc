//! `/v1/messages`: from the request's JSON to an [`Ask`].
//!
//! Invariant: what is read has an effect or is documented to have none; everything else is refused by name.

use serde_json::{Map, Value, json};
use turbospark_engine::SamplingParams;

use super::content;
use crate::fields::Fields;
use crate::{Ask, Format, Prompt, Refusal, ToolUse, ids};

/// Most stop sequences.
const STOPS: usize = 16;

/// A request that can be answered.
#[derive(Debug)]
pub(crate) struct Request {
    /// The model's name.
    pub(crate) model: String,
    /// What to answer.
    pub(crate) ask: Ask,
    /// Whether events are wanted.
    pub(crate) stream: bool,
    /// Whether the client asked for thinking blocks.
    pub(crate) thinking: bool,
    /// Whom the request is for: clients get turns.
    pub(crate) user: Option<String>,
}

/// Reads a request for an answer.
///
/// # Errors
/// [`Refusal::Bad`] with the field that is wrong, missing or without effect.
pub(crate) fn messages(mut fields: Fields) -> Result<Request, Refusal> {
    let max_tokens = fields.required_count("max_tokens")?;
    if max_tokens == 0 {
        return Err(fields.wrong("max_tokens", "must be at least 1"));
    }
    let stream = fields.flag("stream")?.unwrap_or(false);
    let stop = fields.texts("stop_sequences", STOPS)?;
    // The API's own defaults: temperature 1 and the whole distribution.
    let sampling = SamplingParams {
        temperature: fields.number_in("temperature", 0.0, 1.0)?.unwrap_or(1.0),
        top_p: fields.number_in("top_p", f32::MIN_POSITIVE, 1.0)?.unwrap_or(1.0),
        top_k: fields.count("top_k")?.unwrap_or(0),
        min_p: 0.0,
        seed: ids::random(),
        ..SamplingParams::default()
    };
    let user = metadata(&mut fields)?;
    if let Some(tier) = fields.text("service_tier")?
        && !matches!(tier.as_str(), "auto" | "standard_only")
    {
        return Err(fields.wrong("service_tier", "must be \"auto\" or \"standard_only\""));
    }
    let mut format = Format::Text;
    let mut effort = None;
    if let Some(mut config) = fields.object("output_config")? {
        effort = match config.text("effort")?.as_deref() {
            None => None,
            Some(word @ ("low" | "medium" | "high")) => Some(word.to_owned()),
            // Templates know three degrees.
            Some("xhigh" | "max") => Some("high".to_owned()),
            Some(_) => {
                return Err(
                    config.wrong("effort", "must be \"low\", \"medium\", \"high\", \"xhigh\" or \"max\"")
                );
            }
        };
        if let Some(wanted) = config.object("format")? {
            format = output_format(wanted)?;
        }
        config.finish()?;
    }
    if let Some(wanted) = fields.object("output_format")? {
        format = output_format(wanted)?;
    }
    let (model, prompt, thinking) = prompt(fields, Some(max_tokens), effort)?;
    let ask = Ask { prompt, sampling, max_tokens: Some(max_tokens), stop, logprobs: None, format };
    Ok(Request { model, ask, stream, thinking, user })
}

/// Reads a request to count a prompt's tokens: the model and the prompt.
///
/// # Errors
/// As [`messages`].
pub(crate) fn count_tokens(fields: Fields) -> Result<(String, Prompt), Refusal> {
    let (model, prompt, _) = prompt(fields, None, None)?;
    Ok((model, prompt))
}

/// What both requests have; `fields` must have nothing else left.
fn prompt(
    mut fields: Fields,
    max_tokens: Option<usize>,
    effort: Option<String>,
) -> Result<(String, Prompt, bool), Refusal> {
    let model = fields.required_text("model")?;
    let mut messages = content::system(fields.take("system").unwrap_or(Value::Null))?;
    messages.extend(content::messages(fields.required_list("messages")?)?);
    let tools = tools(fields.list("tools")?.unwrap_or_default())?;
    let (tool_use, parallel) = tool_choice(&mut fields, &tools)?;
    let (thinking, extras) = thinking(&mut fields, max_tokens, effort)?;
    fields.ignore(&["cache_control"]);
    fields.finish()?;
    Ok((model, Prompt::Chat { messages, tools, tool_use, parallel, extras }, thinking))
}

fn metadata(fields: &mut Fields) -> Result<Option<String>, Refusal> {
    let Some(mut metadata) = fields.object("metadata")? else { return Ok(None) };
    let user = metadata.text("user_id")?;
    metadata.finish()?;
    Ok(user)
}

fn output_format(mut format: Fields) -> Result<Format, Refusal> {
    let kind = format.required_text("type")?;
    if kind != "json_schema" {
        return Err(format.wrong("type", "must be \"json_schema\""));
    }
    let schema = format.required("schema")?;
    format.finish()?;
    Ok(Format::JsonSchema(schema))
}

/// Tools in the neutral form.
fn tools(list: Vec<Value>) -> Result<Vec<Value>, Refusal> {
    let one = |(i, tool): (usize, Value)| {
        let mut tool = Fields::of(format!("tools[{i}]"), tool)?;
        let kind = tool.text("type")?;
        if kind.as_deref().is_some_and(|kind| kind != "custom") {
            let what = "only tools that the client runs (\"custom\", with an input_schema) are supported";
            return Err(tool.wrong("type", what));
        }
        let name = tool.required_text("name")?;
        if name.is_empty() {
            return Err(tool.wrong("name", "is empty"));
        }
        let schema = tool.required("input_schema")?;
        if !schema.is_object() {
            return Err(tool.wrong("input_schema", "must be a JSON schema, an object"));
        }
        let mut function = Map::new();
        function.insert("name".to_owned(), name.into());
        if let Some(description) = tool.text("description")? {
            function.insert("description".to_owned(), description.into());
        }
        function.insert("parameters".to_owned(), schema);
        if let Some(strict) = tool.flag("strict")? {
            function.insert("strict".to_owned(), strict.into());
        }
        // Input is streamed as it comes in any case.
        tool.ignore(&["cache_control", "eager_input_streaming"]);
        tool.finish()?;
        Ok(json!({"type": "function", "function": function}))
    };
    list.into_iter().enumerate().map(one).collect()
}

/// Which tools are used, and whether several may be.
fn tool_choice(fields: &mut Fields, tools: &[Value]) -> Result<(ToolUse, bool), Refusal> {
    let Some(mut choice) = fields.object("tool_choice")? else { return Ok((ToolUse::Auto, true)) };
    let kind = choice.required_text("type")?;
    let alone = choice.flag("disable_parallel_tool_use")?.unwrap_or(false);
    let tool_use = match kind.as_str() {
        "auto" => ToolUse::Auto,
        "none" => ToolUse::None,
        "any" if tools.is_empty() => return Err(choice.wrong("type", "\"any\" needs `tools`")),
        "any" => ToolUse::Required,
        "tool" => {
            let name = choice.required_text("name")?;
            if !tools.iter().any(|tool| tool["function"]["name"] == name.as_str()) {
                return Err(choice.wrong("name", format!("no tool is called {name:?}")));
            }
            ToolUse::Named(name)
        }
        _ => return Err(choice.wrong("type", "must be \"auto\", \"any\", \"tool\" or \"none\"")),
    };
    choice.finish()?;
    Ok((tool_use, !alone))
}

/// Whether thinking blocks are wanted, and what the template is told.
fn thinking(
    fields: &mut Fields,
    max_tokens: Option<usize>,
    effort: Option<String>,
) -> Result<(bool, Map<String, Value>), Refusal> {
    let mut extras = Map::new();
    let mut enabled = false;
    let mut effort = effort;
    if let Some(mut thinking) = fields.object("thinking")? {
        match thinking.required_text("type")?.as_str() {
            "disabled" => {}
            "adaptive" => enabled = true,
            "enabled" => {
                enabled = true;
                let budget = thinking.required_count("budget_tokens")?;
                if budget < 1024 {
                    return Err(thinking.wrong("budget_tokens", "must be at least 1024"));
                }
                if max_tokens.is_some_and(|most| budget >= most) {
                    return Err(thinking.wrong("budget_tokens", "must be less than `max_tokens`"));
                }
                // Templates know degrees, not counts.
                let degree = match budget {
                    0..=2048 => "low",
                    2049..=8192 => "medium",
                    _ => "high",
                };
                effort.get_or_insert_with(|| degree.to_owned());
            }
            _ => return Err(thinking.wrong("type", "must be \"enabled\", \"adaptive\" or \"disabled\"")),
        }
        thinking.finish()?;
    }
    extras.insert("enable_thinking".to_owned(), enabled.into());
    if let Some(effort) = effort {
        extras.insert("reasoning_effort".to_owned(), effort.into());
    }
    Ok((enabled, extras))
}
