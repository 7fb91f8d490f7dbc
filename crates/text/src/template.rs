//! Chat templates: the model's own Jinja, from a conversation to the prompt that it was trained on.
//!
//! The environment is that of the reference (transformers' `apply_chat_template`): `trim_blocks`, `lstrip_blocks`, loop
//! controls, `raise_exception`, `strftime_now`, Python's string methods and `json.dumps`. Invariant: a template is rendered
//! as written or the error shows its line; no other template is ever put in its place.

use std::sync::{Arc, Mutex};

use minijinja::{Environment, Value};
use serde::{Deserialize, Deserializer, Serialize};
use turbospark_format::Metadata;

use crate::{TextError, clock, pymethods};

const KEY: &str = "tokenizer.chat_template";

/// Steps that one rendering may take: far beyond any conversation, and an end for a template that would never stop.
const FUEL: u64 = 20_000_000;

/// Bytes of a template's source, several times what the longest published ones have.
const MAX_SOURCE: usize = 128 << 10;

/// Address space for the stack of parsing and rendering, taken as it is used. Both recurse, and how deep is the template's
/// choice: a chain of as many filters as `MAX_SOURCE` holds, lists in lists until the fuel is spent.
const STACK: usize = 512 << 20;

/// One message of a conversation. All fields pass to the template as they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user`, `assistant`, `tool`, or what else the template knows.
    pub role: String,
    /// Text, a list of parts, or null; `None` leaves the field out.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub content: Option<serde_json::Value>,
    /// Everything else: `tool_calls`, `tool_call_id`, `name`, `reasoning_content`, …
    #[serde(flatten)]
    pub fields: serde_json::Map<String, serde_json::Value>,
}

fn present<'de, D: Deserializer<'de>>(d: D) -> Result<Option<serde_json::Value>, D::Error> {
    serde_json::Value::deserialize(d).map(Some)
}

impl Message {
    /// A message of plain text.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Message {
        let content = Some(serde_json::Value::String(content.into()));
        Message { role: role.into(), content, fields: serde_json::Map::new() }
    }

    fn to_value(&self) -> Value {
        let mut map = serde_json::Map::new();
        map.insert("role".to_owned(), self.role.clone().into());
        if let Some(content) = &self.content {
            map.insert("content".to_owned(), content.clone());
        }
        map.extend(self.fields.iter().map(|(k, v)| (k.clone(), v.clone())));
        pymethods::from_json(&serde_json::Value::Object(map))
    }
}

/// A model's chat template.
pub struct ChatTemplate {
    source: String,
    env: Environment<'static>,
    /// The template for conversations with tools, where the model has one of its own.
    tool_use: Option<String>,
    /// Special tokens by the names that templates use.
    tokens: Vec<(&'static str, String)>,
    now: Option<i64>,
}

impl std::fmt::Debug for ChatTemplate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChatTemplate").field("source", &self.source).finish_non_exhaustive()
    }
}

impl ChatTemplate {
    /// The template of a GGUF file; `None` if it has none.
    ///
    /// A file may hold several: `tokenizer.chat_template` is the default, `tokenizer.chat_template.NAME` are variants. The
    /// variant `tool_use` is used for conversations with tools; other variants are not used. Without a default, the
    /// variant named `default` stands in.
    ///
    /// # Errors
    /// [`TextError::Template`] with the line if a template can't be parsed.
    pub fn from_metadata(m: &Metadata) -> Result<Option<ChatTemplate>, TextError> {
        let default = match m.str(KEY)? {
            Some(source) => Some(source),
            None => m.str("tokenizer.chat_template.default")?,
        };
        let tool_use = m.str("tokenizer.chat_template.tool_use")?;
        let Some(source) = default.or(tool_use) else { return Ok(None) };
        let pieces = m.strings("tokenizer.ggml.tokens")?.unwrap_or_default();
        let token = |key: &str| -> Result<Option<String>, TextError> {
            let id = m.u64(key)?.and_then(|id| usize::try_from(id).ok());
            Ok(id.and_then(|id| pieces.get(id)).cloned())
        };
        let mut template = ChatTemplate::compile(source, tool_use)?;
        for (name, key) in [
            ("bos_token", "tokenizer.ggml.bos_token_id"),
            ("eos_token", "tokenizer.ggml.eos_token_id"),
            ("unk_token", "tokenizer.ggml.unknown_token_id"),
            ("pad_token", "tokenizer.ggml.padding_token_id"),
        ] {
            template.tokens.extend(token(key)?.map(|text| (name, text)));
        }
        Ok(Some(template))
    }

    /// A template from its source and the texts of BOS and EOS.
    ///
    /// # Errors
    /// [`TextError::Template`] with the line if it can't be parsed.
    pub fn new(source: &str, bos: &str, eos: &str) -> Result<ChatTemplate, TextError> {
        let mut template = ChatTemplate::compile(source, None)?;
        template.tokens = vec![("bos_token", bos.to_owned()), ("eos_token", eos.to_owned())];
        Ok(template)
    }

    fn compile(source: &str, tool_use: Option<&str>) -> Result<ChatTemplate, TextError> {
        if let Some(long) = [Some(source), tool_use].into_iter().flatten().find(|s| s.len() > MAX_SOURCE) {
            let reason = format!("the template has {} bytes, at most {MAX_SOURCE} are supported", long.len());
            return Err(TextError::Template { line: 0, source_line: String::new(), reason });
        }
        let mut env = Environment::new();
        env.set_trim_blocks(true);
        env.set_lstrip_blocks(true);
        env.set_fuel(Some(FUEL));
        pymethods::install(&mut env);
        for (name, source) in [("chat", Some(source)), ("tool_use", tool_use)] {
            if let Some(source) = source {
                let plain = without_generation_tags(source);
                on_deep_stack(|| env.add_template_owned(name, plain))?
                    .map_err(|e| template_error(source, &e))?;
            }
        }
        let tool_use = tool_use.map(str::to_owned);
        Ok(ChatTemplate { source: source.to_owned(), env, tool_use, tokens: Vec::new(), now: None })
    }

    /// Fixes the time that `strftime_now` sees, in seconds since 1970 UTC. Otherwise it is the time of rendering.
    #[must_use]
    pub fn at_time(mut self, seconds: i64) -> ChatTemplate {
        self.now = Some(seconds);
        self
    }

    /// The default template's source.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The prompt for a conversation. `tools` is a list of function definitions; `extra` are further variables
    /// (`enable_thinking`), which win over all others of the same name.
    ///
    /// Encode the result with [`Specials::ALL`](crate::Specials::ALL): a BOS that the template wrote is not doubled.
    ///
    /// # Errors
    /// [`TextError::Refused`] if the template itself raises, [`TextError::Template`] with the line otherwise.
    pub fn render(
        &self,
        messages: &[Message],
        tools: Option<&serde_json::Value>,
        add_generation_prompt: bool,
        extra: &serde_json::Map<String, serde_json::Value>,
    ) -> Result<String, TextError> {
        let refused = Arc::new(Mutex::new(None));
        let mut context: Vec<(String, Value)> = Vec::new();
        let mut set = |name: &str, value: Value| context.push((name.to_owned(), value));
        set("messages", messages.iter().map(Message::to_value).collect());
        set("tools", tools.map_or(Value::from(()), pymethods::from_json));
        set("documents", Value::from(()));
        set("add_generation_prompt", Value::from(add_generation_prompt));
        for (name, text) in &self.tokens {
            set(name, Value::from(text.as_str()));
        }
        for (name, function) in
            pymethods::functions(self.now.unwrap_or_else(clock::now), Arc::clone(&refused))
        {
            set(name, function);
        }
        for (name, value) in extra {
            set(name, pymethods::from_json(value));
        }
        let (name, source) = match &self.tool_use {
            Some(source) if tools.is_some_and(|t| !t.is_null()) => ("tool_use", source),
            _ => ("chat", &self.source),
        };
        let template = self.env.get_template(name).map_err(|e| template_error(source, &e))?;
        // The context is dropped on the deep stack too: a template may have hung anything into it.
        let rendered = on_deep_stack(|| template.render(context.into_iter().collect::<Value>()))?;
        rendered.map_err(|error| match refused.lock().ok().and_then(|mut r| r.take()) {
            Some(message) => TextError::Refused { message },
            None => template_error(source, &error),
        })
    }
}

/// Runs `work` on a thread whose stack holds what a template may ask for.
fn on_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, TextError> {
    let fail = |reason: String| TextError::Template { line: 0, source_line: String::new(), reason };
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name("template".to_owned()).stack_size(STACK);
        let thread = builder.spawn_scoped(scope, work);
        let thread = thread.map_err(|e| fail(format!("no thread can be started to render it: {e}")))?;
        thread.join().map_err(|_| fail("the renderer failed".to_owned()))
    })
}

fn template_error(source: &str, error: &minijinja::Error) -> TextError {
    let line = error.line().unwrap_or(0);
    let source_line = line.checked_sub(1).and_then(|n| source.lines().nth(n)).unwrap_or_default();
    let mut reason = error.kind().to_string();
    if let Some(detail) = error.detail() {
        reason = format!("{reason}: {detail}");
    }
    TextError::Template { line, source_line: source_line.trim().chars().take(200).collect(), reason }
}

/// Turns `{% generation %}` blocks, which mark a training mask and print nothing, into blocks that the engine knows.
fn without_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("{%") {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let Some(end) = rest[2..].find("%}").map(|at| at + 2) else { break };
        let tag = &rest[..end + 2];
        let inner = tag[2..end].trim_matches(['-', '+']).trim();
        let replacement = match inner {
            "generation" => Some("if true"),
            "endgeneration" => Some("endif"),
            _ => None,
        };
        match replacement {
            Some(new) => out.push_str(&tag.replace(inner, new)),
            None => out.push_str(tag),
        }
        rest = &rest[end + 2..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(source: &str, messages: &[Message]) -> Result<String, TextError> {
        let template = ChatTemplate::new(source, "<s>", "</s>")?.at_time(1_722_000_000);
        template.render(messages, None, true, &serde_json::Map::new())
    }

    fn user(text: &str) -> Vec<Message> {
        vec![Message::new("user", text)]
    }

    #[test]
    fn python_calls_of_real_templates_work() {
        for (source, want) in [
            ("{{ messages[0].content.split('</think>')[0].rstrip('\\n') }}", "ab"),
            ("{{ messages[0].content.split('</think>')[-1].lstrip('\\n') }}", "c d"),
            ("{{ messages[::-1][0]['role'] }}", "user"),
            ("{{ strftime_now('%d %b %Y') }}", "26 Jul 2024"),
            ("{{ bos_token ~ messages | length }}", "<s>1"),
            (
                "{% set ns = namespace(a=1) %}{% for m in messages %}{% set ns.a = ns.a + 1 %}{% endfor %}{{ ns.a }}",
                "2",
            ),
            (
                "{% for x in [1,2,3,4] %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 4 %}{% break %}{% endif %}{{ x }}{% endfor %}",
                "13",
            ),
            (
                "{% for x in 'abc' %}{{ loop.previtem if loop.previtem is defined else '-' }}{% endfor %}",
                "-ab",
            ),
            ("{{ {'items': [1, true, none]} | tojson }}", "{\"items\": [1, true, null]}"),
            ("{{ [true, none, 1.0] }}", "[True, None, 1.0]"),
            (
                "{{ messages[0].content is string }}{{ messages is mapping }}{{ 'x' is iterable }}",
                "TrueFalseTrue",
            ),
            ("{{ 'a-b'.replace('-', '+').upper() }}{{ 'abc'.startswith('ab') }}", "A+BTrue"),
            ("{{ 'a {} {1}'.format(1, 'b') if false else 'x'.title() }}", "X"),
            ("{% generation %}a{% endgeneration %}b", "ab"),
            ("{{ 'a,b,c'.rsplit(',', 1)[0] }}{{ 'k=v'.partition('=')[2] }}", "a,bv"),
            ("{{ missing }}{{ messages[0].missing }}|", "|"),
            ("{{ messages[0].get('name', 'none') }}", "none"),
        ] {
            assert_eq!(render(source, &user("ab\n</think>\nc d")).unwrap(), want, "{source}");
        }
    }

    #[test]
    fn a_schema_with_a_key_items_still_has_its_method() {
        let mut message = Message::new("user", "");
        message.fields.insert("schema".into(), serde_json::json!({"type": "array", "items": {"a": 1}}));
        let source = "{% for k, v in messages[0].schema.items() %}{{ k }}={{ v }};{% endfor %}{{ messages[0].schema['items'].a }}";
        assert_eq!(render(source, &[message]).unwrap(), "type=array;items={'a': 1};1");
    }

    #[test]
    fn a_tag_whose_brackets_overlap_is_an_error() {
        assert!(matches!(render("{%}{{ x }}", &user("x")), Err(TextError::Template { line: 1, .. })));
        assert!(render("{%", &user("x")).is_err());
    }

    #[test]
    fn a_refusal_carries_the_templates_words() {
        let error = render("{{ raise_exception('roles must alternate') }}", &user("x")).unwrap_err();
        assert!(matches!(error, TextError::Refused { message } if message == "roles must alternate"));
    }

    #[test]
    fn a_failure_shows_the_line() {
        let error = render("line one\n{{ messages[0].content.frobnicate() }}\n", &user("x")).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("line 2") && text.contains("frobnicate()"), "{text}");
        let error = render("a\nb\n{% for %}", &user("x")).unwrap_err();
        assert!(error.to_string().contains("line 3"), "{error}");
    }

    #[test]
    fn a_template_that_never_ends_is_stopped() {
        let source = "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}{% endfor %}{% endfor %}{% endfor %}";
        assert!(render(source, &user("x")).is_err());
    }

    #[test]
    fn a_template_cannot_exhaust_the_stack() {
        for source in [
            format!("{{{{ {}1 }}}}", "not ".repeat(32_000)),
            format!("{{{{ 1{} }}}}", "|string".repeat(18_000)),
            format!("{{{{ 1{} }}}}", "+1".repeat(60_000)),
            format!("{{{{ x{} }}}}", ".a".repeat(60_000)),
            "{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}".to_owned(),
            "{% set ns = namespace() %}{% set ns.x = ns %}{{ ns|tojson }}".to_owned(),
            "{% set n = namespace(x=1, y=1) %}{% for i in range(99999) %}{% for j in range(2) %}{% set n.x = [n.x] %}{% set n.y = [n.y] %}{% endfor %}{% endfor %}{{ n.x == n.y }}".to_owned(),
            "{% set n = namespace(x=1) %}{% for i in range(99999) %}{% set n.x = [n.x] %}{% endfor %}{{ n.x }}".to_owned(),
        ] {
            // Either is fine: what counts is that the process goes on.
            let outcome = render(&source, &user("x"));
            assert!(matches!(outcome, Ok(_) | Err(TextError::Template { .. })), "{outcome:?}");
        }
    }

    #[test]
    fn a_template_that_prints_without_end_is_stopped() {
        for source in [
            "{% set x = 'a' * 100000 %}{% for i in range(99999) %}{{ x }}{% endfor %}",
            "{% set n = namespace(x='aaaa') %}{% for i in range(40) %}{% set y %}{{ n.x }}{{ n.x }}{% endset %}{% set n.x = y %}{% endfor %}",
            "{% set n = namespace(x=[1]) %}{% for i in range(40) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}",
            "{% set n = namespace(x=[1]) %}{% for i in range(40) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x | tojson }}",
            "{{ 'a\nb' | indent(2000000000) }}",
            "{{ '%5000000000d' | format(1) }}",
            "{{ '%.5000000000f' | format(1) }}",
        ] {
            assert!(matches!(render(source, &user("x")), Err(TextError::Template { .. })), "{source}");
        }
    }

    #[test]
    fn indent_and_format_are_jinjas() {
        assert_eq!(render("{{ 'a\n\nb\n' | indent }}|", &user("x")).unwrap(), "a\n\n    b|");
        assert_eq!(
            render("{{ 'a\n\nb' | indent(2, true, blank=true) }}", &user("x")).unwrap(),
            "  a\n  \n  b"
        );
        assert_eq!(render("{{ '%s-%03d' | format('a', 7) }}", &user("x")).unwrap(), "a-007");
    }

    #[test]
    fn null_content_and_no_content_are_told_apart() {
        let source = "{{ messages[0].content is none }} {{ messages[0].content is defined }}";
        let parse = |json: &str| vec![serde_json::from_str::<Message>(json).unwrap()];
        assert_eq!(render(source, &parse(r#"{"role": "assistant", "content": null}"#)).unwrap(), "True True");
        assert_eq!(render(source, &parse(r#"{"role": "assistant"}"#)).unwrap(), "False False");
    }
}
