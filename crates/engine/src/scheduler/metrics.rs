//! [`SchedulerMetrics`]: what a scheduler counts.

use std::time::Duration;

/// Counts since the scheduler was started, and its state after the last step.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SchedulerMetrics {
    /// Requests that run.
    pub running: usize,
    /// Requests that were started.
    pub requests: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests that were cancelled or whose receiver has gone, those that only waited included.
    pub cancelled: u64,
    /// Tokens of the prompts of all requests that were started.
    pub prompt_tokens: u64,
    /// Those of them that were known and not fed.
    pub cached_tokens: u64,
    /// Requests that found such tokens.
    pub prefix_hits: u64,
    /// Rows that were fed, of prompts and answers.
    pub fed_rows: u64,
    /// Tokens that were chosen.
    pub generated_tokens: u64,
    /// Passes through the model.
    pub steps: u64,
    /// Rows of the last one.
    pub last_rows: usize,
    /// Bytes that the KV caches of running requests may come to.
    pub kv_reserved: u64,
    /// Bytes of the prefixes that are kept.
    pub prefix_bytes: u64,
    /// Bytes that both may take together.
    pub kv_limit: u64,
    /// How long a request took of late, from start to end.
    pub mean_request: Duration,
}

impl SchedulerMetrics {
    /// Lets a request that took `time` move the mean.
    pub(super) fn ended(&mut self, time: Duration) {
        self.mean_request =
            if self.mean_request.is_zero() { time } else { (self.mean_request * 7 + time) / 8 };
    }
}
