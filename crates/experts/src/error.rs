//! Why an expert can't be had.

/// A request for experts that can't be met.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExpertError {
    /// A layer without routed experts, or an expert beyond the layer's.
    #[error("layer {layer} has no expert {expert}")]
    NoSuchExpert {
        /// The layer.
        layer: usize,
        /// The expert.
        expert: u32,
    },

    /// The caller asked to stop while reads were awaited.
    #[error("stopped while weights of layer {layer} were read")]
    Cancelled {
        /// The layer.
        layer: usize,
    },

    /// A tensor that is not made of so many experts of one size.
    #[error("tensor `{name}` of {bytes} bytes can't be cut into {n_experts} experts of one size")]
    UnevenTensor {
        /// The tensor.
        name: String,
        /// Its bytes.
        bytes: u64,
        /// Experts it should hold.
        n_experts: usize,
    },

    /// Memory for slots that the system does not give.
    #[error("no memory for {slots} slots of {slot_bytes} bytes: {source}")]
    NoMemory {
        /// Slots asked for.
        slots: usize,
        /// Bytes of each.
        slot_bytes: usize,
        /// What the system said.
        source: std::io::Error,
    },

    /// Bytes of a whole layer that can't be read.
    #[error("layer {layer}: {source}")]
    ReadLayer {
        /// The layer.
        layer: usize,
        /// What and where.
        source: crate::ReadError,
    },

    /// Bytes of an expert that can't be read.
    #[error("layer {layer}, expert {expert}: {source}")]
    Read {
        /// The layer.
        layer: usize,
        /// The expert.
        expert: u32,
        /// What and where.
        source: crate::ReadError,
    },
}
