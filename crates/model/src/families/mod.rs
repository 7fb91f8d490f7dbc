//! One file per family: metadata and tensor names to a spec, no arithmetic.
//!
//! To add one, write its file beside these and its row in `FAMILIES`. The row's string is matched against
//! `general.architecture` exactly.

mod gemma3;
mod llama;
mod parts;
mod plain;
mod qwen2;
mod qwen3;

use turbospark_format::Gguf;

use crate::keys::Keys;
use crate::spec::{Embedding, Head, Layer};
use crate::tensors::Tensors;
use crate::{ModelError, ModelSpec};
use parts::Dims;

/// What a family's function hands back; the rest of the spec is the same for all of them.
struct Body {
    dims: Dims,
    n_vocab: usize,
    embedding: Embedding,
    layers: Vec<Layer>,
    head: Head,
}

type Family = fn(&Keys<'_>, &mut Tensors<'_>) -> Result<Body, ModelError>;

const FAMILIES: &[(&str, Family)] =
    &[("gemma3", gemma3::body), ("llama", llama::body), ("qwen2", qwen2::body), ("qwen3", qwen3::body)];

/// The architecture strings that can be run, in alphabetical order.
pub fn architectures() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().map(|(name, _)| *name)
}

pub(crate) fn spec(gguf: &Gguf) -> Result<ModelSpec, ModelError> {
    let metadata = gguf.metadata();
    let key = "general.architecture";
    let architecture = metadata.str(key)?.ok_or_else(|| ModelError::MissingKey { key: key.to_owned() })?;
    let Some((_, family)) = FAMILIES.iter().find(|(name, _)| *name == architecture) else {
        return Err(ModelError::UnknownArchitecture {
            found: architecture.to_owned(),
            supported: architectures().collect::<Vec<_>>().join(", "),
        });
    };
    let mut tensors = Tensors::new(gguf, architecture);
    let body = family(&Keys::new(metadata, architecture), &mut tensors)?;
    Ok(ModelSpec {
        architecture: architecture.to_owned(),
        name: metadata.str("general.name")?.map(str::to_owned),
        n_vocab: body.n_vocab,
        hidden: body.dims.hidden,
        context_length: body.dims.context_length,
        embedding: body.embedding,
        side: None,
        layers: body.layers,
        head: body.head,
        roles: tensors.finish()?,
    })
}
