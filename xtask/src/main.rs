//! Chores of the project that need its crates: `cargo xtask COMMAND`.
//!
//! Invariant: nothing here is part of what is shipped, and no other crate depends on it.
#![forbid(unsafe_code)]

mod synth;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Chores of the project.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write a model of real layer shapes with random weights, to measure speed with
    Synth(synth::SynthArgs),
}

fn main() -> ExitCode {
    let Command::Synth(args) = Cli::parse().command;
    match synth::synth(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
