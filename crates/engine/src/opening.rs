//! What opening decides: the memory plan, the context, and where experts come from.
//!
//! Invariant: the engine does what the plan says: the same code gives `plan` its numbers and the engine its slots and batches.

use std::sync::Arc;

use turbospark_experts::plan::{Experts, MemoryPlan, available, plan};
use turbospark_experts::read::{Files, IoChoice, choose, choose_among};
use turbospark_experts::{
    CacheCore, CacheShape, ExpertLayout, Mapped, PolicyKind, Residency, Slots, Streamed, WINDOW,
};
use turbospark_format::Gguf;
use turbospark_model::ModelSpec;

use crate::device::CpuCache;
use crate::engine::{context_of, experts_of};
use crate::plan::needs;
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

/// How experts are streamed.
pub(crate) struct Streaming {
    pub(crate) io: IoChoice,
    /// Experts that the cache holds, without those that are read ahead.
    pub(crate) cached: usize,
}

/// Where experts come from: the file's mapping where the plan holds all of them, else slots that are read into.
pub(crate) fn residency(
    gguf: &Arc<Gguf>,
    spec: &ModelSpec,
    options: &EngineOptions,
    plan: Option<&MemoryPlan>,
) -> Result<(Box<dyn Residency>, Option<Streaming>), EngineError> {
    let layout = ExpertLayout::new(gguf, experts_of(spec))?;
    let slot = layout.slot_bytes(gguf);
    let planned = match plan.map(|p| p.experts) {
        Some(Experts::Streamed { slots, .. }) => Some(slots),
        _ => None,
    };
    let Some(slots) = options.expert_slots.or(planned).filter(|_| slot > 0) else {
        return Ok((Box::new(Mapped::new(gguf.clone(), layout)), None));
    };
    // Reading ahead takes its slots from those that were planned.
    let ahead = (slots / AHEAD_SHARE).min((READ_AHEAD / slot as u64) as usize).max(1);
    let cached = slots.saturating_sub(ahead).max(1);
    let pool = Slots::new(cached + ahead, slot)?;
    let files = Files::open(gguf.paths(), options.io)?;
    let mut segments = Vec::new();
    for (layer, expert) in layout.experts() {
        segments.extend(layout.segments(gguf, layer, expert)?);
    }
    let (reader, choice) = match options.reads {
        Some(method) => choose_among(&[method], &files, &pool, &segments)?,
        None => choose(&files, &pool, &segments)?,
    };
    let experts = layout.layers().iter().flatten().map(|l| l.n_experts).max().unwrap_or_default();
    let shape = CacheShape { layers: layout.layers().len(), experts, slots: cached };
    let core = CacheCore::new(shape, WINDOW, PolicyKind::default().build(shape));
    let streaming = Streaming { io: choice, cached };
    Ok((Box::new(Streamed::new(gguf.clone(), layout, pool, reader, core)), Some(streaming)))
}
