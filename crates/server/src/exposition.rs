//! Counts of loaded models in Prometheus' text format.

use std::fmt::Write as _;
use std::sync::Arc;

use turbospark_experts::plan::MemoryPlan;

use crate::model::Model;

/// A metric's name, kind, help, and its values by labels.
type Family = (&'static str, &'static str, &'static str, Vec<(String, f64)>);

/// Writes everything that schedulers, engines and plans count. Waits for a running step.
pub(crate) fn models(out: &mut String, loaded: &[Arc<Model>], budget: Option<u64>) {
    let mut all: Vec<Family> = vec![
        ("requests_running", "gauge", "Requests that run.", Vec::new()),
        ("requests_queued", "gauge", "Requests that wait.", Vec::new()),
        ("prompt_rows_cached_total", "counter", "Prompt tokens that were known.", Vec::new()),
        ("prefix_hits_total", "counter", "Requests that found a known prefix.", Vec::new()),
        ("fed_rows_total", "counter", "Rows fed to the model.", Vec::new()),
        ("steps_total", "counter", "Passes through the model.", Vec::new()),
        ("requests_cancelled_total", "counter", "Requests that were cancelled.", Vec::new()),
        ("requests_failed_total", "counter", "Requests that failed.", Vec::new()),
        ("kv_reserved_bytes", "gauge", "What the KV caches of running requests may come to.", Vec::new()),
        ("kv_prefix_bytes", "gauge", "Kept prefixes.", Vec::new()),
        ("kv_limit_bytes", "gauge", "What both may take.", Vec::new()),
        ("expert_requests_total", "counter", "Experts or layers that were asked for.", Vec::new()),
        ("expert_hits_total", "counter", "Those of them that were in memory.", Vec::new()),
        ("disk_read_bytes_total", "counter", "Bytes of weights read.", Vec::new()),
    ];
    let mut memory = Vec::new();
    for model in loaded {
        let (metrics, experts) = (model.handle.metrics(), model.engine().expert_stats());
        let label = format!("model=\"{}\"", escape(&model.name));
        let values = [
            metrics.running as f64,
            model.handle.queued() as f64,
            metrics.cached_tokens as f64,
            metrics.prefix_hits as f64,
            metrics.fed_rows as f64,
            metrics.steps as f64,
            metrics.cancelled as f64,
            metrics.failed as f64,
            metrics.kv_reserved as f64,
            metrics.prefix_bytes as f64,
            metrics.kv_limit as f64,
            experts.requests as f64,
            experts.hits as f64,
            experts.bytes_read as f64,
        ];
        for (row, value) in all.iter_mut().zip(values) {
            row.3.push((label.clone(), value));
        }
        for (role, bytes) in model.engine().plan().map(MemoryPlan::parts).unwrap_or_default() {
            memory.push((format!("{label},role=\"{}\"", escape(&role)), bytes as f64));
        }
    }
    all.push(("memory_bytes", "gauge", "Memory by role, as planned.", memory));
    let budget = budget.map(|b| (String::new(), b as f64)).into_iter().collect();
    all.push(("memory_budget_bytes", "gauge", "What all models together may take.", budget));
    for (name, kind, help, rows) in all {
        let _ = writeln!(out, "# HELP turbospark_{name} {help}\n# TYPE turbospark_{name} {kind}");
        for (labels, value) in rows {
            let labels = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
            let _ = writeln!(out, "turbospark_{name}{labels} {value}");
        }
    }
}

/// A label's value.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
