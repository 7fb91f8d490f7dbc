//! `trace`: the routing of a run, recorded, replayed through caches, and drawn.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use serde::Serialize;
use turbospark_engine::Engine;
use turbospark_experts::trace::{
    Curve, Recorder, ReplayResult, Replayed, Trace, TraceError, TraceHeader, TraceLayer, heat_map, hit_rates,
    replay, replay_optimal,
};
use turbospark_experts::{PolicyKind, RouteBatch, RouteSink};
use turbospark_model::FeedForward;

use super::run;
use crate::args::{TraceCommand, TracePlotArgs, TraceRecordArgs, TraceReplayArgs};
use crate::failure::Usage;
use crate::output;
use crate::progress::Progress;

/// What the offline optimum is called beside the policies.
const OPTIMUM: &str = "optimum";
/// Shares of all experts, in percent, that are tried unless told otherwise.
const SHARES: [usize; 4] = [10, 25, 50, 75];
/// Points of a curve.
const POINTS: usize = 20;

pub(crate) fn trace(command: &TraceCommand, started: Instant) -> Result<()> {
    match command {
        TraceCommand::Record(args) => record(args, started),
        TraceCommand::Replay(args) => replay_all(args),
        TraceCommand::Plot(args) => plot(args),
    }
}

/// The engine owns its sink; the command has to end the recording.
struct Shared(Arc<Mutex<Option<Recorder>>>);

impl RouteSink for Shared {
    fn routed(&mut self, batch: &RouteBatch<'_>) {
        if let Some(recorder) = self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            recorder.routed(batch);
        }
    }
}

fn record(args: &TraceRecordArgs, started: Instant) -> Result<()> {
    let recorder = Arc::new(Mutex::new(None));
    let ran = run::run_with(&args.run, started, |engine| {
        let header = header(engine);
        if header.n_experts() == 0 {
            let path = args.run.model.name().display();
            return Err(anyhow!("{path} has no routed experts, so there is nothing to record"));
        }
        *recorder.lock().unwrap_or_else(PoisonError::into_inner) = Some(Recorder::create(&args.out, header)?);
        engine.set_route_sink(Some(Box::new(Shared(recorder.clone()))));
        Ok(())
    });
    // What an interrupted run recorded is a trace too.
    if let Some(recorder) = recorder.lock().unwrap_or_else(PoisonError::into_inner).take() {
        recorder.finish()?;
    }
    ran
}

fn header(engine: &Engine) -> TraceHeader {
    let (spec, tensors) = (engine.spec(), engine.gguf().tensors());
    let mut top_k = 0;
    let mut layers = Vec::new();
    for layer in &spec.layers {
        let mut traced = TraceLayer { n_experts: 0, expert_bytes: 0 };
        if let FeedForward::Moe(moe) = &layer.feed_forward {
            let bytes: u64 = moe.tensors().map(|t| tensors[t.index].bytes).sum();
            traced.n_experts = moe.n_experts as u32;
            traced.expert_bytes = bytes / (moe.n_experts as u64).max(1);
            top_k = top_k.max(moe.top_k as u32);
        }
        layers.push(traced);
    }
    // A trace's name is bounded; a file's is not.
    let model = spec.name.as_ref().unwrap_or(&spec.architecture).chars().take(200).collect();
    TraceHeader { model, top_k, layers }
}

fn open(path: &Path) -> Result<Trace> {
    let trace = Trace::open(path)?;
    if trace.cut_off() {
        let path = path.display();
        output::note(&output::plain(&format!("warning: {path} ends within a record, which is left out")));
    }
    if trace.requests() == 0 {
        return Err(anyhow!(
            "{} holds no routes: record a run that gets to its prompt's end",
            path.display()
        ));
    }
    Ok(trace)
}

/// A policy, or the optimum.
#[derive(Clone, Copy)]
struct Choice(Option<PolicyKind>);

impl Choice {
    fn all() -> Vec<Choice> {
        PolicyKind::ALL.into_iter().map(Some).chain([None]).map(Choice).collect()
    }

    fn named(name: &str) -> Result<Choice> {
        if name == OPTIMUM {
            return Ok(Choice(None));
        }
        let known = name.parse().map_err(|e| Usage(format!("{e}, or `{OPTIMUM}`")))?;
        Ok(Choice(Some(known)))
    }

    fn name(self) -> &'static str {
        self.0.map_or(OPTIMUM, PolicyKind::name)
    }

    fn replay(self, trace: &Trace, slots: usize) -> Result<ReplayResult, TraceError> {
        match self.0 {
            Some(kind) => replay(trace, kind, slots),
            None => replay_optimal(trace, slots),
        }
    }
}

#[derive(Serialize)]
struct Report {
    model: String,
    experts: usize,
    requests: usize,
    results: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    policy: &'static str,
    slots: usize,
    memory: u64,
    prefill: Part,
    decode: Part,
}

#[derive(Serialize)]
struct Part {
    requests: u64,
    hits: u64,
    misses: u64,
    hit_rate: f64,
    bytes: u64,
}

impl From<Replayed> for Part {
    fn from(replayed: Replayed) -> Part {
        let Replayed { counts, bytes } = replayed;
        let (misses, hit_rate) = (counts.misses(), counts.hit_rate());
        Part { requests: counts.requests, hits: counts.hits, misses, hit_rate, bytes }
    }
}

fn replay_all(args: &TraceReplayArgs) -> Result<()> {
    let choices = match &args.policy[..] {
        [] => Choice::all(),
        names => names.iter().map(|name| Choice::named(name)).collect::<Result<_>>()?,
    };
    let trace = open(&args.trace)?;
    let header = trace.header();
    let all = header.n_experts();
    let mut sizes = args.slots.clone();
    if let Some(memory) = args.memory {
        let slots = memory / header.slot_bytes().max(1);
        if slots == 0 {
            let needs = output::bytes(header.slot_bytes());
            return Err(Usage(format!("--memory holds no expert: one takes {needs}")).into());
        }
        sizes.push(usize::try_from(slots).unwrap_or(usize::MAX));
    }
    if sizes.is_empty() {
        sizes.extend(SHARES.map(|percent| (all * percent / 100).max(1)));
    }
    // More slots than experts stay empty.
    sizes.iter_mut().for_each(|slots| *slots = (*slots).min(all));
    let bar = Progress::new("replays", sizes.len() * choices.len());
    let mut results = Vec::new();
    for &slots in &sizes {
        for choice in &choices {
            let ReplayResult { policy, prefill, decode, .. } = choice.replay(&trace, slots)?;
            let memory = header.slot_bytes().saturating_mul(slots as u64);
            results.push(Row { policy, slots, memory, prefill: prefill.into(), decode: decode.into() });
            bar.at(results.len(), choice.name());
        }
    }
    bar.finish();
    let report = Report { model: header.model.clone(), experts: all, requests: trace.requests(), results };
    if args.json {
        output::json(&report)?;
    } else {
        table(&report)?;
    }
    Ok(())
}

fn table(report: &Report) -> Result<()> {
    let Report { model, experts, requests, results } = report;
    let (experts, requests) = (output::count(*experts), output::count(*requests));
    output::line(&output::plain(&format!("{model}: {experts} experts, {requests} requests")))?;
    output::line(&format!(
        "{:12} {:>7} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "policy", "slots", "memory", "prefill", "read", "decode", "read"
    ))?;
    let rate = |part: &Part| match part.requests {
        0 => "-".to_owned(),
        _ => format!("{:.1} %", 100.0 * part.hit_rate),
    };
    for Row { policy, slots, memory, prefill, decode } in results {
        output::line(&format!(
            "{policy:12} {slots:>7} {:>10} {:>10} {:>10} {:>10} {:>10}",
            output::bytes(*memory),
            rate(prefill),
            output::bytes(prefill.bytes),
            rate(decode),
            output::bytes(decode.bytes)
        ))?;
    }
    Ok(())
}

fn plot(args: &TracePlotArgs) -> Result<()> {
    let trace = open(&args.trace)?;
    let header = trace.header();
    let all = header.n_experts();
    let mut sizes: Vec<usize> = (1..=POINTS).map(|i| (all * i / POINTS).max(1)).collect();
    sizes.dedup();
    let choices = Choice::all();
    let bar = Progress::new("replays", sizes.len() * choices.len());
    let mut done = 0;
    let mut curves = Vec::new();
    for choice in choices {
        let mut points = Vec::new();
        for &slots in &sizes {
            let rate = choice.replay(&trace, slots)?.total().counts.hit_rate();
            points.push((header.slot_bytes().saturating_mul(slots as u64), rate));
            done += 1;
            bar.at(done, choice.name());
        }
        curves.push(Curve { name: choice.name().to_owned(), points });
    }
    bar.finish();
    let folder = args.out.display();
    fs::create_dir_all(&args.out).with_context(|| format!("cannot make the folder {folder}"))?;
    for (name, svg) in
        [("experts.svg", heat_map(&trace)), ("hit-rates.svg", hit_rates(&header.model, &curves))]
    {
        let path = args.out.join(name);
        fs::write(&path, svg).with_context(|| format!("cannot write {}", path.display()))?;
        output::line(&path.display().to_string())?;
    }
    Ok(())
}
