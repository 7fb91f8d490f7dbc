//! What `run` and `chat` share: opening a model, making a prompt of a conversation, streaming an answer.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{Write, stdout};
use std::time::Instant;

use anyhow::{Context, Error, Result};
use turbospark_engine::{
    CancelFlag, Engine, EngineError, FinishReason, GenerateOptions, GenerationStats, PromptProgress, Session,
};
use turbospark_text::{ChatTemplate, Message, Specials};

use crate::args::{GenerationArgs, ModelArgs};
use crate::failure::Usage;
use crate::memory;
use crate::models;
use crate::output;
use crate::progress::Progress;

/// Opens the model with room for `context` positions; without it, for as many as it was trained for.
pub(crate) fn open(args: &ModelArgs, context: Option<usize>) -> Result<Engine> {
    let file = models::find(args.name())?;
    let path = file.display().to_string();
    let engine = Engine::open(&file, args.options(context)).map_err(|e| {
        if matches!(e, EngineError::BadContext { .. }) {
            return Usage(e.to_string()).into();
        }
        // Errors of the reader name the file; those of the model don't.
        let named = e.to_string().contains(&path);
        if named { Error::new(e) } else { Error::new(e).context(format!("cannot open {path}")) }
    })?;
    let trained = engine.spec().context_length;
    if context.is_some_and(|context| context > trained) {
        output::note(&format!(
            "warning: the model was trained for {trained} positions: beyond them it may talk nonsense"
        ));
    }
    Ok(engine)
}

/// A seed that no other run has.
pub(crate) fn fresh_seed() -> u64 {
    RandomState::new().build_hasher().finish() >> 32
}

/// The options of a generation that `cancel` stops.
pub(crate) fn options(args: &GenerationArgs, seed: u64, cancel: &CancelFlag) -> GenerateOptions {
    GenerateOptions {
        sampling: args.sampling.params(seed),
        max_tokens: args.max_tokens,
        stop: args.stop.clone(),
        cancel: cancel.clone(),
        ..GenerateOptions::default()
    }
}

/// The file's chat template, if it has one.
pub(crate) fn template(engine: &Engine) -> Result<Option<ChatTemplate>> {
    ChatTemplate::from_metadata(engine.gguf().metadata()).context("the model's chat template can't be used")
}

/// Tokens of a conversation whose next turn is the model's.
pub(crate) fn render(engine: &Engine, template: &ChatTemplate, messages: &[Message]) -> Result<Vec<u32>> {
    let text = template
        .render(messages, None, true, &serde_json::Map::new())
        .context("the model's chat template can't render the conversation")?;
    Ok(engine.tokenizer()?.encode(&text, Specials::ALL)?)
}

/// An answer that has been printed.
pub(crate) struct Answer {
    /// Its text.
    pub(crate) text: String,
    /// Counts and times.
    pub(crate) stats: GenerationStats,
    /// Whether the cancel flag ended it.
    pub(crate) cancelled: bool,
}

/// Generates after `prompt` and prints the text as it comes.
pub(crate) fn answer(session: &mut Session, prompt: &[u32], options: GenerateOptions) -> Result<Answer> {
    let bar = std::sync::Arc::new(Progress::new("prompt tokens", prompt.len()));
    let shown = bar.clone();
    let (started, before) = (Instant::now(), session.engine().expert_stats().bytes_read);
    let progress = PromptProgress::new(move |step| {
        let read = step.experts.bytes_read - before;
        let rate = read as f64 / started.elapsed().as_secs_f64() / 1e6;
        let message = match read {
            0 => String::new(),
            _ => format!("({} of weights read, {rate:.0} MB/s)", output::bytes(read)),
        };
        shown.at(step.fed, &message);
    });
    let mut generation = session.generate(prompt, GenerateOptions { progress, ..options })?;
    bar.finish();
    let mut out = stdout().lock();
    let mut text = String::new();
    for piece in &mut generation {
        let piece = piece?;
        if !piece.text.is_empty() {
            out.write_all(piece.text.as_bytes())?;
            out.flush()?;
            text.push_str(&piece.text);
        }
    }
    let cancelled = generation.finish_reason() == Some(&FinishReason::Cancelled);
    Ok(Answer { text, stats: generation.stats(), cancelled })
}

/// The line at the end: what was done, how fast, and what it took. `first` is the time to the first token in seconds.
pub(crate) fn summary(engine: &Engine, stats: &GenerationStats, first: f64) -> String {
    let mut line = format!(
        "prefill {} tokens, {:.1} tok/s | decode {} tokens, {:.1} tok/s | first token {first:.3} s",
        stats.prefill_tokens,
        stats.prefill_rate(),
        stats.decode_tokens,
        stats.decode_rate(),
    );
    if let Some(io) = engine.io() {
        let (prefill, decode) = (&stats.prefill_experts, &stats.decode_experts);
        line += &format!(
            " | {} {:.0} % hits in prefill, {:.0} % in decode",
            if engine.cached_experts().is_some() { "experts" } else { "layers" },
            100.0 * prefill.hit_rate(),
            100.0 * decode.hit_rate()
        );
        let tokens = stats.decode_tokens.saturating_sub(1);
        if tokens > 0 && !stats.decode.is_zero() {
            line += &format!(", {} read a token", output::bytes(decode.bytes_read / tokens as u64));
            let rate = decode.bytes_read as f64 / stats.decode.as_secs_f64() / 1e6;
            if let Some(disk) = io.mb_per_s {
                line += &format!(", {:.0} % of the disk's {disk:.0} MB/s", 100.0 * rate / disk);
            }
        }
    }
    if let Some(peak) = memory::peak() {
        line += &format!(" | peak memory {}", output::bytes(peak));
    }
    line
}
