//! What a layer's router chose: the unit in which experts are requested, cached, traced and replayed.
//!
//! Invariant: experts ascend, so whoever walks a batch meets them in the same order.

/// What a forward pass works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// A prompt: many rows at once.
    Prefill,
    /// One row of each sequence.
    Decode,
}

/// One expert of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Its layer.
    pub layer: u32,
    /// Its index in the layer.
    pub expert: u32,
}

/// The experts that one layer's router chose for some rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteBatch<'a> {
    /// What the rows are.
    pub phase: Phase,
    /// The layer.
    pub layer: u32,
    /// Rows that were routed, at least 1.
    pub n_rows: u32,
    /// The distinct experts of the rows, ascending.
    pub experts: &'a [u32],
    /// Rows that each expert got, from 1 to `n_rows`; as long as `experts`.
    pub rows: &'a [u32],
}

impl RouteBatch<'_> {
    /// The experts with their layer.
    pub fn keys(&self) -> impl Iterator<Item = Key> {
        self.experts.iter().map(|&expert| Key { layer: self.layer, expert })
    }
}

/// What is told of each layer's routing during a forward pass.
pub trait RouteSink: Send {
    /// A layer's router has chosen. Layers come in the order of the forward pass.
    fn routed(&mut self, batch: &RouteBatch<'_>);
}
