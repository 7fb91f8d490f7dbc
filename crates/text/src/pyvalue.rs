//! Python's view of values, which templates are written for: `str()`, `repr()` and `json.dumps()`.
//!
//! Invariant: what a template prints is byte for byte what the reference (Jinja2 under Python) prints.

use std::fmt::Write;

use minijinja::{
    Error, ErrorKind,
    value::{Value, ValueKind},
};

/// Values in values that are printed: a template can make a value that holds itself.
const MAX_DEPTH: usize = 200;
/// Bytes that one value is printed as, and that one rendering prints: far beyond any prompt that a context holds.
pub(crate) const MAX_BYTES: usize = 64 << 20;

/// How `json.dumps` lays a value out.
pub(crate) struct JsonStyle {
    pub(crate) indent: Option<String>,
    pub(crate) item_separator: String,
    pub(crate) key_separator: String,
    pub(crate) ensure_ascii: bool,
    pub(crate) sort_keys: bool,
}

impl Default for JsonStyle {
    fn default() -> Self {
        JsonStyle {
            indent: None,
            item_separator: ", ".to_owned(),
            key_separator: ": ".to_owned(),
            ensure_ascii: false,
            sort_keys: false,
        }
    }
}

/// `str(value)`.
pub(crate) fn str(value: &Value) -> Result<String, Error> {
    match value.as_str() {
        Some(s) => Ok(s.to_owned()),
        None if value.is_undefined() => Ok(String::new()),
        None => repr(value),
    }
}

/// `repr(value)`.
pub(crate) fn repr(value: &Value) -> Result<String, Error> {
    let mut out = String::new();
    write_repr(value, 0, &mut out)?;
    Ok(out)
}

fn write_repr(value: &Value, depth: usize, out: &mut String) -> Result<(), Error> {
    check_size(depth, out)?;
    match value.kind() {
        ValueKind::None | ValueKind::Undefined => out.push_str("None"),
        ValueKind::Bool => out.push_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::Number => out.push_str(&number(value)),
        ValueKind::String => out.push_str(&quote(value.as_str().unwrap_or_default())),
        ValueKind::Seq | ValueKind::Iterable => {
            out.push('[');
            for (i, item) in value.try_iter().into_iter().flatten().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                write_repr(&item, depth + 1, out)?;
            }
            out.push(']');
        }
        ValueKind::Map => {
            out.push('{');
            for (i, (key, item)) in entries(value).enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                write_repr(&key, depth + 1, out)?;
                out.push_str(": ");
                write_repr(&item, depth + 1, out)?;
            }
            out.push('}');
        }
        _ => out.push_str(&value.to_string()),
    }
    Ok(())
}

fn check_size(depth: usize, out: &str) -> Result<(), Error> {
    let fail = |what| Err(Error::new(ErrorKind::InvalidOperation, what));
    if depth > MAX_DEPTH {
        return fail(format!("a value nested more than {MAX_DEPTH} deep can't be printed"));
    }
    if out.len() > MAX_BYTES {
        return fail(format!("a value is printed as more than {MAX_BYTES} bytes"));
    }
    Ok(())
}

/// `json.dumps(value)`.
pub(crate) fn json(value: &Value, style: &JsonStyle) -> Result<String, Error> {
    let mut out = String::new();
    write_json(value, style, 0, &mut out)?;
    Ok(out)
}

fn write_json(value: &Value, style: &JsonStyle, depth: usize, out: &mut String) -> Result<(), Error> {
    check_size(depth, out)?;
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push_str(&number(value)),
        ValueKind::String => write_json_string(value.as_str().unwrap_or_default(), style.ensure_ascii, out),
        ValueKind::Seq | ValueKind::Iterable => {
            let items: Vec<_> = value.try_iter()?.collect();
            write_items(&items, ['[', ']'], style, depth, out, |item, out| {
                write_json(item, style, depth + 1, out)
            })?;
        }
        ValueKind::Map => {
            let mut items: Vec<_> = entries(value).collect();
            if style.sort_keys {
                items.sort_by_cached_key(|(key, _)| {
                    key.as_str().map_or_else(|| key.to_string(), str::to_owned)
                });
            }
            write_items(&items, ['{', '}'], style, depth, out, |(key, item), out| {
                let key = if key.kind() == ValueKind::String { str(key)? } else { json(key, style)? };
                write_json_string(&key, style.ensure_ascii, out);
                out.push_str(&style.key_separator);
                write_json(item, style, depth + 1, out)
            })?;
        }
        kind => {
            let message = format!("tojson: a value of type {kind} is not JSON");
            return Err(Error::new(ErrorKind::InvalidOperation, message));
        }
    }
    Ok(())
}

fn write_items<T>(
    items: &[T],
    brackets: [char; 2],
    style: &JsonStyle,
    depth: usize,
    out: &mut String,
    mut write: impl FnMut(&T, &mut String) -> Result<(), Error>,
) -> Result<(), Error> {
    let line = |depth: usize, out: &mut String| {
        if let Some(indent) = &style.indent {
            out.push('\n');
            (0..depth).for_each(|_| out.push_str(indent));
        }
    };
    out.push(brackets[0]);
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push_str(&style.item_separator);
        }
        line(depth + 1, out);
        write(item, out)?;
    }
    if !items.is_empty() {
        line(depth, out);
    }
    out.push(brackets[1]);
    Ok(())
}

fn entries(map: &Value) -> impl Iterator<Item = (Value, Value)> {
    map.try_iter().into_iter().flatten().map(|k| {
        let v = map.get_item(&k).unwrap_or_default();
        (k, v)
    })
}

fn number(value: &Value) -> String {
    if value.is_integer() {
        return value.to_string();
    }
    let Ok(x) = f64::try_from(value.clone()) else { return value.to_string() };
    float(x)
}

/// Python's `repr` of a float: shortest digits, exponents from 1e16 up and below 1e-4.
fn float(x: f64) -> String {
    if x.is_nan() {
        return "NaN".to_owned();
    }
    if x.is_infinite() {
        return if x > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let magnitude = x.abs();
    if magnitude != 0.0 && !(1e-4..1e16).contains(&magnitude) {
        let text = format!("{x:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |e| ('-', e));
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    format!("{x:?}")
}

fn quote(s: &str) -> String {
    let quote = if s.contains('\'') && !s.contains('"') { '"' } else { '\'' };
    let mut out = String::with_capacity(s.len() + 2);
    out.push(quote);
    for c in s.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if (c as u32) < 0x20 || (0x7f..0xa1).contains(&(c as u32)) || c == '\u{ad}' => {
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}

fn write_json_string(s: &str, ensure_ascii: bool, out: &mut String) {
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 || (ensure_ascii && !c.is_ascii()) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_as_in_python() {
        for (x, text) in [
            (1.0, "1.0"),
            (0.1, "0.1"),
            (-0.0, "-0.0"),
            (1e16, "1e+16"),
            (1.5e-5, "1.5e-05"),
            (123456789.125, "123456789.125"),
            (1e-4, "0.0001"),
            (5e300, "5e+300"),
        ] {
            assert_eq!(float(x), text);
        }
    }

    #[test]
    fn reprs_are_pythons() {
        let value =
            Value::from_serialize(serde_json::json!({"a": [true, null, "it's", "q\"", 1.5], "b": {}}));
        assert_eq!(repr(&value).unwrap(), r#"{'a': [True, None, "it's", 'q"', 1.5], 'b': {}}"#);
    }

    #[test]
    fn json_is_that_of_json_dumps() {
        let value = Value::from_serialize(serde_json::json!({"b": ["é\n", {}], "a": []}));
        assert_eq!(json(&value, &JsonStyle::default()).unwrap(), "{\"b\": [\"é\\n\", {}], \"a\": []}");
        let style = JsonStyle {
            indent: Some("  ".into()),
            item_separator: ",".into(),
            ensure_ascii: true,
            sort_keys: true,
            ..JsonStyle::default()
        };
        let want = "{\n  \"a\": [],\n  \"b\": [\n    \"\\u00e9\\n\",\n    {}\n  ]\n}";
        assert_eq!(json(&value, &style).unwrap(), want);
    }
}
