//! What the Ollama API tells of models.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use super::time::rfc3339;
use crate::ModelInfo;

/// An entry of `/api/tags`.
pub(crate) fn tag(info: &ModelInfo) -> Value {
    json!({
        "name": info.name,
        "model": info.name,
        "modified_at": modified(info),
        "size": info.size_bytes,
        "digest": digest(info),
        "details": details(info),
    })
}

/// An entry of `/api/ps`.
pub(crate) fn running(info: &ModelInfo, until: SystemTime) -> Value {
    json!({
        "name": info.name,
        "model": info.name,
        "size": info.size_bytes,
        "digest": digest(info),
        "details": details(info),
        "expires_at": rfc3339(until),
        "size_vram": 0,
        "context_length": info.context,
    })
}

/// The answer of `/api/show`.
pub(crate) fn show(info: &ModelInfo) -> Value {
    let mut model_info = Map::new();
    let mut fact = |key: String, value: Value| model_info.insert(key, value);
    fact("general.architecture".to_owned(), info.architecture.clone().into());
    fact("general.parameter_count".to_owned(), info.parameter_count.into());
    fact(format!("{}.context_length", info.architecture), info.context.into());
    fact(format!("{}.embedding_length", info.architecture), info.hidden.into());
    let mut capabilities = vec![if info.embeds { "embedding" } else { "completion" }];
    // What a template can say of tools and reasoning is seen by the names that it uses.
    let says = |word: &str| info.template_source.as_ref().is_some_and(|source| source.contains(word));
    if says("tools") {
        capabilities.push("tools");
    }
    if says("enable_thinking") || says("reasoning_effort") {
        capabilities.push("thinking");
    }
    json!({
        "modelfile": "",
        "parameters": "",
        "template": info.template_source.as_deref().unwrap_or_default(),
        "details": details(info),
        "model_info": model_info,
        "capabilities": capabilities,
        "modified_at": modified(info),
    })
}

fn details(info: &ModelInfo) -> Value {
    json!({
        "parent_model": "",
        "format": "gguf",
        "family": info.architecture,
        "families": [info.architecture],
        "parameter_size": size(info.parameter_count),
        "quantization_level": info.quantization,
    })
}

/// `134.5M`, `30.5B`.
fn size(parameters: u64) -> String {
    match parameters {
        0..1_000_000_000 => format!("{:.1}M", parameters as f64 / 1e6),
        _ => format!("{:.1}B", parameters as f64 / 1e9),
    }
}

/// Stands for a hash of the file, which would take minutes.
fn digest(info: &ModelInfo) -> String {
    format!("{:064x}", info.fingerprint)
}

fn modified(info: &ModelInfo) -> String {
    rfc3339(UNIX_EPOCH + Duration::from_secs(info.modified))
}
