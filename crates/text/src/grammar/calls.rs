//! Tool calls as grammars: the dialect's syntax around arguments that satisfy the tool's schema.
//!
//! Invariant: whatever such a grammar accepts, the dialect's splitter reads as calls of the tools that it was made for. What
//! can't be written so is an error, never a looser grammar.

use serde_json::{Value, json};

use super::{GrammarError, Source, lark, limits, parameters};
use crate::{Dialect, Tool};

/// Which tools an answer calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    /// Text, or calls of any tools.
    Auto,
    /// Calls of any tools, at least one.
    Required,
    /// A call of this tool.
    Named(String),
}

/// How the calls stand in the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallOptions {
    /// More than one call is allowed. Harmony ends its turn after a call, so there it means nothing.
    pub parallel: bool,
    /// The answer begins within the reasoning, which is free and ends before the calls.
    pub reasoning_open: bool,
}

/// The parts of a dialect's calls.
#[derive(Clone, Copy, Debug)]
struct Form {
    /// The marker before all calls.
    open: Option<&'static str>,
    /// Between two calls.
    between: &'static str,
    /// The marker after all calls.
    close: Option<&'static str>,
    /// Each call has markers of its own, instead of one pair around all.
    each: bool,
    reasoning_end: &'static str,
}

const THINK_END: &str = "</think>";

fn form(dialect: Dialect) -> Result<Form, GrammarError> {
    let each = Form {
        open: Some("<tool_call>"),
        between: "\n",
        close: Some("</tool_call>"),
        each: true,
        reasoning_end: THINK_END,
    };
    Ok(match dialect {
        Dialect::Hermes | Dialect::QwenXml | Dialect::Glm => each,
        Dialect::LlamaJson => Form { open: None, between: "; ", close: None, ..each },
        Dialect::Gemma3 => Form { open: None, between: "\n", close: None, ..each },
        Dialect::Mistral => Form {
            open: Some("[TOOL_CALLS]"),
            between: "",
            close: None,
            each: true,
            reasoning_end: "[/THINK]",
        },
        Dialect::DeepSeek => Form {
            open: Some("<｜tool▁calls▁begin｜>"),
            between: "",
            close: Some("<｜tool▁calls▁end｜>"),
            each: false,
            ..each
        },
        Dialect::DeepSeekTags => Form {
            open: Some("<｜DSML｜function_calls>"),
            close: Some("</｜DSML｜function_calls>"),
            each: false,
            ..each
        },
        Dialect::Kimi => Form {
            open: Some("<|tool_calls_section_begin|>"),
            between: "",
            close: Some("<|tool_calls_section_end|>"),
            each: false,
            ..each
        },
        Dialect::MiniMax => Form {
            open: Some("<minimax:tool_call>"),
            close: Some("</minimax:tool_call>"),
            each: false,
            ..each
        },
        Dialect::Harmony => Form { open: None, between: "", close: None, ..each },
        Dialect::LlamaPythonic | Dialect::Gemma4 | Dialect::Plain => {
            return Err(unsupported(
                dialect,
                "no grammar is written for its calls; use the choice auto without strict tools",
            ));
        }
    })
}

pub(super) fn unsupported(dialect: Dialect, what: impl Into<String>) -> GrammarError {
    GrammarError::Unsupported { dialect: dialect.name(), what: what.into() }
}

/// A source that grows rule by rule.
#[derive(Debug, Default)]
pub(super) struct Rules {
    pub(super) text: String,
    pub(super) schemas: Vec<(String, Value)>,
}

impl Rules {
    /// A rule for JSON that satisfies a schema; `place` is what errors name.
    pub(super) fn json(&mut self, rule: &str, place: String, root: &Value, schema: &Value) {
        let schema = lark::with_definitions(root, schema);
        self.text.push_str(&format!("{rule}: %json {schema}\n"));
        self.schemas.push((place, schema));
    }
}

pub(super) fn grammar(
    dialect: Dialect,
    tools: &[Tool],
    choice: &ToolChoice,
    options: CallOptions,
) -> Result<Source, GrammarError> {
    let form = form(dialect)?;
    let chosen: Vec<&Tool> = match choice {
        ToolChoice::Named(name) => tools.iter().filter(|t| t.name == *name).take(1).collect(),
        _ => tools.iter().collect(),
    };
    if chosen.is_empty() {
        let name = if let ToolChoice::Named(name) = choice { name.clone() } else { String::new() };
        return Err(GrammarError::UnknownTool { name });
    }
    let mut rules = Rules::default();
    for (i, tool) in chosen.iter().enumerate() {
        check(dialect, tool)?;
        call(dialect, i, tool, &mut rules)?;
    }
    let any: Vec<String> = (0..chosen.len()).map(|i| format!("call_{i}")).collect();
    rules.text.push_str(&format!("any: {}\n", any.join(" | ")));
    let parallel = options.parallel && !matches!(choice, ToolChoice::Named(_)) && dialect != Dialect::Harmony;
    start(dialect, form, choice == &ToolChoice::Auto, parallel, options.reasoning_open, &mut rules)?;
    Ok(Source::Calls { source: rules.text, schemas: rules.schemas })
}

fn check(dialect: Dialect, tool: &Tool) -> Result<(), GrammarError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if tool.name.is_empty() || tool.name.len() > 128 || !tool.name.chars().all(fits) {
        let name: String = tool.name.chars().take(128).collect();
        let what = format!("the tool's name {name:?} is not of up to 128 letters, digits, '_', '-' and '.'");
        return Err(unsupported(dialect, what));
    }
    limits::check(&tool.parameters)
}

/// The schema of a tool's arguments: an object, and nothing in it that isn't named.
fn arguments(tool: &Tool) -> Value {
    let Value::Object(mut fields) = tool.parameters.clone() else { return json!({"type": "object"}) };
    fields.entry("type").or_insert_with(|| json!("object"));
    if fields.contains_key("properties") {
        fields.entry("additionalProperties").or_insert_with(|| json!(false));
    }
    Value::Object(fields)
}

/// The rule `call_i`: one call without the markers that the form puts around it.
fn call(dialect: Dialect, i: usize, tool: &Tool, rules: &mut Rules) -> Result<(), GrammarError> {
    let (name, args, m) = (tool.name.as_str(), format!("args_{i}"), lark::marker);
    let q = lark::quoted;
    let json_call = |before: &str, key: &str, after: &str| {
        let head = format!("{before}{{\"name\": \"{name}\", \"{key}\": ");
        format!("{} {args} {}", q(&head), q(&format!("}}{after}")))
    };
    let body = match dialect {
        Dialect::QwenXml | Dialect::MiniMax | Dialect::Glm | Dialect::DeepSeekTags => {
            return parameters::call(dialect, i, tool, rules);
        }
        Dialect::Hermes => json_call("\n", "arguments", "\n"),
        Dialect::LlamaJson => json_call("", "parameters", ""),
        Dialect::Gemma3 => json_call("```json\n", "parameters", "\n```"),
        Dialect::Harmony => format!(
            "{} {} {} {} {} {args}",
            m("<|channel|>"),
            q(&format!("commentary to=functions.{name} ")),
            m("<|constrain|>"),
            q("json"),
            m("<|message|>")
        ),
        Dialect::DeepSeek => format!(
            "{} {} {} {args} {}",
            m("<｜tool▁call▁begin｜>"),
            q(name),
            m("<｜tool▁sep｜>"),
            m("<｜tool▁call▁end｜>")
        ),
        Dialect::Kimi => format!(
            "{} {} /[0-9]{{1,3}}/ {} {args} {}",
            m("<|tool_call_begin|>"),
            q(&format!("functions.{name}:")),
            m("<|tool_call_argument_begin|>"),
            m("<|tool_call_end|>")
        ),
        _ => {
            // Newer vocabularies have a token between name and arguments, older models write a list.
            let named = format!("call_{i}: {} {} {args}", q(name), m("[ARGS]"));
            let listed = format!("call_{i}: {}", json_call("[", "arguments", "]"));
            rules.text.push_str(&lark::if_token(true, "[ARGS]", &named));
            rules.text.push_str(&lark::if_token(false, "[ARGS]", &listed));
            String::new()
        }
    };
    if !body.is_empty() {
        rules.text.push_str(&format!("call_{i}: {body}\n"));
    }
    let schema = arguments(tool);
    rules.json(&args, format!("#/tools/{name}/parameters"), &schema, &schema);
    Ok(())
}

/// The rule `start`: reasoning, text where it is free, and the calls.
fn start(
    dialect: Dialect,
    form: Form,
    auto: bool,
    parallel: bool,
    reasoning_open: bool,
    rules: &mut Rules,
) -> Result<(), GrammarError> {
    let m = lark::marker;
    let between = if form.between.is_empty() { String::new() } else { lark::quoted(form.between) };
    let close = form.close.map(m).unwrap_or_default();
    let inside = if form.each || !parallel { "any".to_owned() } else { format!("any ({between} any)*") };
    let inside = if form.each { inside } else { format!("{between} {inside} {between}") };
    let again = match form.open.map(m) {
        Some(open) if form.each && parallel => format!("({between} {open} any {close})*"),
        None if parallel => format!("({between} any)*"),
        _ => String::new(),
    };
    if dialect == Dialect::Harmony {
        harmony_start(auto, rules);
        return Ok(());
    }
    let reasoning = if reasoning_open {
        rules.text.push_str(&lark::through("reasoning", form.reasoning_end));
        "reasoning /[ \\n]{0,4}/"
    } else {
        ""
    };
    match (auto, form.open) {
        (false, open) => {
            let open = open.map(m).unwrap_or_default();
            rules.text.push_str(&format!("start: {reasoning} {open} {inside} {close} {again}\n"));
        }
        (true, Some(open)) => {
            rules.text.push_str(&lark::through("lead", open));
            rules.text.push_str(&lark::without("plain", open));
            rules
                .text
                .push_str(&format!("start: {reasoning} plain | {reasoning} lead {inside} {close} {again}\n"));
        }
        (true, None) => {
            let what = "its calls have no marker that tells them from text, so the choice must not be auto";
            return Err(unsupported(dialect, what));
        }
    }
    Ok(())
}

/// Messages of reasoning and, where the choice is free, of text come before the call.
fn harmony_start(auto: bool, rules: &mut Rules) {
    let m = lark::marker;
    let (channel, message, begin) = (m("<|channel|>"), m("<|message|>"), m("<|start|>"));
    rules.text.push_str(&lark::through("body", "<|end|>"));
    rules.text.push_str(&lark::without("last", "<|end|>"));
    let analysis = lark::quoted("analysis");
    rules.text.push_str(&format!("thought: {channel} {analysis} {message} body {begin} \"assistant\"\n"));
    if auto {
        rules.text.push_str(&format!(
            "preamble: {channel} \"commentary\" {message} body {begin} \"assistant\"\n\
             final: {channel} \"final\" {message} last\n\
             start: thought? (final | preamble? any)\n"
        ));
    } else {
        rules.text.push_str("start: thought? any\n");
    }
}
