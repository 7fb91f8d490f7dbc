//! What a model needs of memory, from its spec and its file's header: the input of the memory plan. No weights are read.
//!
//! Invariant: each part is counted by the code that allocates it, or stands beside it, and rounds up: a process that does what the
//! plan says takes no more than the plan's total.

use turbospark_experts::plan::{Batch, ExpertNeeds, LayerNeeds, Needs, RESIDENT_ROWS};
use turbospark_experts::read::Window;
use turbospark_experts::{ExpertLayout, LayerExperts, LayerRuns};
use turbospark_format::{Array, Gguf, Metadata, Value};
use turbospark_kernels::default_threads;
use turbospark_model::{FeedForward, ModelSpec, Role};

use crate::device::{CpuCache, is_vector, scratch_bytes, vector_bytes};
use crate::forward::buffer_bytes;
use crate::{EngineError, EngineOptions};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// Fewest rows of a prompt that are fed at a time: fewer would read weights more often than they compute with them.
const LEAST_ROWS: usize = 32;
/// Most rows fed at a time: by then each expert meets so many rows that its reading is hidden.
const MOST_ROWS: usize = 4096;
/// The program's own pages, the standard library's and the allocator's first, the buffers of one-row products and short-lived lists.
const PROGRAM: u64 = 10 * MIB;
/// A thread's stack as far as it is used, its tile buffer, and its share of the allocator.
const THREAD: u64 = 384 * KIB;
/// The allocator's room around a large block: a page with its length.
const BLOCK_SLACK: u64 = 4 * KIB;
/// What the system maps with a page that is touched, before and after a run of neighbouring tensors.
const FAULT_AROUND: u64 = 64 * KIB;
/// Reads that are on their way: their descriptions, and one expert's parts on the side.
const READ_BUFFERS: u64 = MIB;

/// What `spec`, which was read from `gguf`, needs when it is opened with `options` and feeds one sequence of that context.
///
/// # Errors
/// A context of no positions or too many; experts that can't be told apart.
pub fn needs(spec: &ModelSpec, gguf: &Gguf, options: &EngineOptions) -> Result<Needs, EngineError> {
    let context = crate::engine::context_of(spec, options)?;
    let threads = options.threads.unwrap_or_else(default_threads).max(1);
    let layout = ExpertLayout::new(gguf, crate::engine::experts_of(spec))?;
    let layers: Vec<ExpertNeeds> = spec
        .layers
        .iter()
        .zip(layout.layers())
        .filter_map(|(layer, experts)| match (&layer.feed_forward, experts) {
            (FeedForward::Moe(moe), Some(experts)) => Some(expert_needs(gguf, experts, moe.top_k)),
            _ => None,
        })
        .collect();
    let mut resident: Vec<(String, u64)> = Vec::new();
    for (role, bytes) in spec.bytes_by_role(gguf) {
        if !matches!(role, Role::Expert | Role::Unused) {
            resident.push((role.name().to_owned(), bytes));
        }
    }
    let slot = layers.iter().map(|l| l.read).max().unwrap_or(0);
    let borders = if layers.is_empty() { 0 } else { runs(spec) * 2 * FAULT_AROUND };
    let runs = layer_runs(spec, gguf);
    let layer =
        |runs: &LayerRuns| LayerNeeds { bytes: runs.matrix_bytes() as u64, read: runs.read_bytes() as u64 };
    // Vectors of layers that are streamed are copied from the mapping, which leaves the pages around them there.
    let touched = if runs.is_empty() { 0 } else { gguf.tensors().len() as u64 * FAULT_AROUND };
    // Logits of a session, and what sampling may list of them.
    let sampling = spec.n_vocab as u64 * (4 + 2 * 16);
    Ok(Needs {
        resident,
        vectors: vector_bytes(spec, gguf),
        tokenizer: metadata_bytes(gguf.metadata()) + tokenizer_bytes(gguf.metadata()) + header_bytes(gguf),
        overhead: PROGRAM + THREAD * (threads as u64 + 1) + sampling + borders,
        read_buffers: READ_BUFFERS + touched,
        batches: batch_sizes(context)
            .map(|rows| batch(spec, gguf, options, context, rows, threads))
            .collect(),
        layers,
        slot,
        dense_layers: runs.iter().map(layer).collect(),
    })
}

/// The numbers of rows that a plan chooses from: close together, so that little of their share stays unused.
fn batch_sizes(context: usize) -> impl Iterator<Item = usize> {
    let most = context.next_multiple_of(LEAST_ROWS).min(MOST_ROWS);
    let step = |rows: &usize| Some(rows + if *rows < RESIDENT_ROWS { LEAST_ROWS } else { 4 * LEAST_ROWS });
    std::iter::successors(Some(LEAST_ROWS), step).take_while(move |&rows| rows <= most.max(LEAST_ROWS))
}

fn batch(
    spec: &ModelSpec,
    gguf: &Gguf,
    options: &EngineOptions,
    context: usize,
    rows: usize,
    threads: usize,
) -> Batch {
    let kind = options.kv;
    let rows_fed = rows.min(context);
    let kv = CpuCache::bytes_for(spec, kind, context, rows_fed)
        + CpuCache::checkpoint_bytes_for(spec, kind, context, rows_fed);
    // Each page is a block of its own, at least one a layer.
    let blocks = (context as u64 / 64 + 2) * spec.layers.len() as u64;
    let slack = blocks * BLOCK_SLACK.min(kv / blocks.max(1));
    // Many sequences share what was asked for, in pages of the same size.
    let all = kv.max(options.kv_bytes.unwrap_or(0));
    let kv = all.saturating_add((all as f64 * slack as f64 / kv.max(1) as f64).ceil() as u64);
    let activations = buffer_bytes(spec, rows_fed) + scratch_bytes(spec, gguf, rows_fed, threads);
    Batch { rows, kv, activations }
}

fn expert_needs(gguf: &Gguf, experts: &LayerExperts, top_k: usize) -> ExpertNeeds {
    let sizes = || {
        experts
            .tensors
            .iter()
            .map(|&i| (&gguf.tensors()[i], gguf.tensors()[i].bytes / experts.n_experts as u64))
    };
    // The blocks around each part, of whichever expert lies worst.
    let read = |expert: u64| -> u64 {
        sizes()
            .map(|(tensor, size)| Window::of(tensor.offset + expert * size, size as usize).len as u64)
            .sum()
    };
    ExpertNeeds {
        n_experts: experts.n_experts,
        top_k,
        bytes: sizes().map(|(_, size)| size).sum(),
        read: (0..experts.n_experts as u64).map(read).max().unwrap_or(0),
    }
}

/// Runs of neighbouring tensors that stay in memory while what lies between them is read into slots.
fn runs(spec: &ModelSpec) -> u64 {
    let stays: Vec<bool> = spec.roles.iter().map(|r| !matches!(r, Role::Expert | Role::Unused)).collect();
    1 + stays.windows(2).filter(|pair| !pair[0] && pair[1]).count() as u64
}

/// The matrices of each layer of a model without routed experts, as they lie in the file; none for other models.
pub(crate) fn layer_runs(spec: &ModelSpec, gguf: &Gguf) -> Vec<LayerRuns> {
    let mut tensors = vec![Vec::new(); spec.layers.len()];
    let vectors = is_vector(spec);
    for (index, (tensor, role)) in gguf.tensors().iter().zip(&spec.roles).enumerate() {
        let number = tensor.name.strip_prefix("blk.").and_then(|rest| rest.split('.').next());
        let layer = number.and_then(|n| n.parse::<usize>().ok()).and_then(|n| tensors.get_mut(n));
        if let Some(layer) = layer.filter(|_| *role != Role::Unused && !vectors(index)) {
            layer.push(index);
        }
    }
    if spec.roles.contains(&Role::Expert) || tensors.iter().any(Vec::is_empty) {
        return Vec::new();
    }
    tensors.iter().enumerate().map(|(layer, tensors)| LayerRuns::new(gguf, layer, tensors)).collect()
}

/// The mapped header, which opening reads.
fn header_bytes(gguf: &Gguf) -> u64 {
    let first = |shard: usize| {
        gguf.tensors().iter().filter(|t| t.shard == shard).map(|t| t.offset).min().unwrap_or(0) + FAULT_AROUND
    };
    (0..gguf.paths().len().max(1)).map(first).sum()
}

/// A block of the allocator.
fn block(len: usize) -> u64 {
    (len as u64 + 8).next_multiple_of(16).max(32)
}

fn strings_bytes(strings: &[String]) -> u64 {
    strings.iter().map(|s| size_of::<String>() as u64 + block(s.len())).sum()
}

/// The metadata, which stay as they were read.
fn metadata_bytes(metadata: &Metadata) -> u64 {
    metadata
        .iter()
        .map(|(key, value)| {
            128 + block(key.len())
                + match value {
                    Value::String(text) => block(text.len()),
                    Value::Array(array) => array_bytes(array),
                    _ => 0,
                }
        })
        .sum()
}

fn array_bytes(array: &Array) -> u64 {
    let width = match array {
        Array::String(strings) => return strings_bytes(strings),
        Array::Array(arrays) => {
            return arrays.iter().map(|a| size_of::<Array>() as u64 + array_bytes(a)).sum();
        }
        Array::U8(_) | Array::I8(_) | Array::Bool(_) => 1,
        Array::U16(_) | Array::I16(_) => 2,
        Array::U32(_) | Array::I32(_) | Array::F32(_) => 4,
        Array::U64(_) | Array::I64(_) | Array::F64(_) => 8,
    };
    array.len() as u64 * width
}

/// The tokenizer that is made of them: pieces and their index, merges, and what finds special tokens and words.
fn tokenizer_bytes(metadata: &Metadata) -> u64 {
    let strings = |key: &str| metadata.strings(key).ok().flatten().unwrap_or_default();
    let (tokens, merges) = (strings("tokenizer.ggml.tokens"), strings("tokenizer.ggml.merges"));
    if tokens.is_empty() {
        return 0;
    }
    let pieces: u64 = tokens.iter().map(|t| t.len() as u64).sum();
    let n = tokens.len() as u64;
    // Tables have a power of two of places, of which they fill seven in eight, and a byte beside each.
    let table = |n: u64, entry: u64| if n == 0 { 0 } else { (n * 8 / 7).next_power_of_two() * (entry + 1) };
    let per_token = 4 + 1 + 4;
    // Types and scores are read into lists of their own, which are dropped.
    let read = n * (8 + 4);
    let special = metadata.i64s("tokenizer.ggml.token_type").ok().flatten().unwrap_or_default();
    let special: u64 = tokens
        .iter()
        .zip(&special)
        .filter(|(_, kind)| matches!(kind, 2..=4))
        .map(|(t, _)| t.len() as u64 + 16)
        .sum();
    pieces
        + n * per_token
        + table(n, 4)
        + table(merges.len() as u64, 16)
        + read
        + 2 * AUTOMATON * special
        + WORDS
}

/// Bytes of the automaton that finds special tokens, for each byte of them; there are two.
const AUTOMATON: u64 = 24;
/// What finds words: a compiled pattern, and automata that grow with the texts they see up to a limit.
const WORDS: u64 = 4 * MIB;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engine, Wanted};
    use std::path::PathBuf;
    use turbospark_experts::plan::plan;
    use turbospark_experts::read::BLOCK;
    use turbospark_kernels::KvKind;

    fn fixtures() -> Vec<PathBuf> {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/oracle");
        let files = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
        let mut files: Vec<PathBuf> = files.filter(|p| p.extension().is_some_and(|e| e == "gguf")).collect();
        files.sort();
        assert!(files.len() > 20);
        files
    }

    /// What a batch of `rows` rows, and then one of a few less and one row, leave in the buffers.
    fn held(engine: &Engine, rows: usize) -> (u64, u64) {
        let ids: Vec<u32> = (0..rows as u32).map(|i| i * 7 % engine.spec().n_vocab as u32).collect();
        for wanted in [Wanted::All, Wanted::Last, Wanted::Nothing] {
            engine.feed(&mut engine.sequence(), &ids, Some(rows), wanted, |_, _| ()).unwrap();
        }
        let mut sequence = engine.sequence();
        engine.feed(&mut sequence, &ids[..rows - 3], Some(rows), Wanted::Last, |_, _| ()).unwrap();
        engine.feed(&mut sequence, &ids[..1], None, Wanted::Last, |_, _| ()).unwrap();
        engine.held_bytes()
    }

    #[test]
    fn buffers_hold_exactly_what_is_counted_and_scratch_no_more() {
        for file in fixtures() {
            for (rows, threads) in [(40, 1), (96, 2)] {
                let options =
                    EngineOptions { threads: Some(threads), context: Some(128), ..EngineOptions::default() };
                let engine = Engine::open(&file, options).unwrap();
                let (spec, gguf, name) = (engine.spec(), engine.gguf(), file.display());
                let (buffers, scratch) = held(&engine, rows);
                let counted = buffer_bytes(spec, rows);
                // Notes on rows are no buffers.
                let noted = counted - buffers.min(counted);
                assert!(buffers <= counted && noted <= rows as u64 * 200, "{name}: {buffers} of {counted}");
                let counted = scratch_bytes(spec, gguf, rows, threads);
                assert!(scratch <= counted, "{name}: scratch {scratch} of {counted}");
                assert!(scratch * 4 > counted || counted < 9 * MIB, "{name}: scratch {scratch} of {counted}");
            }
        }
    }

    #[test]
    fn every_weight_is_counted_once() {
        for file in fixtures() {
            let gguf = Gguf::open(&file).unwrap();
            let spec = ModelSpec::from_gguf(&gguf).unwrap();
            let needs = needs(&spec, &gguf, &EngineOptions { context: Some(64), ..EngineOptions::default() })
                .unwrap();
            let unused: u64 = gguf
                .tensors()
                .iter()
                .zip(&spec.roles)
                .filter(|(_, r)| **r == Role::Unused)
                .map(|(t, _)| t.bytes)
                .sum();
            let all: u64 = gguf.tensors().iter().map(|t| t.bytes).sum();
            assert_eq!(needs.resident_bytes() + needs.expert_bytes() + unused, all, "{}", file.display());
            assert!(needs.dense_layers.iter().map(|l| l.bytes).sum::<u64>() <= needs.resident_bytes());
            for (layer, i) in needs.layers.iter().zip(0..) {
                let (least, most) = (layer.bytes, layer.bytes + 3 * 2 * BLOCK as u64);
                assert!(
                    layer.read > least && layer.read < most && needs.slot >= layer.read,
                    "{}, {i}",
                    file.display()
                );
            }
            let plan = plan(&needs, 1 << 30).unwrap();
            assert!(plan.all_in_memory() && plan.total() <= 1 << 30);
        }
    }

    #[test]
    fn longer_contexts_and_wider_caches_need_more() {
        let gguf = Gguf::open(&fixtures()[0]).unwrap();
        let spec = ModelSpec::from_gguf(&gguf).unwrap();
        let kv = |context, kv| {
            let options = EngineOptions { context: Some(context), kv, ..EngineOptions::default() };
            needs(&spec, &gguf, &options).unwrap().batches[0].kv
        };
        assert!(kv(512, KvKind::F16) < kv(4096, KvKind::F16) && kv(512, KvKind::F16) < kv(512, KvKind::F32));
        let none = EngineOptions { context: Some(0), ..EngineOptions::default() };
        assert!(matches!(needs(&spec, &gguf, &none), Err(EngineError::BadContext { .. })));
        let shared = |kv_bytes| {
            let options = EngineOptions { context: Some(512), kv_bytes, ..EngineOptions::default() };
            needs(&spec, &gguf, &options).unwrap().batches[0].kv
        };
        assert!(shared(Some(1)) == shared(None) && shared(Some(1 << 30)) > 1 << 30);
    }

    #[test]
    fn batch_sizes_ascend_from_the_fewest_rows_to_the_context() {
        let sizes: Vec<usize> = batch_sizes(1 << 20).collect();
        assert!(
            sizes[0] == LEAST_ROWS && sizes.contains(&RESIDENT_ROWS) && *sizes.last().unwrap() == MOST_ROWS
        );
        assert!(sizes.is_sorted());
        assert_eq!(batch_sizes(1).collect::<Vec<_>>(), [LEAST_ROWS]);
        assert_eq!(batch_sizes(100).collect::<Vec<_>>(), [32, 64, 96, 128]);
    }
}
