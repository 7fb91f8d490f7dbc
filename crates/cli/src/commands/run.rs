//! `run`: one prompt, one answer.

use std::fs::File;
use std::io::{IsTerminal, Read, stdin, stdout};
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use turbospark_engine::Engine;
use turbospark_text::{Message, Specials};

use crate::args::RunArgs;
use crate::failure::{Interrupted, Usage};
use crate::{generation, interrupt, output};

/// Bytes of a prompt that are read.
const LONGEST_PROMPT: u64 = 64_000_000;

pub(crate) fn run(args: &RunArgs, started: Instant) -> Result<()> {
    run_with(args, started, |_| Ok(()))
}

/// `run`, with `opened` called before the engine computes anything.
pub(crate) fn run_with(
    args: &RunArgs,
    started: Instant,
    opened: impl FnOnce(&Engine) -> Result<()>,
) -> Result<()> {
    let cancel = interrupt::flag()?;
    let text = prompt_text(args)?;
    let engine = generation::open(&args.model, args.generation.context)?;
    opened(&engine)?;
    let prompt = tokens(args, &engine, &text)?;
    let seed = generation::fresh_seed();
    let options = generation::options(&args.generation, seed, &cancel);
    let show_seed = options.sampling.temperature > 0.0 && options.sampling.seed == seed;
    let mut session = engine.session();
    let before = started.elapsed();
    let answer = generation::answer(&mut session, &prompt, options)?;
    // Piped text is exactly the model's; a terminal's next line has to start at its left.
    if stdout().is_terminal() && !answer.text.ends_with('\n') {
        output::line("")?;
    }
    if !args.quiet {
        let first = (before + answer.stats.time_to_first_token).as_secs_f64();
        let mut line = generation::summary(session.engine(), &answer.stats, first);
        if show_seed {
            line += &format!(" | seed {seed}");
        }
        output::note(&line);
    }
    if answer.cancelled { Err(Interrupted.into()) } else { Ok(()) }
}

fn prompt_text(args: &RunArgs) -> Result<String> {
    let text = match (&args.prompt, &args.file) {
        (Some(prompt), _) => prompt.clone(),
        (None, Some(path)) => {
            let name = path.display().to_string();
            prompt_of(File::open(path).with_context(|| format!("cannot read {name}"))?, &name)?
        }
        (None, None) if stdin().is_terminal() => {
            let ways = "give it as an argument, by --file, or on standard input";
            return Err(Usage(format!("there is no prompt: {ways}")).into());
        }
        (None, None) => prompt_of(stdin().lock(), "standard input")?,
    };
    if text.is_empty() && !args.raw {
        return Err(Usage("the prompt is empty: give at least one character".to_owned()).into());
    }
    Ok(text)
}

/// The text of `source`, which errors call `name`. A source without end is not read to its end.
fn prompt_of(source: impl Read, name: &str) -> Result<String> {
    let mut bytes = Vec::new();
    source
        .take(LONGEST_PROMPT + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read the prompt from {name}"))?;
    if bytes.len() as u64 > LONGEST_PROMPT {
        let limit = output::bytes(LONGEST_PROMPT);
        return Err(anyhow!("the prompt from {name} has more than {limit}: no context holds it, shorten it"));
    }
    Ok(less_one_line_end(String::from_utf8(bytes).with_context(|| format!("{name} is not UTF-8 text"))?))
}

/// Editors and `echo` end a text with a line end that is not meant.
fn less_one_line_end(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}

fn tokens(args: &RunArgs, engine: &Engine, text: &str) -> Result<Vec<u32>> {
    let template = if args.raw { None } else { generation::template(engine)? };
    let Some(template) = template else {
        if args.system.is_some() {
            let why =
                "this model has no chat template, so --system can't take effect: put it into the prompt";
            return Err(Usage(why.to_owned()).into());
        }
        return Ok(engine.tokenizer()?.encode(text, Specials::ALL)?);
    };
    let mut messages = Vec::new();
    messages.extend(args.system.as_ref().map(|system| Message::new("system", system)));
    messages.push(Message::new("user", text));
    generation::render(engine, &template, &messages)
}
