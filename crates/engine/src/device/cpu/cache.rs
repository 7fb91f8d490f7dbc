//! What one sequence leaves in the layers: keys and values, compressed rows, recurrent states.
//!
//! Invariant: a cache never claims positions that it can't read. Windowed layers forget what no later row sees and recurrent
//! layers keep only their last state, so going back is possible only a little way, or to a checkpoint. Checkpoints and forks share
//! pages with the cache that they come from.

use turbospark_kernels::{DeltaShape, DeltaState, HeadOrder, KvKind, KvLayer, Values};
use turbospark_model::{Attention, DeltaNet, KeyValues, Mixer, ModelSpec};

/// Positions that a windowed layer keeps beyond its window, so that the end of a sequence can be taken back.
const REWIND: usize = 64;

/// One sequence's state in one layer.
#[derive(Clone)]
pub(super) enum LayerCache {
    /// Keys and values of the positions that later rows may see.
    Keys { kv: KvLayer, window: Option<usize> },
    /// A recurrent state.
    Delta(DeltaState),
    /// The layer reads another layer's cache.
    Shared,
}

/// One sequence's state in all layers.
pub struct CpuCache {
    pub(super) layers: Vec<LayerCache>,
    checkpoint: Option<Checkpoint>,
}

/// What layers that can't be taken back had at an earlier position.
struct Checkpoint {
    positions: usize,
    /// `None` for layers that can.
    layers: Vec<Option<LayerCache>>,
}

impl CpuCache {
    /// An empty cache; memory is taken in pages as positions are written.
    pub fn new(spec: &ModelSpec, kind: KvKind) -> CpuCache {
        let layer = |mixer: &Mixer| match mixer {
            Mixer::Attention(a) if matches!(a.kv, KeyValues::OfLayer(_)) => LayerCache::Shared,
            Mixer::Attention(a) => {
                let kv = KvLayer::new(kind, a.n_kv_heads, a.head_dim, Values::Own(a.v_dim));
                LayerCache::Keys { kv, window: a.window }
            }
            Mixer::Latent(a) => {
                let kv = KvLayer::new(kind, 1, a.rank + a.rope_dim, Values::OfKeys(a.rank));
                LayerCache::Keys { kv, window: None }
            }
            Mixer::Delta(d) => LayerCache::Delta(DeltaState::new(&delta_shape(d))),
        };
        CpuCache { layers: spec.layers.iter().map(|l| layer(&l.mixer)).collect(), checkpoint: None }
    }

    /// Bytes that the point takes to which a sequence can go back, in layers that can't be taken back: what [`CpuCache::save`] copies.
    pub fn checkpoint_bytes_for(spec: &ModelSpec, kind: KvKind, positions: usize, rows: usize) -> u64 {
        let kept = |mixer: &Mixer| {
            matches!(mixer, Mixer::Attention(Attention { window: Some(_), .. }) | Mixer::Delta(_))
        };
        CpuCache::bytes_of(spec, kind, positions, rows, kept)
    }

    /// Bytes that a sequence of `positions` positions takes at most, when `rows` are fed at a time.
    pub fn bytes_for(spec: &ModelSpec, kind: KvKind, positions: usize, rows: usize) -> u64 {
        CpuCache::bytes_of(spec, kind, positions, rows, |_| true)
    }

    fn bytes_of(
        spec: &ModelSpec,
        kind: KvKind,
        positions: usize,
        rows: usize,
        of: impl Fn(&Mixer) -> bool,
    ) -> u64 {
        let layer = |mixer: &Mixer| match mixer {
            Mixer::Attention(a) if matches!(a.kv, KeyValues::OfLayer(_)) => 0,
            Mixer::Attention(a) => {
                let window = a.window.map(|w| w.saturating_add(REWIND));
                let held = KvLayer::held_at_most(positions, window, rows);
                KvLayer::bytes_for(kind, a.n_kv_heads, a.head_dim, Values::Own(a.v_dim), held)
            }
            Mixer::Latent(a) => {
                let k_dim = a.rank + a.rope_dim;
                KvLayer::bytes_for(kind, 1, k_dim, Values::OfKeys(a.rank), positions)
            }
            Mixer::Delta(d) => DeltaState::bytes_for(&delta_shape(d)),
        };
        spec.layers.iter().filter(|l| of(&l.mixer)).map(|l| layer(&l.mixer) as u64).sum()
    }

    /// Whether some layer keeps only its last state, so that only a checkpoint can be gone back to.
    pub fn is_recurrent(&self) -> bool {
        self.layers.iter().any(|l| matches!(l, LayerCache::Delta(_)))
    }

    /// Keeps what can't be taken back of the state at `positions`, the number of positions fed. Replaces the checkpoint before.
    pub fn save(&mut self, positions: usize) {
        // Before the copy of states: there is never more than one.
        self.checkpoint = None;
        let layers = self.layers.iter().map(|l| match l {
            LayerCache::Keys { window: None, .. } | LayerCache::Shared => None,
            LayerCache::Keys { .. } | LayerCache::Delta(_) => Some(l.clone()),
        });
        self.checkpoint = Some(Checkpoint { positions, layers: layers.collect() });
    }

    /// Another cache with the first `to` of `from` positions, without a checkpoint; `None` where their state is gone. Pages are shared
    /// until one of both writes to them.
    pub fn fork(&self, from: usize, to: usize) -> Option<CpuCache> {
        let saved = self.checkpoint.as_ref().filter(|c| c.positions == to);
        let saved = if self.reaches(Some(from), to) { None } else { Some(saved?) };
        let fork = |(i, layer): (usize, &LayerCache)| {
            let saved = saved.and_then(|c| c.layers[i].as_ref());
            let mut layer = saved.unwrap_or(layer).clone();
            if let LayerCache::Keys { kv, .. } = &mut layer {
                kv.truncate(to);
            }
            layer
        };
        Some(CpuCache { layers: self.layers.iter().enumerate().map(fork).collect(), checkpoint: None })
    }

    /// Whether the first `to` of `from` positions can be gone back to without the checkpoint.
    fn reaches(&self, from: Option<usize>, to: usize) -> bool {
        self.layers.iter().all(|l| match l {
            LayerCache::Keys { kv, window: Some(window) } => kv.oldest() <= (to + 1).saturating_sub(*window),
            LayerCache::Delta(_) => from == Some(to),
            LayerCache::Keys { window: None, .. } | LayerCache::Shared => true,
        })
    }

    /// Whether [`CpuCache::fork`] gives a cache.
    pub fn can_fork(&self, from: usize, to: usize) -> bool {
        self.reaches(Some(from), to) || self.checkpoint.as_ref().is_some_and(|c| c.positions == to)
    }

    /// Calls `visit(address, bytes)` for each block of memory that the layers hold: pages, which caches may share, and states.
    pub fn each_block(&self, visit: &mut dyn FnMut(usize, usize)) {
        for layer in &self.layers {
            match layer {
                LayerCache::Keys { kv, .. } => kv.each_page(visit),
                LayerCache::Delta(state) => visit(std::ptr::from_ref(state).addr(), state.bytes()),
                LayerCache::Shared => {}
            }
        }
    }

    /// Goes back to the first `to` positions of `from`, or to fewer where their state is gone; returns how many are left.
    /// `from` is `None` where the layers are not all at the same position, as after an error.
    pub fn rewind(&mut self, from: Option<usize>, to: usize) -> usize {
        let reachable = self.reaches(from, to);
        let saved = self.checkpoint.take().filter(|c| c.positions <= to);
        let left = match &saved {
            _ if reachable => to,
            Some(checkpoint) => checkpoint.positions,
            None => 0,
        };
        for (i, layer) in self.layers.iter_mut().enumerate() {
            if !reachable && let Some(saved) = saved.as_ref().and_then(|c| c.layers[i].as_ref()) {
                *layer = saved.clone();
            }
            match layer {
                LayerCache::Keys { kv, .. } => kv.truncate(left),
                LayerCache::Delta(state) if left == 0 => state.reset(),
                LayerCache::Delta(_) | LayerCache::Shared => {}
            }
        }
        self.checkpoint = saved;
        left
    }

    /// The keys and values that attention over `layer` reads.
    pub(super) fn keys(&self, layer: usize) -> &KvLayer {
        match &self.layers[layer] {
            LayerCache::Keys { kv, .. } => kv,
            LayerCache::Delta(_) | LayerCache::Shared => unreachable!("layer {layer} has no keys"),
        }
    }

    /// The keys of `layer` for writing from position `start` on, after what no row from there on sees is forgotten.
    pub(super) fn keys_from(&mut self, layer: usize, start: usize) -> &mut KvLayer {
        match &mut self.layers[layer] {
            LayerCache::Keys { kv, window } => {
                if let Some(window) = window {
                    kv.forget_before((start + 1).saturating_sub(window.saturating_add(REWIND)));
                }
                kv
            }
            LayerCache::Delta(_) | LayerCache::Shared => unreachable!("layer {layer} caches no keys"),
        }
    }

    pub(super) fn state(&mut self, layer: usize) -> &mut DeltaState {
        match &mut self.layers[layer] {
            LayerCache::Delta(state) => state,
            LayerCache::Keys { .. } | LayerCache::Shared => unreachable!("layer {layer} is not recurrent"),
        }
    }
}

/// The kernels' view of a delta net.
pub(super) fn delta_shape(net: &DeltaNet) -> DeltaShape {
    DeltaShape {
        n_k_heads: net.n_k_heads,
        n_v_heads: net.n_v_heads,
        k_dim: net.k_dim,
        v_dim: net.v_dim,
        conv_width: net.conv_width,
        heads: match net.heads {
            turbospark_model::HeadOrder::Grouped => HeadOrder::Grouped,
            turbospark_model::HeadOrder::Tiled => HeadOrder::Tiled,
        },
    }
}
