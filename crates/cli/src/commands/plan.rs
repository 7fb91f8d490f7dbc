//! `plan`: where each byte of a memory budget would go, and what the disk then has to give. Reads the file's header alone.

use std::fmt::Write as _;
use std::io::{Write, stdout};

use anyhow::{Result, anyhow};
use serde_json::{Value as Json, json};
use turbospark_engine::{EngineOptions, plan_memory};
use turbospark_experts::plan::{self, Available, DensePlan, MemoryPlan, Placement};
use turbospark_format::Gguf;
use turbospark_model::ModelSpec;

use crate::args::PlanArgs;
use crate::models;
use crate::output::{self, bytes, count};
use crate::size::mib;

/// Shares of hits that are shown beside the one of uniform routing.
const HIT_RATES: [f64; 4] = [0.0, 0.25, 0.5, 0.75];

pub(crate) fn plan(args: &PlanArgs) -> Result<()> {
    let gguf = Gguf::open(models::find(&args.model)?)?;
    let spec = ModelSpec::from_gguf(&gguf)?;
    let options = EngineOptions {
        context: args.context,
        kv: args.kv.into(),
        threads: args.threads,
        memory: args.memory,
        ..EngineOptions::default()
    };
    let available = plan::available();
    // The engine opens by the same function.
    let (context, Some(plan)) = plan_memory(&spec, &gguf, &options)? else {
        return Err(anyhow!("this system doesn't tell how much memory is free: give --memory"));
    };
    let report = Report { args, context, available: available.as_ref(), plan: &plan };
    if args.json {
        output::json(&report.json())?;
    } else {
        stdout().lock().write_all(report.text()?.as_bytes())?;
    }
    Ok(())
}

struct Report<'a> {
    args: &'a PlanArgs,
    context: usize,
    available: Option<&'a Available>,
    plan: &'a MemoryPlan,
}

impl Report<'_> {
    /// Bytes a second that the disk gives.
    fn disk(&self) -> Option<f64> {
        self.args.disk.map(|mb| f64::from(mb) * 1e6)
    }

    /// Shares of hits, ascending, with that of uniform routing among them.
    fn hit_rates(&self) -> Vec<(f64, bool)> {
        let mut rates: Vec<(f64, bool)> = HIT_RATES.iter().map(|&rate| (rate, false)).collect();
        rates.push((self.plan.uniform_hit_rate(), true));
        rates.sort_by(|a, b| a.0.total_cmp(&b.0));
        rates
    }

    fn text(&self) -> Result<String> {
        let Report { args, context, available, plan } = self;
        let mut out = String::new();
        let (kv, budget) = (args.kv.name(), mib(plan.budget));
        writeln!(out, "{}: {budget} for a context of {} ({kv})", args.model.display(), count(*context))?;
        match available {
            Some(a) if args.memory.is_none() => {
                writeln!(out, "{} leaves that much, {} kept back", a.limited_by, mib(a.margin))?;
            }
            Some(a) if a.bytes < plan.budget => {
                writeln!(out, "warning: {} leaves only {}", a.limited_by, mib(a.bytes))?;
            }
            _ => {}
        }
        writeln!(out)?;
        let mut parts = plan.parts();
        parts.push(("unused".to_owned(), plan.unused()));
        for (name, part) in &parts {
            let share = 100.0 * *part as f64 / plan.budget.max(1) as f64;
            writeln!(out, "  {name:28} {:>14} {share:>5.1} %", mib(*part))?;
        }
        let streams_layers = matches!(plan.placement, Placement::Layers(_));
        writeln!(out, "\n{}", if streams_layers { "Layers" } else { "Experts" })?;
        match plan.placement {
            Placement::Dense => writeln!(out, "  none: every weight is used for every token")?,
            Placement::Resident { .. } => writeln!(out, "  all {} stay in memory", count(plan.n_experts()))?,
            Placement::Experts { slots, slot } => {
                let per_layer = slots as f64 / plan.layers().len().max(1) as f64;
                let (all, layers) = (count(plan.n_experts()), plan.layers().len());
                writeln!(
                    out,
                    "  {} slots of {} for {all} in {layers} layers: {per_layer:.1} a layer",
                    count(slots),
                    mib(slot)
                )?;
                writeln!(
                    out,
                    "  a token uses {}, a prompt of {} tokens reads at most {}",
                    bytes(plan.used_per_token()),
                    count(plan.rows),
                    bytes(plan.read_per_prompt(plan.rows))
                )?;
                writeln!(out)?;
                let disk =
                    args.disk.map_or(String::new(), |mb| format!("{:>26}", format!("tokens/s at {mb} MB/s")));
                writeln!(out, "  {:>6}  {:>14}{disk}", "hits", "read a token")?;
                for (rate, uniform) in self.hit_rates() {
                    let rated = self.disk().and_then(|disk| plan.tokens_per_second(rate, disk));
                    let rated = rated.map_or(String::new(), |r| format!("{r:>26.2}"));
                    let note = if uniform { "  if all experts are equally likely" } else { "" };
                    writeln!(
                        out,
                        "  {:>4.0} %  {:>14}{rated}{note}",
                        100.0 * rate,
                        bytes(plan.read_per_token(rate) as u64)
                    )?;
                }
            }
            Placement::Layers(dense) => self.layers(&mut out, &dense)?,
        }
        writeln!(out, "\nBudgets")?;
        writeln!(out, "  smallest that opens          {:>14}", mib(plan.floor))?;
        if plan.n_experts() > 0 {
            writeln!(out, "  a token's experts stay       {:>14}", mib(plan.comfortable))?;
        }
        if plan.floor < plan.whole {
            writeln!(out, "  everything stays             {:>14}", mib(plan.whole))?;
        }
        Ok(out)
    }

    fn layers(&self, out: &mut String, dense: &DensePlan) -> std::fmt::Result {
        let (plan, read) = (self.plan, bytes(dense.read_per_token));
        writeln!(out, "  the first {} of {} stay in memory", dense.pinned, dense.layers)?;
        writeln!(
            out,
            "  {read} are read for each token, and for each {} tokens of a prompt",
            count(plan.rows)
        )?;
        match (self.args.disk, self.disk().and_then(|disk| plan.tokens_per_second(0.0, disk))) {
            (Some(mb), Some(rate)) => writeln!(out, "  at {mb} MB/s that allows {rate:.2} tokens/s"),
            _ => Ok(()),
        }
    }

    fn json(&self) -> Json {
        let Report { args, context, available, plan } = self;
        let parts: Vec<Json> =
            plan.parts().into_iter().map(|(name, bytes)| json!({ "name": name, "bytes": bytes })).collect();
        let hits: Vec<Json> = self
            .hit_rates()
            .into_iter()
            .map(|(rate, uniform)| {
                json!({
                    "hit_rate": rate,
                    "uniform": uniform,
                    "read_bytes_per_token": plan.read_per_token(rate),
                    "tokens_per_second": self.disk().and_then(|disk| plan.tokens_per_second(rate, disk)),
                })
            })
            .collect();
        json!({
            "model": args.model,
            "context": context,
            "kv": args.kv.name(),
            "budget": plan.budget,
            "available": available.map(|a| json!({
                "bytes": a.bytes, "margin": a.margin, "limited_by": a.limited_by,
            })),
            "parts": parts,
            "total": plan.total(),
            "unused": plan.unused(),
            "rows": plan.rows,
            "experts": plan.n_experts(),
            "slots": plan.slots(),
            "slots_per_layer": plan.slots() as f64 / plan.layers().len().max(1) as f64,
            "pinned_layers": match plan.placement {
                Placement::Layers(dense) => Some(dense.pinned),
                _ => None,
            },
            "read_bytes_per_token": match plan.placement {
                Placement::Layers(dense) => Some(dense.read_per_token),
                _ => None,
            },
            "all_in_memory": plan.all_in_memory(),
            "used_bytes_per_token": plan.used_per_token(),
            "hit_rates": hits,
            "floor": plan.floor,
            "comfortable": plan.comfortable,
            "whole": plan.whole,
        })
    }
}
