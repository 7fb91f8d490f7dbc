//! Endpoints for who runs the server.

use super::schema::{answer, count, either, flag, free, text};
use super::{Endpoint, PATH};
use serde_json::json;

pub(super) fn endpoints() -> Vec<Endpoint> {
    let ready = answer([("ready", flag())]);
    let stats = answer([
        ("model", either([text(), json!({"type": "null"})])),
        ("running", count(0)),
        ("queued", count(0)),
        ("memory_bytes", count(0)),
        ("uptime_seconds", count(0)),
    ]);
    let mut metrics = Endpoint::new("get", "/metrics", "Counts, in Prometheus' text format", text());
    metrics.answers = vec![("text/plain", text())];
    vec![
        open(Endpoint::new("get", "/health", "Whether the server lives", answer([("status", text())]))),
        open(Endpoint::new("get", "/ready", "Whether a model is in memory: else 503", ready)),
        metrics,
        Endpoint::new("get", "/api/stats", "The state in short", stats),
        open(Endpoint::new("get", PATH, "This document", free())),
    ]
}

fn open(mut endpoint: Endpoint) -> Endpoint {
    endpoint.open = true;
    endpoint
}
