//! The Ollama API: `/api/chat`, `/api/generate`, `/api/embed`, and what models there are.

mod messages;
mod options;
mod request;
mod response;
#[cfg(test)]
mod tests;
mod time;
