//! Fields that must be there, and fields that must not: what the Anthropic and Ollama APIs ask of [`Fields`] beyond the OpenAI API.

use serde_json::{Map, Value};

use crate::Refusal;
use crate::fields::Fields;

impl Fields {
    /// A field of any kind that must be there.
    pub(crate) fn required(&mut self, name: &str) -> Result<Value, Refusal> {
        self.take(name).ok_or_else(|| self.wrong(name, "this field is required"))
    }

    /// A list that must be there.
    pub(crate) fn required_list(&mut self, name: &str) -> Result<Vec<Value>, Refusal> {
        self.list(name)?.ok_or_else(|| self.wrong(name, "this field is required"))
    }

    /// A whole number that must be there.
    pub(crate) fn required_count(&mut self, name: &str) -> Result<usize, Refusal> {
        self.count(name)?.ok_or_else(|| self.wrong(name, "this field is required"))
    }

    /// An object that must be there.
    pub(crate) fn required_object(&mut self, name: &str) -> Result<Fields, Refusal> {
        self.object(name)?.ok_or_else(|| self.wrong(name, "this field is required"))
    }

    /// An object that is passed on as it is.
    pub(crate) fn map(&mut self, name: &str) -> Result<Option<Map<String, Value>>, Refusal> {
        Ok(self.object(name)?.map(Fields::rest))
    }

    /// A whole number that may be negative.
    pub(crate) fn integer(&mut self, name: &str) -> Result<Option<i64>, Refusal> {
        Ok(self.seed(name)?.map(u64::cast_signed))
    }

    /// A field that can't take effect; empty ones ask for nothing.
    pub(crate) fn refuse(&mut self, name: &str, why: &str) -> Result<(), Refusal> {
        self.only(name, &["".into(), Value::Array(Vec::new())], why)
    }
}
