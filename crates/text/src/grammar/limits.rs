//! How much schema is accepted, so that a hostile one is an error and neither a hang nor an overflow.
//!
//! Invariant: checked without recursion, before anything recurses into it.

use serde_json::Value;

use super::GrammarError;

/// Nesting of schemas.
const MAX_DEPTH: usize = 64;
/// Values in a schema, at all depths.
const MAX_VALUES: usize = 20_000;
/// Values of an `enum`.
const MAX_ENUM: usize = 2_000;
/// Expressions in a schema.
const MAX_PATTERNS: usize = 64;
/// Schemas of an `allOf`: the automata of all are multiplied.
const MAX_ALL_OF: usize = 8;
/// Bytes of all strings.
const MAX_BYTES: usize = 1 << 20;
/// Bytes of a regular expression or grammar.
pub(super) const MAX_SOURCE: usize = 64 << 10;
/// Repetitions that are counted: lengths, items, properties.
const MAX_COUNT: u64 = 10_000;

const COUNTS: [&str; 8] = [
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minContains",
    "maxContains",
];

/// Accepts a schema of bounded size.
pub(super) fn check(schema: &Value) -> Result<(), GrammarError> {
    let too_large = |what, place: &str, limit| {
        Err(GrammarError::TooLarge { what, place: place.chars().take(200).collect(), limit })
    };
    let (mut values, mut bytes, mut patterns) = (0, 0, 0);
    let mut open = vec![(schema, "#".to_owned(), 0)];
    while let Some((value, place, depth)) = open.pop() {
        values += 1;
        if depth > MAX_DEPTH {
            return too_large("the nesting", &place, MAX_DEPTH);
        }
        if values > MAX_VALUES {
            return too_large("the number of values", &place, MAX_VALUES);
        }
        match value {
            Value::String(text) => bytes += text.len(),
            Value::Array(items) => {
                if place.ends_with("/enum") && items.len() > MAX_ENUM {
                    return too_large("the number of values of an enum", &place, MAX_ENUM);
                }
                if items.len() > MAX_ALL_OF && place.ends_with("/allOf") {
                    return too_large("the number of schemas", &place, MAX_ALL_OF);
                }
                let items = items.iter().enumerate().take(MAX_VALUES + 1 - values.min(MAX_VALUES));
                open.extend(items.map(|(i, item)| (item, format!("{place}/{i}"), depth + 1)));
            }
            Value::Object(fields) => {
                for (key, item) in fields {
                    bytes += key.len();
                    patterns += usize::from(key == "pattern" || place.ends_with("/patternProperties"));
                    if patterns > MAX_PATTERNS {
                        return too_large("the number of expressions", &place, MAX_PATTERNS);
                    }
                    let place = format!("{place}/{key}");
                    if COUNTS.contains(&key.as_str()) && item.as_u64().is_some_and(|n| n > MAX_COUNT) {
                        return too_large("a count", &place, MAX_COUNT as usize);
                    }
                    open.push((item, place, depth + 1));
                }
            }
            _ => {}
        }
        if bytes > MAX_BYTES {
            return too_large("the bytes of all strings", &place, MAX_BYTES);
        }
    }
    Ok(())
}

/// The subschemas of a schema, each with its pointer relative to it.
pub(super) fn subschemas(schema: &Value) -> Vec<(String, &Value)> {
    let mut out = Vec::new();
    let Some(fields) = schema.as_object() else { return out };
    for (key, value) in fields {
        match (key.as_str(), value) {
            ("properties" | "patternProperties" | "$defs" | "definitions", Value::Object(map)) => {
                out.extend(map.iter().map(|(name, v)| (format!("/{key}/{name}"), v)));
            }
            ("prefixItems" | "allOf" | "anyOf" | "oneOf", Value::Array(list)) => {
                out.extend(list.iter().enumerate().map(|(i, v)| (format!("/{key}/{i}"), v)));
            }
            ("items" | "additionalProperties" | "not", Value::Object(_)) => {
                out.push((format!("/{key}"), value));
            }
            _ => {}
        }
    }
    out
}
