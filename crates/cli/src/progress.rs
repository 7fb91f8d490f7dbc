//! A progress bar on standard error for work that takes more than a second; nothing where that is not a terminal.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shorter work shows no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// A bar that appears when the work turns out to be long.
pub(crate) struct Progress {
    bar: ProgressBar,
    started: Instant,
    terminal: bool,
}

impl Progress {
    pub(crate) fn new(unit: &str, total: usize) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::hidden());
        let template = format!("{{bar:30}} {{pos}} of {{len}} {unit}, {{eta}} left {{msg}}");
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style);
        }
        Progress { bar, started: Instant::now(), terminal: stderr().is_terminal() }
    }

    /// Notes how much is done.
    pub(crate) fn at(&self, done: usize, message: &str) {
        if self.terminal && self.bar.is_hidden() && self.started.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        if !message.is_empty() {
            self.bar.set_message(message.to_owned());
        }
        self.bar.set_position(done as u64);
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
