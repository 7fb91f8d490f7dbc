//! An architecture as data: [`ModelSpec`] says what a model file computes, and nothing here computes it.
//!
//! A family is one small file in `families`: a function from a file's metadata and tensor
//! names to a [`ModelSpec`]. It is chosen by `general.architecture` alone, never by which tensors happen to be
//! there. What is not supported is refused by name; a key that is absent takes the GGUF format's default, never
//! another family's; a tensor that no family consumed is an error, because ignoring it would compute another
//! model.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let gguf = turbospark_format::Gguf::open("model.gguf")?;
//! let spec = turbospark_model::ModelSpec::from_gguf(&gguf)?;
//! println!("{}: {} layers of width {}", spec.architecture, spec.layers.len(), spec.hidden);
//! # Ok(()) }
//! ```
#![forbid(unsafe_code)]

mod error;
mod families;
mod keys;
mod spec;
mod tensors;

pub use error::ModelError;
pub use families::architectures;
pub use spec::{
    Activation, Attention, DeltaGates, DeltaNet, DenseFeedForward, Embedding, ExpertGroups, FeedForward,
    Head, HeadOrder, KeyValues, LatentAttention, LatentQuery, Layer, Linear, Mixer, ModelSpec, Moe, Norm,
    Pairing, QueryTemperature, Rope, RopeScaling, Router, Scoring, SharedExpert, SideBranch, SideEmbedding,
    Stack,
};
pub use tensors::{Role, TensorRef};
