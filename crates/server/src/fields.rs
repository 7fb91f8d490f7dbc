//! [`Fields`]: a JSON object read field by field.
//!
//! Invariant: every error names the field by its whole path, and a field that nobody took is an error: nothing that a client
//! asks for is ignored without a word. A field that is null counts as absent.

use serde_json::{Map, Value};

use crate::Refusal;

/// An object whose fields are taken one by one.
#[derive(Debug)]
pub struct Fields {
    at: String,
    map: Map<String, Value>,
}

impl Fields {
    /// A request's body.
    ///
    /// # Errors
    /// Text that is no JSON object.
    pub fn of_body(body: &[u8]) -> Result<Fields, Refusal> {
        let bad = |message| Refusal::Bad { field: None, message };
        let value: Value =
            serde_json::from_slice(body).map_err(|e| bad(format!("the body is no valid JSON: {e}")))?;
        match value {
            Value::Object(map) => Ok(Fields { at: String::new(), map }),
            _ => Err(bad("the body must be a JSON object".to_owned())),
        }
    }

    /// An object that stands at `at`.
    ///
    /// # Errors
    /// Another kind of value.
    pub fn of(at: impl Into<String>, value: Value) -> Result<Fields, Refusal> {
        let at = at.into();
        match value {
            Value::Object(map) => Ok(Fields { at, map }),
            _ => Err(Refusal::bad(at, "expected an object")),
        }
    }

    /// A field's whole path.
    pub fn path(&self, name: &str) -> String {
        if self.at.is_empty() { name.to_owned() } else { format!("{}.{name}", self.at) }
    }

    /// An error about a field.
    pub fn wrong(&self, name: &str, message: impl Into<String>) -> Refusal {
        let path = self.path(name);
        let message = format!("{path}: {}", message.into());
        Refusal::bad(path, message)
    }

    /// A field of any kind.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.map.shift_remove(name).filter(|v| !v.is_null())
    }

    /// A text.
    ///
    /// # Errors
    /// Another kind of value, as for all that follow.
    pub fn text(&mut self, name: &str) -> Result<Option<String>, Refusal> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(name, "expected a string")),
        }
    }

    /// A text that must be there.
    pub fn required_text(&mut self, name: &str) -> Result<String, Refusal> {
        self.text(name)?.ok_or_else(|| self.wrong(name, "this field is required"))
    }

    /// A number.
    pub fn number(&mut self, name: &str) -> Result<Option<f32>, Refusal> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => match value.as_f64() {
                Some(x) => Ok(Some(x as f32)),
                None => Err(self.wrong(name, "expected a number")),
            },
        }
    }

    /// A number within bounds.
    pub fn number_in(&mut self, name: &str, low: f32, high: f32) -> Result<Option<f32>, Refusal> {
        match self.number(name)? {
            Some(x) if !(low..=high).contains(&x) => {
                Err(self.wrong(name, format!("{x} is out of range: expected {low} to {high}")))
            }
            x => Ok(x),
        }
    }

    /// A whole number, 0 or above.
    pub fn count(&mut self, name: &str) -> Result<Option<usize>, Refusal> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => match value.as_u64() {
                Some(n) => Ok(Some(usize::try_from(n).unwrap_or(usize::MAX))),
                None => Err(self.wrong(name, "expected a whole number, 0 or above")),
            },
        }
    }

    /// A whole number, negative ones included, as 64 bits: a seed.
    pub fn seed(&mut self, name: &str) -> Result<Option<u64>, Refusal> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => match value.as_u64().or_else(|| value.as_i64().map(i64::cast_unsigned)) {
                Some(n) => Ok(Some(n)),
                None => Err(self.wrong(name, "expected a whole number")),
            },
        }
    }

    /// True or false.
    pub fn flag(&mut self, name: &str) -> Result<Option<bool>, Refusal> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(self.wrong(name, "expected true or false")),
        }
    }

    /// A list.
    pub fn list(&mut self, name: &str) -> Result<Option<Vec<Value>>, Refusal> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(_) => Err(self.wrong(name, "expected a list")),
        }
    }

    /// An object.
    pub fn object(&mut self, name: &str) -> Result<Option<Fields>, Refusal> {
        let path = self.path(name);
        self.take(name).map(|value| Fields::of(path, value)).transpose()
    }

    /// A text or a list of at most `most` texts: stop strings.
    pub fn texts(&mut self, name: &str, most: usize) -> Result<Vec<String>, Refusal> {
        let list = match self.take(name) {
            None => return Ok(Vec::new()),
            Some(Value::String(text)) => vec![Value::String(text)],
            Some(Value::Array(list)) => list,
            Some(_) => return Err(self.wrong(name, "expected a string or a list of strings")),
        };
        if list.len() > most {
            return Err(self.wrong(name, format!("at most {most} are supported")));
        }
        let text = |value| match value {
            Value::String(text) if !text.is_empty() => Ok(text),
            _ => Err(self.wrong(name, "expected strings that are not empty")),
        };
        list.into_iter().map(text).collect()
    }

    /// A field that changes nothing here, whatever its value.
    pub fn ignore(&mut self, names: &[&str]) {
        for name in names {
            self.map.shift_remove(*name);
        }
    }

    /// A field of which only some values can be kept.
    pub fn only(&mut self, name: &str, allowed: &[Value], why: &str) -> Result<(), Refusal> {
        match self.take(name) {
            Some(value) if !allowed.contains(&value) => Err(self.wrong(name, why)),
            _ => Ok(()),
        }
    }

    /// Whatever is left.
    pub fn rest(self) -> Map<String, Value> {
        self.map
    }

    /// Refuses what nobody took.
    pub fn finish(self) -> Result<(), Refusal> {
        match self.map.iter().find(|(_, v)| !v.is_null()) {
            Some((name, _)) => Err(self.wrong(name, "this field is not supported")),
            None => Ok(()),
        }
    }
}
