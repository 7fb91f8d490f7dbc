//! `synth`: a GGUF model of real layer shapes with random weights.
//!
//! Speed depends on shapes and formats, not on what a model has learnt: such a file stands for a published one that is
//! too large to fetch. Invariant: the same arguments give the same bytes on every machine, and the file appears under
//! its name only when it is whole.

mod shape;
mod tokenizer;
mod weights;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use turbospark_format::{BlockType, GgufWriter, quantize};

use shape::{GPT_OSS_20B, QWEN3_8B, QWEN3_30B_A3B, Shape};
use weights::Pools;

/// Bytes of the file beside tensor data, at most: metadata and headers of tensors, then what a token of the vocabulary
/// takes.
const HEADER_BYTES: u64 = 1 << 20;
const TOKEN_BYTES: u64 = 64;

#[derive(Args)]
pub(crate) struct SynthArgs {
    /// Whose layers
    #[arg(value_enum)]
    model: Model,
    /// File to write
    #[arg(long, value_name = "FILE.gguf")]
    out: PathBuf,
    /// Layers; default: as many as the published model has
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    layers: Option<u32>,
    /// Block format of the experts; default: MXFP4 for gpt-oss, Q4_K for others
    #[arg(long, value_name = "FORMAT", value_parser = encodable)]
    experts: Option<BlockType>,
    /// Block format of the other matrices, embedding and head among them; default: Q8_0 for gpt-oss, Q6_K for qwen3-30b-a3b, Q4_K for qwen3-8b
    #[arg(long, value_name = "FORMAT", value_parser = encodable)]
    dense: Option<BlockType>,
    /// Tokens of the vocabulary; default: as many as the published model has
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(tokenizer::SMALLEST..=tokenizer::LARGEST))]
    vocab: Option<u32>,
    /// Start of the random numbers
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum Model {
    #[value(name = "gpt-oss-20b")]
    GptOss20b,
    #[value(name = "qwen3-30b-a3b")]
    Qwen3A3b,
    #[value(name = "qwen3-8b")]
    Qwen3Dense,
}

/// A format that this project can write, by its name in any case.
fn encodable(name: &str) -> Result<BlockType, String> {
    let writable = |ty: &BlockType| quantize(*ty, &vec![0.0; ty.block_len()]).is_ok();
    BlockType::ALL.into_iter().filter(writable).find(|ty| ty.name().eq_ignore_ascii_case(name)).ok_or_else(
        || {
            let names: Vec<_> = BlockType::ALL.into_iter().filter(writable).map(BlockType::name).collect();
            format!("no format that can be written: use one of {}", names.join(", "))
        },
    )
}

pub(crate) fn synth(args: &SynthArgs) -> Result<()> {
    let published = match args.model {
        Model::GptOss20b => GPT_OSS_20B,
        Model::Qwen3A3b => QWEN3_30B_A3B,
        Model::Qwen3Dense => QWEN3_8B,
    };
    let shape = Shape {
        layers: args.layers.unwrap_or(published.layers),
        vocab: args.vocab.unwrap_or(published.vocab),
        expert_type: args.experts.unwrap_or(published.expert_type),
        dense_type: args.dense.unwrap_or(published.dense_type),
        ..published
    };
    write(&shape, args.seed, &args.out).with_context(|| format!("no model written to {}", args.out.display()))
}

/// Writes a model of this shape; what the tensors hold comes from `seed`.
fn write(shape: &Shape, seed: u64, path: &Path) -> Result<()> {
    let tensors = shape.tensors();
    let mut bytes = 0;
    for t in &tensors {
        let (ty, row) = (t.block_type, t.shape[0]);
        ensure!(
            row.is_multiple_of(ty.block_len()),
            "{} has rows of {row} values, no whole number of {ty} blocks of {}: use a format of smaller blocks, as Q8_0",
            t.name,
            ty.block_len()
        );
        bytes += t.bytes();
    }
    let needed = bytes + HEADER_BYTES + TOKEN_BYTES * u64::from(shape.vocab);
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let free =
        fs4::available_space(folder).with_context(|| format!("cannot look at {}", folder.display()))?;
    ensure!(
        needed <= free,
        "the file needs {:.1} GB and {} has {:.1} GB free: use fewer --layers, or another disk",
        needed as f64 / 1e9,
        folder.display(),
        free as f64 / 1e9
    );

    let pools = Pools::new(&tensors, seed)?;
    let bar = ProgressBar::new(bytes).with_style(ProgressStyle::with_template(
        "{bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
    )?);
    let mut writer = GgufWriter::new();
    for (key, value) in shape.metadata() {
        writer.set(key, value);
    }
    for (key, value) in tokenizer::metadata(shape) {
        writer.set(key, value);
    }
    for (i, t) in tensors.iter().enumerate() {
        let (pools, bar) = (&pools, &bar);
        writer.tensor_from(t.name.as_str(), &t.shape, t.block_type, move |out| {
            pools.fill(t, i, out, |written| bar.inc(written))
        });
    }
    writer.write_file(path)?;
    bar.finish_and_clear();
    Ok(())
}

#[cfg(test)]
mod tests;
