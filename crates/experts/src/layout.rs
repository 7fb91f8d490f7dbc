//! Where each expert lies in the file: the tensors of each layer, cut into experts of one size.
//!
//! Invariant: every part of every expert lies within its tensor.

use smallvec::SmallVec;
use turbospark_format::Gguf;

use crate::ExpertError;
use crate::read::{Segment, room_for};

/// Where the parts of one expert lie.
pub type Segments = SmallVec<[Segment; 3]>;

/// The routed experts of one layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerExperts {
    /// Experts, of which each tensor holds one part each, in order.
    pub n_experts: usize,
    /// Indices in `Gguf::tensors()`: three where gate, up and down are apart, two where the first two are fused.
    pub tensors: Vec<usize>,
}

/// The routed experts of a model, layer by layer; `None` for layers without.
#[derive(Debug, Clone)]
pub struct ExpertLayout {
    layers: Vec<Option<LayerExperts>>,
}

impl ExpertLayout {
    /// # Errors
    /// A tensor whose bytes are no whole number for each expert.
    pub fn new(gguf: &Gguf, layers: Vec<Option<LayerExperts>>) -> Result<ExpertLayout, ExpertError> {
        for layer in layers.iter().flatten() {
            for &index in &layer.tensors {
                let tensor = &gguf.tensors()[index];
                if layer.n_experts == 0 || !tensor.bytes.is_multiple_of(layer.n_experts as u64) {
                    return Err(ExpertError::UnevenTensor {
                        name: tensor.name.clone(),
                        bytes: tensor.bytes,
                        n_experts: layer.n_experts,
                    });
                }
            }
        }
        Ok(ExpertLayout { layers })
    }

    /// Where the parts of `expert` of `layer` lie, in the layer's order of tensors.
    ///
    /// # Errors
    /// An expert that is not there.
    pub fn segments(&self, gguf: &Gguf, layer: usize, expert: u32) -> Result<Segments, ExpertError> {
        let experts = self.layer(layer, expert)?;
        let segment = |&index: &usize| {
            let tensor = &gguf.tensors()[index];
            let len = tensor.bytes / experts.n_experts as u64;
            Segment { file: tensor.shard, offset: tensor.offset + u64::from(expert) * len, len: len as usize }
        };
        Ok(experts.tensors.iter().map(segment).collect())
    }

    /// Every expert, as its layer and its index there.
    pub fn experts(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        let layers = self.layers.iter().enumerate().filter_map(|(i, l)| Some((i, l.as_ref()?)));
        layers.flat_map(|(i, l)| (0..l.n_experts as u32).map(move |e| (i, e)))
    }

    /// Bytes that the largest expert takes in a slot, with what is read around its parts.
    pub fn slot_bytes(&self, gguf: &Gguf) -> usize {
        let segments = self.experts().filter_map(|(layer, expert)| self.segments(gguf, layer, expert).ok());
        segments.map(|s| room_for(&s)).max().unwrap_or_default()
    }

    /// The layers' experts, in order.
    pub fn layers(&self) -> &[Option<LayerExperts>] {
        &self.layers
    }

    /// The experts of `layer`, if it has `expert` among them.
    pub(crate) fn layer(&self, layer: usize, expert: u32) -> Result<&LayerExperts, ExpertError> {
        match self.layers.get(layer) {
            Some(Some(experts)) if (expert as usize) < experts.n_experts => Ok(experts),
            _ => Err(ExpertError::NoSuchExpert { layer, expert }),
        }
    }
}
