//! What opening decides: the memory plan, the context, and where experts come from.
//!
//! Invariant: the engine does what the plan says: the same code gives `plan` its numbers and the engine its slots and batches.

use std::sync::Arc;

use turbospark_experts::plan::{MemoryPlan, Placement, available, plan};
use turbospark_experts::read::{Files, IoChoice, Reader, Segment, choose, choose_among};
use turbospark_experts::{
    CacheCore, CacheShape, ExpertLayout, LayerRuns, Mapped, PolicyKind, Residency, Slots, Streamed,
    StreamedLayers, WINDOW,
};
use turbospark_format::Gguf;
use turbospark_model::{ModelSpec, Role};

use crate::device::CpuCache;
use crate::engine::{context_of, experts_of};
use crate::plan::{layer_runs, needs};
use crate::{EngineError, EngineOptions};

/// A context that nobody asked for is not cut below this.
const LEAST_CONTEXT: usize = 4096;
/// The part of a budget that the cache of a context that nobody asked for may take.
const CONTEXT_SHARE: u64 = 8;
/// Bytes of experts that are read ahead of a long prompt's layers, as far as there is room.
const READ_AHEAD: u64 = 128 << 20;
/// The part of the slots that reading ahead may take.
const AHEAD_SHARE: usize = 8;

/// Makes the plan for the options' budget, or for what the machine has free; `None` where neither is known. With it comes the
/// context: where none was asked for, as much of the trained one as a fair part of the budget holds.
///
/// # Errors
/// A budget below the floor; a context of no positions or too many.
pub fn plan_memory(
    spec: &ModelSpec,
    gguf: &Gguf,
    options: &EngineOptions,
) -> Result<(usize, Option<MemoryPlan>), EngineError> {
    let mut context = context_of(spec, options)?;
    let budget = options.memory.or_else(|| available().map(|a| a.bytes));
    let Some(budget) = budget else { return Ok((context, None)) };
    if options.context.is_none() {
        let bytes = |context| CpuCache::bytes_for(spec, options.kv, context, LEAST_CONTEXT);
        while context > LEAST_CONTEXT && bytes(context) > budget / CONTEXT_SHARE {
            context = (context / 2).max(LEAST_CONTEXT);
        }
    }
    let options = EngineOptions { context: Some(context), ..*options };
    Ok((context, Some(plan(&needs(spec, gguf, &options)?, budget)?)))
}

/// How weights are streamed.
pub(crate) struct Streaming {
    pub(crate) io: IoChoice,
    /// Experts that the cache holds, without those that are read ahead; `None` where layers are streamed.
    pub(crate) cached: Option<usize>,
}

/// Where weights come from that need not stay in memory.
pub(crate) struct Sources {
    pub(crate) experts: Box<dyn Residency>,
    pub(crate) layers: Option<StreamedLayers>,
    /// `None` where everything is mapped.
    pub(crate) streaming: Option<Streaming>,
    /// Tensors that stay where the file is mapped, by index.
    pub(crate) mapped: Vec<bool>,
}

/// Opens what the plan says: the file's mapping where it holds everything, else slots that are read into.
pub(crate) fn sources(
    gguf: &Arc<Gguf>,
    spec: &ModelSpec,
    options: &EngineOptions,
    plan: Option<&MemoryPlan>,
) -> Result<Sources, EngineError> {
    let placement = plan.map(|p| p.placement);
    let layout = ExpertLayout::new(gguf, experts_of(spec))?;
    let slot = layout.slot_bytes(gguf);
    let mut mapped: Vec<bool> = spec.roles.iter().map(|role| *role != Role::Unused).collect();
    let planned = match placement {
        Some(Placement::Experts { slots, .. }) => Some(slots),
        _ => None,
    };
    if let Some(slots) = options.expert_slots.or(planned).filter(|_| slot > 0) {
        for (mapped, role) in mapped.iter_mut().zip(&spec.roles) {
            *mapped &= *role != Role::Expert;
        }
        let (experts, streaming) = stream_experts(gguf, layout, slots, options)?;
        return Ok(Sources { experts: Box::new(experts), layers: None, streaming: Some(streaming), mapped });
    }
    let experts = Box::new(Mapped::new(gguf.clone(), layout));
    let pinned = match placement {
        Some(Placement::Layers(dense)) => Some(dense.pinned),
        _ => None,
    };
    let mut runs = layer_runs(spec, gguf);
    let Some(pinned) = options.pinned_layers.or(pinned).filter(|&pinned| pinned < runs.len()) else {
        return Ok(Sources { experts, layers: None, streaming: None, mapped });
    };
    let runs = runs.split_off(pinned);
    for index in runs.iter().flat_map(LayerRuns::tensors) {
        mapped[index] = false;
    }
    let (layers, io) = stream_layers(gguf, runs, options)?;
    let streaming = Some(Streaming { io, cached: None });
    Ok(Sources { experts, layers: Some(layers), streaming, mapped })
}

fn stream_experts(
    gguf: &Arc<Gguf>,
    layout: ExpertLayout,
    slots: usize,
    options: &EngineOptions,
) -> Result<(Streamed, Streaming), EngineError> {
    let slot = layout.slot_bytes(gguf);
    // Reading ahead takes its slots from those that were planned.
    let ahead = (slots / AHEAD_SHARE).min((READ_AHEAD / slot as u64) as usize).max(1);
    let cached = slots.saturating_sub(ahead).max(1);
    let pool = Slots::new(cached + ahead, slot)?;
    let mut segments = Vec::new();
    for (layer, expert) in layout.experts() {
        segments.extend(layout.segments(gguf, layer, expert)?);
    }
    let (reader, io) = open_reader(gguf, options, &pool, &segments)?;
    let experts = layout.layers().iter().flatten().map(|l| l.n_experts).max().unwrap_or_default();
    let shape = CacheShape { layers: layout.layers().len(), experts, slots: cached };
    let core = CacheCore::new(shape, WINDOW, PolicyKind::default().build(shape));
    let streaming = Streaming { io, cached: Some(cached) };
    Ok((Streamed::new(gguf.clone(), layout, pool, reader, core), streaming))
}

fn stream_layers(
    gguf: &Gguf,
    runs: Vec<LayerRuns>,
    options: &EngineOptions,
) -> Result<(StreamedLayers, IoChoice), EngineError> {
    let largest = runs.iter().map(LayerRuns::read_bytes).max().unwrap_or_default();
    let pool = Slots::new(runs.len().min(2), largest)?;
    let segments: Vec<_> = runs.iter().flat_map(|r| r.segments().iter().copied()).collect();
    let (reader, io) = open_reader(gguf, options, &pool, &segments)?;
    Ok((StreamedLayers::new(runs, pool, reader), io))
}

/// Opens the fastest way to read `segments`, or the one that was asked for.
fn open_reader(
    gguf: &Gguf,
    options: &EngineOptions,
    pool: &Arc<Slots>,
    segments: &[Segment],
) -> Result<(Box<dyn Reader>, IoChoice), EngineError> {
    let files = Files::open(gguf.paths(), options.io)?;
    Ok(match options.reads {
        Some(method) => choose_among(&[method], &files, pool, segments)?,
        None => choose(&files, pool, segments)?,
    })
}
