//! Counts and log-probabilities in OpenAI's forms.

use serde_json::{Value, json};

use crate::{Finish, TokenInfo, Usage};

/// `usage` of chat and text completions; of several answers to one prompt the prompt counts once.
pub(super) fn usage(all: &[Usage]) -> Value {
    let first = all.first().copied().unwrap_or_default();
    let completion: usize = all.iter().map(|u| u.completion_tokens).sum();
    let reasoning: usize = all.iter().map(|u| u.reasoning_tokens).sum();
    json!({
        "prompt_tokens": first.prompt_tokens,
        "completion_tokens": completion,
        "total_tokens": first.prompt_tokens + completion,
        "prompt_tokens_details": {"cached_tokens": first.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    })
}

/// `finish_reason`.
pub(super) fn finish_reason(finish: &Finish) -> &'static str {
    match finish {
        Finish::Stop | Finish::StopString(_) => "stop",
        Finish::Length => "length",
        Finish::Calls => "tool_calls",
        Finish::Cancelled => "cancelled",
    }
}

/// `logprobs.content` of chat completions.
pub(super) fn chat_logprobs(tokens: &[TokenInfo]) -> Vec<Value> {
    let one = |bytes: &[u8], logprob: f32| json!({"token": String::from_utf8_lossy(bytes), "logprob": finite(logprob), "bytes": bytes});
    let with_top = |token: &TokenInfo| {
        let mut object = one(&token.bytes, token.logprob);
        let top: Vec<Value> = token.top.iter().map(|(bytes, logprob)| one(bytes, *logprob)).collect();
        object["top_logprobs"] = top.into();
        object
    };
    tokens.iter().map(with_top).collect()
}

/// JSON has no infinities; this is the number that OpenAI writes for what is as good as impossible.
pub(super) fn finite(logprob: f32) -> f32 {
    logprob.max(-9999.0)
}
