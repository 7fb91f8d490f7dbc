//! `chat`.
use anyhow::{Result, bail};
use crate::args::ChatArgs;
pub(crate) fn chat(_args: &ChatArgs) -> Result<()> { bail!("not yet") }
