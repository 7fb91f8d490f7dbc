//! `bench`: prefill and decode speed, median and spread.
//!
//! Prefill feeds a prompt of random ids and computes the logits of its last row. Decode feeds single tokens to an empty
//! sequence, each the most likely after the one before. Neither tokenises, samples or prints.
//!
//! Where experts are read from the file, it is told how many of them were there and how many bytes came, in the measured runs
//! alone.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;
use turbospark_engine::{Engine, SplitMix64, Stats, Wanted, argmax, check_finite};

use crate::args::BenchArgs;
use crate::failure::Usage;
use crate::generation::open;
use crate::progress::Progress;
use crate::{memory, output};

/// Start of the random sequence of ids: every run feeds the same prompt.
const SEED: u64 = 42;

#[derive(Serialize)]
struct Report {
    model: String,
    architecture: String,
    threads: usize,
    kv: &'static str,
    /// From the start of opening the model until it could compute.
    open_seconds: f64,
    /// The most memory that the process has held.
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_bytes: Option<u64>,
    /// What the process may take, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    budget_bytes: Option<u64>,
    /// Experts that memory has room for.
    #[serde(skip_serializing_if = "Option::is_none")]
    expert_slots: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    io: Option<Reads>,
    results: Vec<Measured>,
}

/// How experts were read.
#[derive(Serialize)]
struct Reads {
    /// For people: the way that was chosen, and why.
    choice: String,
    /// What the way's trial read, in bytes (not MB) a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    trial_bytes_per_second: Option<f64>,
}

#[derive(Serialize)]
struct Measured {
    phase: Phase,
    tokens: usize,
    /// Median over the runs.
    tokens_per_second: f64,
    min: f64,
    max: f64,
    runs: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    experts: Option<Experts>,
}

/// What the experts of all measured runs came to, where they are read from the file.
#[derive(Serialize)]
struct Experts {
    /// Experts that layers asked for.
    requests: u64,
    /// Share of those that were there.
    hit_rate: f64,
    bytes_per_token: f64,
    /// Bytes read, over the time of the runs.
    bytes_per_second: f64,
}

impl Experts {
    fn new(stats: &Stats, tokens: usize, time: Duration) -> Experts {
        let bytes = stats.bytes_read as f64;
        Experts {
            requests: stats.requests,
            hit_rate: stats.hit_rate(),
            bytes_per_token: bytes / tokens as f64,
            bytes_per_second: bytes / time.as_secs_f64(),
        }
    }
}

#[derive(Serialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Phase {
    Prefill,
    Decode,
}

impl Phase {
    fn name(self) -> &'static str {
        match self {
            Phase::Prefill => "prefill",
            Phase::Decode => "decode",
        }
    }
}

pub(crate) fn bench(args: &BenchArgs) -> Result<()> {
    let lengths = |phase, list: &[usize]| list.iter().map(|&n| (phase, n)).collect::<Vec<_>>();
    let mut work = lengths(Phase::Prefill, &args.prefill);
    work.extend(lengths(Phase::Decode, &args.decode));
    work.retain(|&(_, tokens)| tokens > 0);
    let Some(longest) = work.iter().map(|&(_, tokens)| tokens).max() else {
        return Err(Usage("there is nothing to measure: --prefill and --decode are both 0".to_owned()).into());
    };
    let started = Instant::now();
    let engine = open(&args.model, Some(longest))?;
    let open_seconds = started.elapsed().as_secs_f64();
    let ids = random_ids(&engine, longest);
    let warm_up = usize::from(!args.cold);
    let bar = Progress::new("runs", work.len() * (warm_up + args.runs));
    let mut done = 0;
    let mut results = Vec::new();
    for (phase, tokens) in work {
        let mut rates = Vec::with_capacity(args.runs);
        let mut before = engine.expert_stats();
        let mut time = Duration::ZERO;
        for run in 0..warm_up + args.runs {
            if run == warm_up {
                before = engine.expert_stats();
            }
            let started = Instant::now();
            match phase {
                Phase::Prefill => prefill(&engine, &ids[..tokens])?,
                Phase::Decode => decode(&engine, ids[0], tokens)?,
            }
            if run >= warm_up {
                let took = started.elapsed();
                time += took;
                rates.push(tokens as f64 / took.as_secs_f64());
            }
            done += 1;
            bar.at(done, phase.name());
        }
        let stats = engine.expert_stats().since(&before);
        let experts = engine.io().map(|_| Experts::new(&stats, tokens * args.runs, time));
        results.push(Measured { experts, ..summarise(phase, tokens, rates) });
    }
    bar.finish();
    let report = Report {
        model: args.model.name().display().to_string(),
        architecture: engine.spec().architecture.clone(),
        threads: engine.threads(),
        kv: args.model.kv.name(),
        open_seconds,
        peak_bytes: memory::peak(),
        budget_bytes: engine.plan().map(|plan| plan.budget),
        expert_slots: engine
            .plan()
            .map(turbospark_experts::plan::MemoryPlan::slots)
            .filter(|_| engine.io().is_some()),
        io: engine.io().map(|io| Reads {
            choice: io.text.clone(),
            trial_bytes_per_second: io.mb_per_s.map(|rate| rate * 1e6),
        }),
        results,
    };
    if args.json {
        output::json(&report)?;
    } else {
        table(&report)?;
    }
    Ok(())
}

fn prefill(engine: &Engine, ids: &[u32]) -> Result<()> {
    let mut fine = Ok(());
    engine.feed(&mut engine.sequence(), ids, None, Wanted::Last, |_, logits| fine = check_finite(logits))?;
    Ok(fine?)
}

fn decode(engine: &Engine, first: u32, tokens: usize) -> Result<()> {
    let mut sequence = engine.sequence();
    let mut next = first;
    let mut fine = Ok(());
    for i in 1..=tokens {
        let fed = [next];
        engine.feed(&mut sequence, &fed, None, Wanted::Last, |_, logits| {
            next = argmax(logits) as u32;
            if i == tokens {
                fine = check_finite(logits);
            }
        })?;
    }
    Ok(fine?)
}

/// `n` ids of the vocabulary, without special tokens where the file has a tokenizer that tells.
fn random_ids(engine: &Engine, n: usize) -> Vec<u32> {
    let n_vocab = engine.spec().n_vocab;
    let tokenizer = engine.tokenizer().ok();
    let usable: Vec<u32> =
        (0..n_vocab as u32).filter(|&id| tokenizer.is_none_or(|t| !t.is_special(id))).collect();
    let mut random = SplitMix64::new(SEED);
    // A vocabulary of nothing but special tokens still has ids to feed.
    let mut draw = || usable.get(random.below(usable.len() as u64) as usize).copied().unwrap_or_default();
    (0..n).map(|_| draw()).collect()
}

fn summarise(phase: Phase, tokens: usize, mut rates: Vec<f64>) -> Measured {
    rates.sort_by(f64::total_cmp);
    let (runs, middle) = (rates.len(), rates.len() / 2);
    let median = if runs % 2 == 1 { rates[middle] } else { f64::midpoint(rates[middle - 1], rates[middle]) };
    Measured {
        phase,
        tokens,
        tokens_per_second: median,
        min: rates[0],
        max: rates[runs - 1],
        runs,
        experts: None,
    }
}

fn table(report: &Report) -> Result<()> {
    let Report { model, architecture, threads, kv, results, .. } = report;
    output::line(&format!("{model}: {architecture}, {threads} threads, KV cache {kv}, tokens per second"))?;
    output::line(&format!(
        "{:8} {:>7} {:>10} {:>10} {:>10} {:>5}",
        "phase", "tokens", "median", "min", "max", "runs"
    ))?;
    for r in results {
        output::line(&format!(
            "{:8} {:>7} {:>10.1} {:>10.1} {:>10.1} {:>5}",
            r.phase.name(),
            r.tokens,
            r.tokens_per_second,
            r.min,
            r.max,
            r.runs
        ))?;
        if let Some(e) = &r.experts {
            output::line(&format!(
                "{:8} {:.0} % of the experts were there, {} read a token, {} a second",
                "",
                100.0 * e.hit_rate,
                output::bytes(e.bytes_per_token as u64),
                output::bytes(e.bytes_per_second as u64)
            ))?;
        }
    }
    if let Some(io) = &report.io {
        output::line(&format!("experts are read by {}", io.choice))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_of_runs_lies_between_the_middle_two() {
        let m = summarise(Phase::Decode, 8, vec![4.0, 1.0, 3.0, 10.0]);
        assert_eq!((m.tokens_per_second, m.min, m.max, m.runs), (3.5, 1.0, 10.0, 4));
        assert_eq!(summarise(Phase::Prefill, 8, vec![9.0, 2.0, 5.0]).tokens_per_second, 5.0);
    }
}
