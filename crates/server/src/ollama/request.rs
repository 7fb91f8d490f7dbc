//! `/api/chat`, `/api/generate` and `/api/embed`: from the request's JSON to an [`Ask`].
//!
//! Invariant: what is read has an effect or is documented to have none; everything else is refused by name.

use serde_json::{Map, Value};
use turbospark_text::Message;

use super::messages;
use super::options::{self, Options};
use crate::fields::Fields;
use crate::{Ask, Format, Prompt, Refusal, ToolUse};

/// A request that can be answered.
#[derive(Debug)]
pub(crate) struct Request {
    /// The model's name.
    pub(crate) model: String,
    /// What to answer; `None` where the model is only to be loaded.
    pub(crate) ask: Option<Ask>,
    /// Whether parts are wanted as they come.
    pub(crate) stream: bool,
}

/// Reads `/api/chat` for a model with room for `context` tokens.
///
/// # Errors
/// [`Refusal::Bad`] with the field that is wrong, missing or without effect.
pub(crate) fn chat(mut fields: Fields, context: impl Fn(&str) -> Option<usize>) -> Result<Request, Refusal> {
    let common = Common::take(&mut fields, context)?;
    let list = fields.list("messages")?.unwrap_or_default();
    let tools = messages::tools(fields.list("tools")?.unwrap_or_default())?;
    fields.finish()?;
    if list.is_empty() {
        return Ok(Request { model: common.model, ask: None, stream: common.stream });
    }
    let messages = messages::messages(list)?;
    Ok(common.request(|extras| Prompt::Chat {
        messages,
        tools,
        tool_use: ToolUse::Auto,
        parallel: true,
        extras,
    }))
}

/// Reads `/api/generate`.
///
/// # Errors
/// As [`chat`].
pub(crate) fn generate(
    mut fields: Fields,
    context: impl Fn(&str) -> Option<usize>,
) -> Result<Request, Refusal> {
    let common = Common::take(&mut fields, context)?;
    let prompt = fields.text("prompt")?.unwrap_or_default();
    let system = fields.text("system")?.unwrap_or_default();
    let raw = fields.flag("raw")?.unwrap_or(false);
    fields.refuse("suffix", "no model here fills in the middle; leave it out")?;
    fields.refuse(
        "template",
        "the model's own template is used; send a finished prompt with \"raw\": true instead",
    )?;
    fields.refuse("images", "the model reads text alone")?;
    fields
        .refuse("context", "earlier answers are not given as tokens; send the conversation to /api/chat")?;
    if raw && !system.is_empty() {
        return Err(fields.wrong("system", "has no effect on a raw prompt; write it into the prompt"));
    }
    fields.finish()?;
    if prompt.is_empty() {
        return Ok(Request { model: common.model, ask: None, stream: common.stream });
    }
    Ok(common.request(|extras| {
        if raw {
            return Prompt::Text(prompt);
        }
        let mut messages = Vec::new();
        if !system.is_empty() {
            messages.push(Message::new("system", system));
        }
        messages.push(Message::new("user", prompt));
        Prompt::Chat { messages, tools: Vec::new(), tool_use: ToolUse::None, parallel: false, extras }
    }))
}

/// What both have.
struct Common {
    model: String,
    stream: bool,
    options: Options,
    format: Format,
    logprobs: Option<usize>,
    extras: Map<String, Value>,
}

impl Common {
    fn take(fields: &mut Fields, context: impl Fn(&str) -> Option<usize>) -> Result<Common, Refusal> {
        let model = fields.required_text("model")?;
        let stream = fields.flag("stream")?.unwrap_or(true);
        let options = options::take(fields, context(&model))?;
        keep_alive(fields)?;
        // They say what happens when the context is full: it isn't shifted, and a prompt that doesn't fit is refused.
        for field in ["truncate", "shift"] {
            if fields.flag(field)? == Some(true) {
                return Err(
                    fields.wrong(field, "a prompt is never cut and the context never shifted; leave it out")
                );
            }
        }
        let logprobs = fields.flag("logprobs")?.unwrap_or(false);
        let top = fields.count("top_logprobs")?;
        if top.is_some_and(|top| top > 20) {
            return Err(fields.wrong("top_logprobs", "must be from 0 to 20"));
        }
        if top.is_some_and(|top| top > 0) && !logprobs {
            return Err(fields.wrong("top_logprobs", "needs \"logprobs\": true"));
        }
        let logprobs = logprobs.then(|| top.unwrap_or(0));
        let format = match fields.take("format") {
            None => Format::Text,
            Some(Value::String(s)) if s.is_empty() => Format::Text,
            Some(Value::String(s)) if s == "json" => Format::JsonObject,
            Some(schema @ Value::Object(_)) => Format::JsonSchema(schema),
            Some(_) => return Err(fields.wrong("format", "must be \"json\" or a JSON schema")),
        };
        let extras = think(fields)?;
        Ok(Common { model, stream, options, format, logprobs, extras })
    }

    fn request(self, prompt: impl FnOnce(Map<String, Value>) -> Prompt) -> Request {
        let ask = Ask {
            prompt: prompt(self.extras),
            sampling: self.options.sampling,
            max_tokens: self.options.max_tokens,
            stop: self.options.stop,
            logprobs: self.logprobs,
            format: self.format,
        };
        Request { model: self.model, ask: Some(ask), stream: self.stream }
    }
}

fn think(fields: &mut Fields) -> Result<Map<String, Value>, Refusal> {
    let mut extras = Map::new();
    match fields.take("think") {
        None => {}
        Some(Value::Bool(on)) => {
            extras.insert("enable_thinking".to_owned(), on.into());
        }
        Some(Value::String(effort)) if matches!(effort.as_str(), "low" | "medium" | "high") => {
            extras.insert("enable_thinking".to_owned(), true.into());
            extras.insert("reasoning_effort".to_owned(), effort.into());
        }
        Some(_) => return Err(fields.wrong("think", "must be a boolean, \"low\", \"medium\" or \"high\"")),
    }
    Ok(extras)
}

/// Seconds or a text like `5m`. How long models stay is the server's to say, so it is only looked at.
fn keep_alive(fields: &mut Fields) -> Result<(), Refusal> {
    let fine = match fields.take("keep_alive") {
        None | Some(Value::Number(_)) => true,
        Some(Value::String(text)) => {
            let text = text.trim_start_matches('-');
            text.starts_with(|c: char| c.is_ascii_digit())
                && text.chars().all(|c| c.is_ascii_digit() || ".hmsnuµ".contains(c))
        }
        Some(_) => false,
    };
    if fine { Ok(()) } else { Err(fields.wrong("keep_alive", "must be seconds, or a text like \"5m\"")) }
}

/// A request for embeddings.
#[derive(Debug, PartialEq)]
pub(crate) struct EmbedRequest {
    /// The model's name.
    pub(crate) model: String,
    /// The texts.
    pub(crate) input: Vec<String>,
}

/// Reads `/api/embed`, or the older `/api/embeddings` whose field is `prompt`.
///
/// # Errors
/// As [`chat`].
pub(crate) fn embed(mut fields: Fields, field: &str) -> Result<EmbedRequest, Refusal> {
    let model = fields.required_text("model")?;
    let input = match fields.required(field)? {
        Value::String(text) => vec![text],
        Value::Array(_) if field == "prompt" => return Err(fields.wrong(field, "must be a string")),
        other => serde_json::from_value(other)
            .map_err(|_| fields.wrong(field, "must be a string or a list of strings"))?,
    };
    keep_alive(&mut fields)?;
    if fields.flag("truncate")? == Some(true) {
        return Err(fields.wrong("truncate", "a text is never cut; leave it out"));
    }
    fields.refuse("dimensions", "embeddings have the model's length; leave it out")?;
    if let Some(options) = fields.object("options")? {
        options.finish()?;
    }
    fields.finish()?;
    Ok(EmbedRequest { model, input })
}
