//! `inspect`.
use anyhow::{Result, bail};
use crate::args::InspectArgs;
pub(crate) fn inspect(_args: &InspectArgs) -> Result<()> { bail!("not yet") }
