//! The hit rate of each cache policy and of the offline optimum on made-up traces, or on a recorded one, as Markdown tables:
//! `cargo run --release -p turbospark-experts --example policies -- [TRACE]`.

use std::path::Path;

use turbospark_experts::PolicyKind;
use turbospark_experts::trace::{MadeUp, ReplayResult, Trace, TraceError, generate, replay, replay_optimal};

const PERCENT: [usize; 5] = [5, 10, 25, 50, 75];

fn main() -> Result<(), TraceError> {
    if let Some(path) = std::env::args_os().nth(1) {
        return table(&path.to_string_lossy(), &Trace::open(Path::new(&path))?);
    }
    let base = MadeUp::sixteen_by_sixty_four();
    let steady = MadeUp { drift: 0.0, repeat: 0.0, zipf: 1.0, ..base.clone() };
    let moving = MadeUp { drift: 0.5, repeat: 0.4, ..base.clone() };
    let gpt = MadeUp { layers: 24, experts: 32, top_k: 4, ..base.clone() };
    let qwen = MadeUp { layers: 48, experts: 128, ..base.clone() };
    for (name, made_up) in [
        ("16 x 64, 8 a row", base),
        ("the same, more skewed, without drift and repeats", steady),
        ("the same, with ten times the drift, more repeats", moving),
        ("24 x 32, 4 a row", gpt),
        ("48 x 128, 8 a row", qwen),
    ] {
        table(name, &generate(&made_up)?)?;
    }
    Ok(())
}

fn table(name: &str, trace: &Trace) -> Result<(), TraceError> {
    println!("\n| {name} | {} |", PERCENT.map(|p| format!("{p} %")).join(" | "));
    println!("|{}", "---|".repeat(PERCENT.len() + 1));
    let all = trace.header().n_experts();
    let row = |name: &str, run: &dyn Fn(usize) -> Result<ReplayResult, TraceError>| {
        let mut cells = Vec::new();
        for percent in PERCENT {
            let result = run((all * percent / 100).max(1))?;
            cells.push(format!("{:.1}", 100.0 * result.decode.counts.hit_rate()));
        }
        println!("| {name} | {} |", cells.join(" | "));
        Ok(())
    };
    for kind in PolicyKind::ALL {
        row(kind.name(), &|slots| replay(trace, kind, slots))?;
    }
    row("optimum", &|slots| replay_optimal(trace, slots))
}
