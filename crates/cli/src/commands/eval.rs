//! `eval`: logits to a file, perplexity of a text, divergence from a reference.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::json;
use turbospark_engine::eval::{Perplexity, Reference, divergence, perplexity};
use turbospark_engine::{Engine, Wanted, check_finite};
use turbospark_format::{SafeTensors, write_safetensors};

use crate::args::{DivergenceArgs, EvalCommand, LogitsArgs, PerplexityArgs};
use crate::failure::Usage;
use crate::generation::open;
use crate::models;
use crate::output;
use crate::progress::Progress;

pub(crate) fn eval(command: &EvalCommand) -> Result<()> {
    match command {
        EvalCommand::Logits(args) => logits(args),
        EvalCommand::Perplexity(args) => measure_perplexity(args),
        EvalCommand::Divergence(args) => measure_divergence(args),
    }
}

fn logits(args: &LogitsArgs) -> Result<()> {
    let tokens = read_ids(&args.tokens)?;
    let engine = open(&args.model, Some(tokens.len()))?;
    let n_vocab = engine.spec().n_vocab;
    let mut rows = Vec::new();
    let chunk = args.chunk.unwrap_or(tokens.len());
    let mut sequence = engine.sequence();
    let mut fine = Ok(());
    engine.feed(&mut sequence, &tokens, Some(chunk), Wanted::All, |row, logits| {
        if fine.is_ok() {
            fine = check_finite(logits).with_context(|| format!("row {row}"));
        }
        rows.extend_from_slice(logits);
    })?;
    fine?;
    write_safetensors(&args.out, &[("logits", &[tokens.len(), n_vocab], &rows)])?;
    Ok(())
}

fn measure_perplexity(args: &PerplexityArgs) -> Result<()> {
    let text = read_text(&args.file)?;
    let engine = open(&args.model, Some(args.context))?;
    let tokens = engine.encode(&text)?;
    let tokenizer = engine.tokenizer()?;
    let bos = tokenizer.bos().filter(|_| tokenizer.adds_bos());
    let progress = Progress::new("windows", tokens.len() / args.context);
    let sum = perplexity(&engine, &tokens, args.context, bos, |done, _, so_far: &Perplexity| {
        progress.at(done, &format!("perplexity {:.4}", so_far.value()));
    })?;
    progress.finish();
    let windows = tokens.len() / args.context;
    if args.json {
        output::json(&json!({
            "perplexity": sum.value(),
            "standard_error": sum.standard_error(),
            "tokens_scored": sum.tokens,
            "tokens": tokens.len(),
            "context": args.context,
            "windows": windows,
            "kv": args.model.kv.name(),
        }))?;
    } else {
        output::line(&format!(
            "perplexity {:.4} ± {:.4} ({} of {} tokens scored in {windows} windows of {})",
            sum.value(),
            sum.standard_error(),
            output::count(sum.tokens),
            output::count(tokens.len()),
            output::count(args.context),
        ))?;
    }
    Ok(())
}

fn measure_divergence(args: &DivergenceArgs) -> Result<()> {
    let saved = args.against.extension().is_some_and(|e| e == "safetensors");
    // A text has to be tokenised before its length is known.
    let tokens = match (&args.input.tokens, &args.input.file) {
        (Some(path), _) => read_ids(path)?,
        (None, Some(path)) => open(&args.model, None)?.encode(&read_text(path)?)?,
        (None, None) => return Err(Usage("give --tokens or --file".to_owned()).into()),
    };
    let model = open(&args.model, Some(tokens.len()))?;
    let progress = Progress::new("rows", tokens.len());
    let at = |done| progress.at(done, "");
    let result = if saved {
        let file = SafeTensors::open(&args.against)?;
        divergence(&model, &tokens, &Reference::Saved(&file), at)?
    } else {
        let options = args.model.options(Some(tokens.len()));
        let other = Engine::open(&models::find(&args.against)?, options)
            .with_context(|| format!("cannot open the reference {}", args.against.display()))?;
        divergence(&model, &tokens, &Reference::Model(&other), at)?
    };
    progress.finish();
    if args.json {
        output::json(&json!({
            "rows": result.rows,
            "mean_kl": result.mean_kl(),
            "max_kl": result.max_kl,
            "top1_agreement": result.agreement(),
        }))?;
    } else {
        output::line(&format!(
            "mean KL {:.3e}, greatest {:.3e} nats; same top token in {} of {} rows ({:.2} %)",
            result.mean_kl(),
            result.max_kl,
            output::count(result.same_top),
            output::count(result.rows),
            100.0 * result.agreement(),
        ))?;
    }
    Ok(())
}

fn read_ids(path: &Path) -> Result<Vec<u32>> {
    let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let ids: Vec<u32> = serde_json::from_slice(&text)
        .with_context(|| format!("{} is not a JSON array of token ids", path.display()))?;
    if ids.is_empty() {
        return Err(Usage(format!("{} has no token ids: give at least one", path.display())).into());
    }
    Ok(ids)
}

fn read_text(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    String::from_utf8(bytes).with_context(|| format!("{} is not UTF-8 text", path.display()))
}
