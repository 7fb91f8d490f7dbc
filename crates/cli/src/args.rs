//! The command line as data: help, man pages and completions are generated from these definitions.
//!
//! Invariant: parsing touches nothing outside, and a combination of flags in which one could not take effect is refused
//! here or, where the model decides, by the command that finds out.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use turbospark_engine::{EngineOptions, IoMode, KvKind, SamplingParams};

use crate::size;

/// More than the processors of any machine this is for.
const MAX_THREADS: usize = 1024;

/// Runs language models from GGUF files.
#[derive(Parser, Debug)]
#[command(name = "turbospark", version, about, max_term_width = 110, subcommand_required = true)]
#[command(after_help = "Exit status: 0 done, 1 failed, 2 wrong usage, 130 stopped by Ctrl-C.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Answer one prompt; the text alone goes to standard output
    Run(RunArgs),
    /// Talk with a model; without MODEL with the one that comes with the program
    Chat(ChatArgs),
    /// Answer over HTTP, as OpenAI, Anthropic and Ollama do
    Serve(crate::args_serve::ServeArgs),
    /// Show what a model file holds
    Inspect(InspectArgs),
    /// Show where each byte of a memory budget would go
    Plan(PlanArgs),
    /// Measure prefill and decode speed
    Bench(BenchArgs),
    /// Measure how well a model predicts
    #[command(subcommand)]
    Eval(EvalCommand),
    /// Record which experts a model uses, and try cache policies and sizes on it
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Write the man pages
    Man {
        /// Folder for one page per command; without it the program's page goes to standard output
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

#[derive(Subcommand, Debug)]
pub(crate) enum EvalCommand {
    /// Write the logits of every row of a token list
    Logits(LogitsArgs),
    /// Perplexity of a text, as llama.cpp defines it
    ///
    /// The text's tokens are cut into windows of --context tokens, an incomplete last one left out. In each window the first
    /// token is replaced by BOS where the model adds it, and the tokens after the middle are scored: those whose
    /// prediction sees at least half a window.
    Perplexity(PerplexityArgs),
    /// How far a model's predictions are from another's
    ///
    /// The mean and the greatest Kullback-Leibler divergence KL(AGAINST || MODEL) of the rows' distributions in nats, and
    /// the share of rows where both have the same most likely token.
    Divergence(DivergenceArgs),
}

#[derive(Subcommand, Debug)]
pub(crate) enum TraceCommand {
    /// Answer a prompt as `run` does, and write which experts each layer used
    Record(TraceRecordArgs),
    /// Count what a cache of experts would have hit
    Replay(TraceReplayArgs),
    /// Draw the use of each expert, and hit rate against memory, as SVG for a browser
    Plot(TracePlotArgs),
}

/// The model and how it is opened.
#[derive(Args, Debug)]
pub(crate) struct ModelArgs {
    /// GGUF file, any file of a split set, or `demo`: the small model that comes with the program
    // Commands that have a default take the requirement away.
    #[arg(required = true)]
    pub(crate) model: Option<PathBuf>,
    /// Threads that compute; default: the physical cores this process may use
    #[arg(short, long, value_name = "N", value_parser = threads, allow_negative_numbers = true)]
    pub(crate) threads: Option<usize>,
    /// Number format of the KV cache
    #[arg(long, value_enum, default_value_t = Kv::F16)]
    pub(crate) kv: Kv,
    /// Memory that the whole process may take, such as 4GiB or 3500M; default: what is free. Experts that don't fit, or the layers
    /// of a model without experts, are read from the file when they are needed
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub(crate) memory: Option<u64>,
    /// How what doesn't fit is read
    #[arg(long, value_enum, default_value_t = Io::Auto)]
    pub(crate) io: Io,
    /// Don't read the next layer's likely experts while the disk is idle
    #[arg(long)]
    pub(crate) no_look_ahead: bool,
}

impl ModelArgs {
    /// The model that was named, or else the one that comes with the program.
    pub(crate) fn name(&self) -> &Path {
        self.model.as_deref().unwrap_or(Path::new(turbospark_hub::DEMO))
    }

    pub(crate) fn options(&self, context: Option<usize>) -> EngineOptions {
        EngineOptions {
            threads: self.threads,
            kv: self.kv.into(),
            context,
            memory: self.memory,
            io: self.io.into(),
            look_ahead: Some(!self.no_look_ahead),
            ..EngineOptions::default()
        }
    }
}

/// How what doesn't fit in memory is read.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Io {
    /// Past the page cache where the file system can, else through it
    Auto,
    /// Past the page cache, or an error
    Direct,
    /// Through the page cache
    Buffered,
}

impl From<Io> for IoMode {
    fn from(io: Io) -> IoMode {
        match io {
            Io::Auto => IoMode::Auto,
            Io::Direct => IoMode::Direct,
            Io::Buffered => IoMode::Buffered,
        }
    }
}

/// Number format of the KV cache.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kv {
    /// Half precision
    F16,
    /// Single precision
    F32,
}

impl Kv {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kv::F16 => "f16",
            Kv::F32 => "f32",
        }
    }
}

impl From<Kv> for KvKind {
    fn from(kv: Kv) -> KvKind {
        match kv {
            Kv::F16 => KvKind::F16,
            Kv::F32 => KvKind::F32,
        }
    }
}

/// How answers are generated: shared by `run` and `chat`.
#[derive(Args, Debug)]
pub(crate) struct GenerationArgs {
    /// Most tokens of an answer; default: until the model ends or the context is full
    #[arg(short = 'n', long, value_name = "N", value_parser = positive, allow_negative_numbers = true)]
    pub(crate) max_tokens: Option<usize>,
    /// Positions for prompt and answer; default: what the model was trained for
    #[arg(short, long, value_name = "N", value_parser = positive, allow_negative_numbers = true)]
    pub(crate) context: Option<usize>,
    /// End the answer at this text, which is not printed; may be repeated
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) stop: Vec<String>,
    #[command(flatten)]
    pub(crate) sampling: SamplingArgs,
}

/// How tokens are chosen.
#[derive(Args, Debug)]
#[command(next_help_heading = "Sampling")]
pub(crate) struct SamplingArgs {
    /// Always take the most likely token
    #[arg(long, conflicts_with_all = ["temperature", "top_k", "top_p", "min_p", "seed"])]
    greedy: bool,
    /// Divides the logits: above 1 is more varied, below 1 less [default: 0.8]
    #[arg(long, value_name = "T", value_parser = temperature, allow_negative_numbers = true)]
    temperature: Option<f32>,
    /// Choose among this many of the likeliest tokens; 0: all [default: 40]
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    top_k: Option<usize>,
    /// Choose among the likeliest tokens whose probabilities reach this sum [default: 0.95]
    #[arg(long, value_name = "P", value_parser = share, allow_negative_numbers = true)]
    top_p: Option<f32>,
    /// Drop tokens less likely than this share of the likeliest one [default: 0.05]
    #[arg(long, value_name = "P", value_parser = share_or_none, allow_negative_numbers = true)]
    min_p: Option<f32>,
    /// Divides the logits of tokens seen before; 1: no penalty
    #[arg(long, value_name = "X", default_value = "1", value_parser = above_zero, allow_negative_numbers = true)]
    repetition_penalty: f32,
    /// Subtracted from the logits of tokens already generated
    #[arg(long, value_name = "X", default_value = "0", value_parser = finite, allow_negative_numbers = true)]
    presence_penalty: f32,
    /// Subtracted for each time that a token was generated
    #[arg(long, value_name = "X", default_value = "0", value_parser = finite, allow_negative_numbers = true)]
    frequency_penalty: f32,
    /// Start of the random sequence: the same seed repeats the answer; default: another one each time
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    seed: Option<u64>,
}

impl SamplingArgs {
    /// The parameters, with `fresh_seed` where none was given.
    pub(crate) fn params(&self, fresh_seed: u64) -> SamplingParams {
        let d = SamplingParams::default();
        SamplingParams {
            temperature: if self.greedy { 0.0 } else { self.temperature.unwrap_or(d.temperature) },
            top_k: self.top_k.unwrap_or(d.top_k),
            top_p: self.top_p.unwrap_or(d.top_p),
            min_p: self.min_p.unwrap_or(d.min_p),
            repetition_penalty: self.repetition_penalty,
            presence_penalty: self.presence_penalty,
            frequency_penalty: self.frequency_penalty,
            logit_bias: d.logit_bias,
            seed: self.seed.unwrap_or(fresh_seed),
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// The prompt; without it and --file it is read from standard input, less one line end
    #[arg(conflicts_with = "file")]
    pub(crate) prompt: Option<String>,
    /// Read the prompt from a file, less one line end
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Continue the prompt as it stands, without the model's chat template
    #[arg(long)]
    pub(crate) raw: bool,
    /// System message for the chat template
    #[arg(long, value_name = "TEXT", conflicts_with = "raw")]
    pub(crate) system: Option<String>,
    /// Leave out the line of statistics on standard error
    #[arg(short, long)]
    pub(crate) quiet: bool,
    // Last: what comes after it would stand under its heading in the help.
    #[command(flatten)]
    pub(crate) generation: GenerationArgs,
}

#[derive(Args, Debug)]
pub(crate) struct TraceRecordArgs {
    /// The trace to write
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

#[derive(Args, Debug)]
pub(crate) struct TraceReplayArgs {
    /// A trace that `trace record` wrote
    pub(crate) trace: PathBuf,
    /// Experts in memory at once; default, without --memory too: 10, 25, 50 and 75 % of all
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = positive)]
    pub(crate) slots: Vec<usize>,
    /// Memory for experts instead: 4GiB or 4G, 4GB, 512MiB
    #[arg(long, value_name = "SIZE", value_parser = size::parse, conflicts_with = "slots")]
    pub(crate) memory: Option<u64>,
    /// Only these policies, or `optimum`, which knows the future; default: all
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) policy: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct TracePlotArgs {
    /// A trace that `trace record` wrote
    pub(crate) trace: PathBuf,
    /// Folder for experts.svg and hit-rates.svg
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
}

#[derive(Args, Debug)]
#[command(mut_arg("model", |model| model.required(false)))]
pub(crate) struct ChatArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// System message
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// Leave out the line of statistics after each answer
    #[arg(short, long)]
    pub(crate) quiet: bool,
    // Last: what comes after it would stand under its heading in the help.
    #[command(flatten)]
    pub(crate) generation: GenerationArgs,
}

#[derive(Args, Debug)]
pub(crate) struct InspectArgs {
    /// GGUF file, any file of a split set, or `demo`: the small model that comes with the program
    pub(crate) model: PathBuf,
    /// List every tensor
    #[arg(long)]
    pub(crate) tensors: bool,
    /// Print one JSON object, with metadata arrays whole
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct PlanArgs {
    /// GGUF file, any file of a split set, or `demo`: the small model that comes with the program
    pub(crate) model: PathBuf,
    /// Memory of the whole process, as 4GiB, 512M or 4096MB; default: what the machine and the process's limits leave
    #[arg(short, long, value_name = "SIZE", value_parser = size::parse, allow_negative_numbers = true)]
    pub(crate) memory: Option<u64>,
    /// Positions for prompt and answer; default: what it was trained for, or as much of it as an
    /// eighth of the memory holds
    #[arg(short, long, value_name = "N", value_parser = positive, allow_negative_numbers = true)]
    pub(crate) context: Option<usize>,
    /// Number format of the KV cache
    #[arg(long, value_enum, default_value_t = Kv::F16)]
    pub(crate) kv: Kv,
    /// Threads that compute; default: the physical cores this process may use
    #[arg(short, long, value_name = "N", value_parser = threads, allow_negative_numbers = true)]
    pub(crate) threads: Option<usize>,
    /// What the disk reads in a second, to predict tokens per second
    #[arg(long, value_name = "MB/s", value_parser = above_zero, allow_negative_numbers = true)]
    pub(crate) disk: Option<f32>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Prompt lengths to feed; 0: none
    #[arg(short = 'p', long, value_name = "N,…", value_delimiter = ',', default_value = "512")]
    pub(crate) prefill: Vec<usize>,
    /// Numbers of tokens to generate one by one; 0: none
    #[arg(short = 'n', long, value_name = "N,…", value_delimiter = ',', default_value = "128")]
    pub(crate) decode: Vec<usize>,
    /// Measured runs of each, after one to warm up
    #[arg(short, long, value_name = "N", default_value = "5", value_parser = positive)]
    pub(crate) runs: usize,
    /// No run to warm up: the first one counts, with whatever is not in memory yet
    #[arg(long)]
    pub(crate) cold: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct LogitsArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// JSON array of token ids
    #[arg(long, value_name = "FILE.json")]
    pub(crate) tokens: PathBuf,
    /// File to write: tensor `logits` of shape [rows, vocabulary], f32
    #[arg(long, value_name = "FILE.safetensors")]
    pub(crate) out: PathBuf,
    /// Rows fed at a time; default: all at once
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true)]
    pub(crate) chunk: Option<usize>,
}

#[derive(Args, Debug)]
pub(crate) struct PerplexityArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// The text
    #[arg(long, value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Tokens of a window
    #[arg(short, long, value_name = "N", default_value = "512", value_parser = positive)]
    pub(crate) context: usize,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct DivergenceArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// The reference: another model, or logits that `eval logits` wrote
    #[arg(long, value_name = "FILE")]
    pub(crate) against: PathBuf,
    #[command(flatten)]
    pub(crate) input: DivergenceInput,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct DivergenceInput {
    /// JSON array of token ids
    #[arg(long, value_name = "FILE.json")]
    pub(crate) tokens: Option<PathBuf>,
    /// A text, tokenised by MODEL
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

pub(crate) fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("0 can't work: give 1 or more".to_owned()),
        Ok(n) => Ok(n),
        Err(_) => Err("expected a whole number, 1 or more".to_owned()),
    }
}

pub(crate) fn threads(text: &str) -> Result<usize, String> {
    match positive(text)? {
        n if n > MAX_THREADS => Err(format!("more than {MAX_THREADS} threads can't work: give at most that")),
        n => Ok(n),
    }
}

fn number(text: &str, fine: impl Fn(f32) -> bool, expected: &str) -> Result<f32, String> {
    text.parse().ok().filter(|&x| fine(x)).ok_or_else(|| format!("expected {expected}"))
}

fn finite(text: &str) -> Result<f32, String> {
    number(text, f32::is_finite, "a number")
}

fn above_zero(text: &str) -> Result<f32, String> {
    number(text, |x| x.is_finite() && x > 0.0, "a number above 0")
}

fn temperature(text: &str) -> Result<f32, String> {
    number(
        text,
        |x| x.is_finite() && x > 0.0,
        "a number above 0; for the most likely token always, use --greedy",
    )
}

fn share(text: &str) -> Result<f32, String> {
    number(text, |x| x > 0.0 && x <= 1.0, "a number above 0, at most 1")
}

fn share_or_none(text: &str) -> Result<f32, String> {
    number(text, |x| (0.0..=1.0).contains(&x), "a number from 0 to 1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn defaults_in_the_help_are_those_of_the_sampler() {
        let d = SamplingParams::default();
        let help = Cli::command().find_subcommand_mut("run").unwrap().render_long_help().to_string();
        for value in
            [d.temperature.to_string(), d.top_k.to_string(), d.top_p.to_string(), d.min_p.to_string()]
        {
            assert!(help.contains(&format!("[default: {value}]")), "{value}");
        }
    }
}
