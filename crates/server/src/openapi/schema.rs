//! Words for JSON schemas, so that tables of fields stay readable.
//!
//! Invariant: an object allows no field but those it lists, as the endpoints do.

use serde_json::{Map, Value, json};

/// A field of an object: its name and schema.
pub(super) type Field = (&'static str, Value);

/// An object of these fields and no others.
pub(super) fn object(required: &[&str], fields: impl IntoIterator<Item = Field>) -> Value {
    let properties: Map<String, Value> =
        fields.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    let mut object = json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

/// An answer's object: later versions may add fields.
pub(super) fn answer(fields: impl IntoIterator<Item = Field>) -> Value {
    let mut object = object(&[], fields);
    object["additionalProperties"] = true.into();
    object
}

/// An object of any fields.
pub(super) fn free() -> Value {
    json!({"type": "object"})
}

pub(super) fn text() -> Value {
    json!({"type": "string"})
}

/// A text that has at least one character.
pub(super) fn filled() -> Value {
    json!({"type": "string", "minLength": 1})
}

pub(super) fn flag() -> Value {
    json!({"type": "boolean"})
}

/// A number from `low` to `high`.
pub(super) fn number(low: f64, high: f64) -> Value {
    json!({"type": "number", "minimum": low, "maximum": high})
}

/// A whole number from `low`.
pub(super) fn count(low: u64) -> Value {
    json!({"type": "integer", "minimum": low})
}

/// A whole number from `low` to `high`.
pub(super) fn count_to(low: u64, high: u64) -> Value {
    json!({"type": "integer", "minimum": low, "maximum": high})
}

/// A whole number that may be negative.
pub(super) fn seed() -> Value {
    json!({"type": "integer", "minimum": i64::MIN, "maximum": i64::MAX, "example": 1})
}

pub(super) fn list(items: Value) -> Value {
    let mut list = json!({"type": "array"});
    list["items"] = items;
    list
}

/// A list that has at least one item.
pub(super) fn some(items: Value) -> Value {
    let mut list = list(items);
    list["minItems"] = 1.into();
    list
}

/// One of these words.
pub(super) fn word(words: &[&str]) -> Value {
    json!({"type": "string", "enum": words})
}

/// The only value that can be kept.
pub(super) fn only(value: impl Into<Value>) -> Value {
    json!({"const": value.into()})
}

/// Any of these.
pub(super) fn either<const N: usize>(kinds: [Value; N]) -> Value {
    let mut any = json!({});
    any["anyOf"] = kinds.into_iter().collect();
    any
}

/// Up to 16 texts that end an answer, or one.
pub(super) fn stop() -> Value {
    either([filled(), json!({"type": "array", "items": filled(), "maxItems": 16})])
}

/// A schema with a word about it.
pub(super) fn about(mut schema: Value, what: &str) -> Value {
    schema["description"] = what.into();
    schema
}

/// The model's name.
pub(super) fn model() -> Value {
    about(text(), "A name from the list of models; `default` is the first")
}

/// A field that is accepted and changes nothing.
pub(super) fn idle(schema: Value) -> Value {
    about(schema, "Without effect")
}
