//! `man` and `completions`, generated from the definitions of the arguments.

use std::fs;
use std::io::{Write, stdout};
use std::path::Path;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;

pub(crate) fn man(dir: Option<&Path>) -> Result<()> {
    let command = Cli::command();
    let Some(dir) = dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        stdout().write_all(&page)?;
        return Ok(());
    };
    let written = fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(command, dir));
    written.with_context(|| format!("cannot write man pages to {}", dir.display()))
}

pub(crate) fn completions(shell: Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "turbospark", &mut script);
    stdout().write_all(&script)?;
    Ok(())
}
