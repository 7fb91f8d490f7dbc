//! The real binary, run as a user runs it.

#[path = "cli/bad_input.rs"]
mod bad_input;
#[cfg(target_os = "linux")]
#[path = "cli/budget.rs"]
mod budget;
#[path = "cli/chat.rs"]
mod chat;
#[cfg(feature = "demo")]
#[path = "cli/demo.rs"]
mod demo;
#[path = "cli/evaluate.rs"]
mod evaluate;
#[path = "cli/faults.rs"]
mod faults;
#[path = "cli/inspect_bench.rs"]
mod inspect_bench;
#[path = "cli/larger.rs"]
mod larger;
#[path = "cli/plan.rs"]
mod plan;
#[path = "cli/real_models.rs"]
mod real_models;
#[path = "cli/run.rs"]
mod run;
#[path = "cli/support.rs"]
mod support;
#[path = "cli/trace.rs"]
mod trace;
