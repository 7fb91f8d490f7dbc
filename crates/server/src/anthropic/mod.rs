//! The Anthropic API: `/v1/messages` and `/v1/messages/count_tokens`.

mod content;
mod error;
mod handlers;
mod request;
mod response;
#[cfg(test)]
mod tests;

pub(crate) use handlers::{refuse, router};
