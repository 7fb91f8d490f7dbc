//! Arguments that a model wrote as plain text, as JSON: escaping, and the type that the schema asks for.

use std::fmt::Write as _;

use super::{python, tool::Types};

/// Appends a character of a JSON string's inside.
pub(super) fn escape(c: char, out: &mut String) {
    match c {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        c if (c as u32) < 0x20 => {
            let _ = write!(out, "\\u{:04x}", c as u32);
        }
        c => out.push(c),
    }
}

/// `text` as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    text.chars().for_each(|c| escape(c, &mut out));
    out.push('"');
    out
}

/// The JSON text for what a model wrote as plain text. It is read as JSON, then as a Python literal, if the result is of
/// a type that the schema admits; else it is a string.
pub(super) fn typed(text: &str, types: Types) -> String {
    if types.only_string() {
        return quoted(text);
    }
    let trimmed = text.trim();
    if let Ok(value) = serde_json::from_str::<serde_json::Value>(trimmed)
        && types.admits(&value)
        && !value.is_string()
    {
        return trimmed.to_owned();
    }
    if let Ok(json) = python::literal(trimmed)
        && let Ok(value) = serde_json::from_str::<serde_json::Value>(&json)
        && types.admits(&value)
        && !value.is_string()
    {
        return json;
    }
    if types.boolean && !types.string {
        for word in ["true", "false"] {
            if trimmed.eq_ignore_ascii_case(word) {
                return word.to_owned();
            }
        }
    }
    // A string in quotes, where the schema has other types beside it or none: the quotes are JSON's.
    if let Ok(value @ serde_json::Value::String(_)) = serde_json::from_str(trimmed) {
        return value.to_string();
    }
    quoted(text)
}
