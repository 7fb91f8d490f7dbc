//! Lark sources with markers in them.
//!
//! Whether a marker is a control token or plain text depends on the vocabulary, so sources are written with placeholders and
//! resolved when a constraint starts. Invariant: whatever text goes into a source is quoted; placeholders are characters
//! that quoting never leaves bare.

use std::fmt::Write as _;

use serde_json::{Value, json};

const OPEN: char = '\u{1}';
const CLOSE: char = '\u{2}';
/// Begins a line that defines a rule for text up to and with a marker.
const THROUGH: char = '\u{3}';
/// Begins a line that defines a rule for text without a marker.
const WITHOUT: char = '\u{4}';
/// Begin a line that holds where the vocabulary has a control token, or where it doesn't.
const WITH_TOKEN: char = '\u{5}';
const WITHOUT_TOKEN: char = '\u{6}';

/// White space between the parts of JSON, as printers write it: a space, or a line and its indentation. With more freedom small models
/// fill their answer with it.
const WHITE_SPACE: &str = r"(\x20|\x0A(\x20{0,16}|\x09{0,8}))";

/// Any text.
const ANY: &str = r"/(.|\n)*/";

/// A text as a Lark string.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// A place where a marker stands.
pub(super) fn marker(text: &str) -> String {
    format!("{OPEN}{text}{CLOSE}")
}

/// Defines a rule for any text, the first `marker` and nothing after it.
pub(super) fn through(rule: &str, marker: &str) -> String {
    format!("{THROUGH}{rule}{CLOSE}{marker}\n")
}

/// Defines a rule for any text that has no `marker` in it.
pub(super) fn without(rule: &str, marker: &str) -> String {
    format!("{WITHOUT}{rule}{CLOSE}{marker}\n")
}

/// A line that counts only if the vocabulary has a control token, or only if it hasn't.
pub(super) fn if_token(has: bool, token: &str, line: &str) -> String {
    format!("{}{token}{CLOSE}{line}\n", if has { WITH_TOKEN } else { WITHOUT_TOKEN })
}

/// Any text, ended by `text`, which is plain.
pub(super) fn lazily(rule: &str, text: &str) -> String {
    format!("{rule}[suffix={}]: {ANY}\n", quoted(text))
}

/// Fills the placeholders in.
pub(super) fn resolve(source: &str, token: impl Fn(&str) -> Option<u32>) -> String {
    let mut out = String::with_capacity(source.len());
    for line in source.lines() {
        let (mut line, mut kept) = (line, true);
        for (sign, has) in [(WITH_TOKEN, true), (WITHOUT_TOKEN, false)] {
            if let Some((name, rest)) = line.strip_prefix(sign).and_then(|l| l.split_once(CLOSE)) {
                kept &= token(name).is_some() == has;
                line = rest;
            }
        }
        if !kept {
            continue;
        }
        if let Some((rule, marker)) = line.strip_prefix(THROUGH).and_then(|l| l.split_once(CLOSE)) {
            out.push_str(&match token(marker) {
                Some(id) => format!("{rule}: {ANY} <[{id}]>\n"),
                None => lazily(rule, marker),
            });
        } else if let Some((rule, marker)) = line.strip_prefix(WITHOUT).and_then(|l| l.split_once(CLOSE)) {
            let terminal = rule.to_uppercase();
            let exclusion = match token(marker) {
                Some(_) => String::new(),
                None => format!(r" & ~(/(.|\n)*/ {} /(.|\n)*/)", quoted(marker)),
            };
            let _ = writeln!(out, "{rule}: {terminal}\n{terminal}: {ANY}{exclusion}");
        } else {
            markers(line, &token, &mut out);
            out.push('\n');
        }
    }
    out
}

fn markers(line: &str, token: &impl Fn(&str) -> Option<u32>, out: &mut String) {
    let mut rest = line;
    while let Some((before, after)) = rest.split_once(OPEN) {
        out.push_str(before);
        let (marker, after) = after.split_once(CLOSE).unwrap_or((after, ""));
        match token(marker) {
            Some(id) => {
                let _ = write!(out, "<[{id}]>");
            }
            None => out.push_str(&quoted(marker)),
        }
        rest = after;
    }
    out.push_str(rest);
}

/// `child` as a schema of its own: with the definitions of `root`, and white space that ends. `oneOf` is read as `anyOf`:
/// that a value satisfies one branch and no other can't be held token by token.
pub(super) fn with_definitions(root: &Value, child: &Value) -> Value {
    let mut child = child.clone();
    if let Value::Object(fields) = &mut child {
        for key in ["$defs", "definitions"] {
            if let Some(definitions) = root.get(key)
                && !fields.contains_key(key)
            {
                fields.insert(key.to_owned(), definitions.clone());
            }
        }
        if !fields.contains_key("x-guidance") {
            fields.insert(
                "x-guidance".to_owned(),
                json!({ "whitespace_pattern": WHITE_SPACE, "coerce_one_of": true }),
            );
        }
    }
    child
}
