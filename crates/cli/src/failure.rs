//! From an error to a message and an exit status.
//!
//! Invariant: one message with its causes, no backtrace; a reader that closed our output is no failure.

use std::io;
use std::process::ExitCode;

use anyhow::Error;

use crate::output;

/// A request that can't be meant: exit status 2.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Stopped by Ctrl-C: exit status 130, as shells expect of a command that SIGINT ended.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("stopped")
    }
}

impl std::error::Error for Interrupted {}

/// Prints the error, if there is one, and gives the exit status.
pub(crate) fn report(result: Result<(), Error>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    let closed = |e: &io::Error| e.kind() == io::ErrorKind::BrokenPipe;
    if error.downcast_ref::<io::Error>().is_some_and(closed) {
        return ExitCode::SUCCESS;
    }
    if error.is::<Interrupted>() {
        return ExitCode::from(130);
    }
    // Everything that reads says what it read: an error of input and output alone is of standard output.
    let bare = error.is::<io::Error>() && error.chain().count() == 1;
    let place = if bare { "cannot write to standard output: " } else { "" };
    let mut message = format!("error: {place}{error}");
    let mut last = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // Some errors repeat their cause in their own text.
        if !last.contains(&cause) {
            message.push_str(": ");
            message.push_str(&cause);
            last = cause;
        }
    }
    output::note(&output::plain(&message));
    ExitCode::from(if error.is::<Usage>() { 2 } else { 1 })
}
