//! The Ollama API: `/api/chat`, `/api/generate`, `/api/embed`, and what models there are.

mod handlers;
mod messages;
mod models;
mod options;
mod request;
mod response;
#[cfg(test)]
mod tests;
mod time;

pub(crate) use handlers::{refuse, router};

/// The name that the server knows: clients of this API write `:latest` behind names without a tag.
fn name(model: &str) -> &str {
    model.strip_suffix(":latest").unwrap_or(model)
}
