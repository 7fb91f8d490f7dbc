//! From what is asked to what the scheduler takes: the prompt's tokens, the constraint, and how to take the answer apart.

use std::sync::Arc;

use serde_json::Value;
use turbospark_engine::GenerateOptions;
use turbospark_text::{
    CallOptions, Dialect, Grammar, GrammarError, Specials, StopStrings, TextError, Tool, ToolChoice,
};

use super::constraint::{After, Guided};
use super::{Model, Taking};
use crate::{Ask, Format, Prompt, Refusal, ToolUse};

/// A request that can be submitted.
pub(super) struct Ready {
    pub(super) tokens: Vec<u32>,
    pub(super) options: GenerateOptions,
    pub(super) taking: Taking,
}

/// A prompt as tokens.
pub(super) struct Rendered {
    pub(super) tokens: Vec<u32>,
    /// The text of a conversation's prompt.
    text: Option<String>,
    tools: Vec<Tool>,
}

/// Renders and tokenises a prompt.
pub(super) fn rendered(model: &Model, prompt: &Prompt) -> Result<Rendered, Refusal> {
    let encode = |text: &str| {
        let tokens = model.tokenizer().encode(text, Specials::ALL);
        tokens.map_err(|e| Refusal::Bad { field: None, message: e.to_string() })
    };
    match prompt {
        Prompt::Tokens(tokens) => Ok(Rendered { tokens: tokens.clone(), text: None, tools: Vec::new() }),
        Prompt::Text(text) => Ok(Rendered { tokens: encode(text)?, text: None, tools: Vec::new() }),
        Prompt::Chat { messages, tools, tool_use, extras, .. } => {
            let template = model.template.as_ref().ok_or_else(|| {
                Refusal::bad(
                    "messages",
                    "this model's file has no chat template: send the prompt as text instead",
                )
            })?;
            // Tools that may not be used are not told: a model that does not know them does not call them.
            let offered = if *tool_use == ToolUse::None { &[][..] } else { tools };
            let definitions = (!offered.is_empty()).then(|| Value::Array(offered.to_vec()));
            let text = template
                .render(&template.prepared(messages), definitions.as_ref(), true, extras)
                .map_err(|e| template_refusal(&e))?;
            let tools = definitions.map(|d| Tool::from_definitions(&d)).unwrap_or_default();
            Ok(Rendered { tokens: encode(&text)?, text: Some(text), tools })
        }
    }
}

fn template_refusal(error: &TextError) -> Refusal {
    Refusal::bad("messages", error.to_string())
}

/// Makes everything that a request needs.
pub(super) fn ready(model: &Arc<Model>, ask: Ask) -> Result<Ready, Refusal> {
    let Rendered { tokens, text, tools } = rendered(model, &ask.prompt)?;
    let mut options = GenerateOptions {
        sampling: ask.sampling,
        max_tokens: ask.max_tokens,
        logprobs: ask.logprobs,
        ..GenerateOptions::default()
    };
    let dialect = model.format.dialect();
    let (mut splitter, mut parallel, mut stops, mut reasoning) =
        (None, true, StopStrings::new([""; 0]), false);
    let mut grammar = format_grammar(&ask.format)?.map(|g| (g, After::Nothing));
    if let (Prompt::Chat { tool_use, parallel: several, .. }, Some(text)) = (&ask.prompt, &text) {
        reasoning = dialect.opens_reasoning(text);
        if let Some((_, after)) = &mut grammar {
            *after = after_reasoning(dialect, reasoning);
        }
        if let Some(calls) = call_grammar(dialect, &tools, tool_use, *several, reasoning)? {
            if grammar.is_some() {
                let why =
                    "a format can't be kept beside tools that must be called or are strict: leave one out";
                return Err(Refusal::bad("response_format", why));
            }
            grammar = Some((calls, After::Nothing));
        }
        splitter = Some(model.format.splitter(&tools).after_prompt(text));
        parallel = *several;
        stops = StopStrings::new(&ask.stop);
        options.show_special = true;
    } else {
        options.stop.clone_from(&ask.stop);
    }
    if let Some((grammar, after)) = grammar {
        let matcher = model.constraints()?.start(&grammar).map_err(|e| grammar_refusal(&e, &ask.format))?;
        options.constraint = Some(Box::new(Guided::new(matcher, model, after)));
    }
    let taking = Taking {
        model: model.clone(),
        splitter,
        stops,
        stop: ask.stop,
        parallel,
        in_reasoning: reasoning,
        reasoning_tokens: 0,
        calls_ended: 0,
        open: None,
        tokens: Default::default(),
    };
    Ok(Ready { tokens, options, taking })
}

/// Where a format's grammar begins.
fn after_reasoning(dialect: Dialect, reasoning: bool) -> After {
    match dialect.reasoning_markers() {
        _ if dialect == Dialect::Harmony => After::FinalChannel,
        Some((_, close)) if reasoning => After::Marker(close),
        _ => After::Nothing,
    }
}

fn format_grammar(format: &Format) -> Result<Option<Grammar>, Refusal> {
    let grammar = match format {
        Format::Text => return Ok(None),
        Format::JsonObject => Ok(Grammar::json_object()),
        Format::JsonSchema(schema) => Grammar::json_schema(schema),
        Format::Regex(pattern) => Grammar::regex(pattern),
        Format::Lark(source) => Grammar::lark(source),
    };
    grammar.map(Some).map_err(|e| grammar_refusal(&e, format))
}

fn call_grammar(
    dialect: Dialect,
    tools: &[Tool],
    tool_use: &ToolUse,
    parallel: bool,
    reasoning_open: bool,
) -> Result<Option<Grammar>, Refusal> {
    let (choice, field) = match tool_use {
        ToolUse::None => return Ok(None),
        ToolUse::Auto if !tools.iter().any(|t| t.strict) => return Ok(None),
        ToolUse::Auto => (ToolChoice::Auto, "tools"),
        ToolUse::Required => (ToolChoice::Required, "tool_choice"),
        ToolUse::Named(name) => (ToolChoice::Named(name.clone()), "tool_choice"),
    };
    let options = CallOptions { parallel, reasoning_open };
    let grammar = Grammar::tool_call(dialect, tools, &choice, options);
    grammar.map(Some).map_err(|e| Refusal::bad(field, e.to_string()))
}

fn grammar_refusal(error: &GrammarError, format: &Format) -> Refusal {
    let field = if *format == Format::Text { "tools" } else { "response_format" };
    Refusal::bad(field, error.to_string())
}
