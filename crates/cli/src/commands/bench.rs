//! `bench`.
use anyhow::{Result, bail};
use crate::args::BenchArgs;
pub(crate) fn bench(_args: &BenchArgs) -> Result<()> { bail!("not yet") }
