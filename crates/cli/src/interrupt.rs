//! Ctrl-C: the first asks the work in progress to stop, a second one ends the program.

use anyhow::{Context, Result};
use turbospark_engine::CancelFlag;

/// A flag that Ctrl-C raises. Where it is raised already, Ctrl-C ends the program with status 130.
pub(crate) fn flag() -> Result<CancelFlag> {
    let flag = CancelFlag::new();
    let raised = flag.clone();
    ctrlc::set_handler(move || {
        if raised.is_cancelled() {
            std::process::exit(130);
        }
        raised.cancel();
    })
    .context("cannot listen for Ctrl-C")?;
    Ok(flag)
}
