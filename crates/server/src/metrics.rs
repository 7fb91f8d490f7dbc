//! What the server counts, apart from what schedulers count themselves.
//!
//! Invariant: counting never waits and never fails a request.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use crate::Usage;

/// Upper bounds in seconds.
const BOUNDS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 300.0];

/// Counts of the whole server since its start.
#[derive(Debug, Default)]
pub struct Metrics {
    requests: Mutex<BTreeMap<(String, u16), u64>>,
    /// Seconds from a request to its first token.
    pub(crate) first_token: Histogram,
    /// Seconds between tokens.
    pub(crate) per_token: Histogram,
    prompt_tokens: AtomicU64,
    cached_tokens: AtomicU64,
    completion_tokens: AtomicU64,
    /// Bits of the last answer's tokens per second.
    rate: AtomicU64,
}

/// Observations by size.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BOUNDS.len()],
    count: AtomicU64,
    nanoseconds: AtomicU64,
}

impl Histogram {
    pub(crate) fn observe(&self, seconds: f64) {
        if let Some(bucket) = BOUNDS.iter().position(|&bound| seconds <= bound) {
            self.buckets[bucket].fetch_add(1, Relaxed);
        }
        self.count.fetch_add(1, Relaxed);
        self.nanoseconds.fetch_add((seconds * 1e9) as u64, Relaxed);
    }

    fn write(&self, out: &mut String, name: &str, help: &str) {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} histogram");
        let mut sum = 0;
        for (bound, bucket) in BOUNDS.iter().zip(&self.buckets) {
            sum += bucket.load(Relaxed);
            let _ = writeln!(out, "{name}_bucket{{le=\"{bound}\"}} {sum}");
        }
        let count = self.count.load(Relaxed).max(sum);
        let _ = writeln!(out, "{name}_bucket{{le=\"+Inf\"}} {count}");
        let _ = writeln!(out, "{name}_sum {}", self.nanoseconds.load(Relaxed) as f64 / 1e9);
        let _ = writeln!(out, "{name}_count {count}");
    }
}

impl Metrics {
    pub(crate) fn request(&self, endpoint: &str, status: u16) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((endpoint.to_owned(), status)).or_default() += 1;
    }

    pub(crate) fn answered(&self, usage: &Usage) {
        self.prompt_tokens.fetch_add(usage.prompt_tokens as u64, Relaxed);
        self.cached_tokens.fetch_add(usage.cached_tokens as u64, Relaxed);
        self.completion_tokens.fetch_add(usage.completion_tokens as u64, Relaxed);
        let time = usage.total - usage.first_token;
        if usage.completion_tokens > 1 && time > 0.0 {
            let rate = (usage.completion_tokens - 1) as f64 / time;
            self.rate.store(rate.to_bits(), Relaxed);
        }
    }

    /// Tokens per second of the answer that ended last; 0 before.
    pub fn tokens_per_second(&self) -> f64 {
        f64::from_bits(self.rate.load(Relaxed))
    }

    /// The server's own metrics in Prometheus' text format.
    pub(crate) fn write(&self, out: &mut String) {
        let _ = writeln!(out, "# HELP turbospark_http_requests_total Requests by endpoint and status.");
        let _ = writeln!(out, "# TYPE turbospark_http_requests_total counter");
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        for ((endpoint, status), n) in requests.iter() {
            let _ = writeln!(
                out,
                "turbospark_http_requests_total{{endpoint=\"{endpoint}\",status=\"{status}\"}} {n}"
            );
        }
        drop(requests);
        for (name, help, value) in [
            ("prompt_tokens", "Tokens of prompts of answers that ended.", &self.prompt_tokens),
            ("cached_tokens", "Those of them that were known.", &self.cached_tokens),
            ("completion_tokens", "Tokens generated.", &self.completion_tokens),
        ] {
            let _ = writeln!(
                out,
                "# HELP turbospark_{name}_total {help}\n# TYPE turbospark_{name}_total counter"
            );
            let _ = writeln!(out, "turbospark_{name}_total {}", value.load(Relaxed));
        }
        self.first_token.write(out, "turbospark_first_token_seconds", "Time from request to first token.");
        self.per_token.write(out, "turbospark_token_seconds", "Time between tokens.");
    }
}
