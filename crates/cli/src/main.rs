//! The `turbospark` command: arguments in, text out. Everything it does is in a library.
//!
//! Invariant: standard output carries results only, standard error the rest; the exit status is 0 done, 1 failed, 2 wrong
//! usage, 130 stopped by Ctrl-C.
#![forbid(unsafe_code)]

mod args;
mod args_serve;
mod commands;
mod describe;
mod environment;
mod failure;
mod generation;
mod interrupt;
mod memory;
mod models;
mod output;
mod progress;
mod size;

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;

use args::{Cli, Command};
use commands::{bench, chat, eval, inspect, pages, plan, run, serve, trace};

fn main() -> ExitCode {
    let started = Instant::now();
    let cli = Cli::parse();
    let result = match &cli.command {
        Command::Run(args) => run::run(args, started),
        Command::Chat(args) => chat::chat(args),
        Command::Serve(args) => serve::serve(args),
        Command::Inspect(args) => inspect::inspect(args),
        Command::Plan(args) => plan::plan(args),
        Command::Bench(args) => bench::bench(args),
        Command::Eval(command) => eval::eval(command),
        Command::Trace(command) => trace::trace(command, started),
        Command::Man { dir } => pages::man(dir.as_deref()),
        Command::Completions { shell } => pages::completions(*shell),
    };
    failure::report(result)
}
