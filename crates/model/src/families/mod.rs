//! One file per family: metadata and tensor names to a spec, no arithmetic.
//!
//! To add one, write its file beside these and its row in `FAMILIES`. The row's string is matched against
//! `general.architecture` exactly.

mod deepseek2;
mod gemma3;
mod gemma4;
mod gemma4_experts;
mod glm4_moe;
mod gpt_oss;
mod granite;
mod hybrid;
mod llama;
mod minimax_m2;
mod mistral3;
mod olmoe;
mod parts;
mod phi3;
mod plain;
mod qwen2;
mod qwen3;
mod smollm3;

use turbospark_format::Gguf;

use crate::keys::Keys;
use crate::spec::{Embedding, Head, Layer, SideEmbedding};
use crate::tensors::Tensors;
use crate::{ModelError, ModelSpec};
use parts::Dims;

/// What a family's function hands back; the rest of the spec is the same for all of them.
struct Body {
    dims: Dims,
    n_vocab: usize,
    embedding: Embedding,
    side: Option<SideEmbedding>,
    layers: Vec<Layer>,
    head: Head,
}

type Family = fn(&Keys<'_>, &mut Tensors<'_>) -> Result<Body, ModelError>;

const FAMILIES: &[(&str, Family)] = &[
    ("deepseek2", deepseek2::body),
    ("gemma3", gemma3::body),
    ("gemma4", gemma4::body),
    ("glm4moe", glm4_moe::body),
    ("gpt-oss", gpt_oss::body),
    ("granite", granite::dense),
    ("granitemoe", granite::moe),
    ("llama", llama::body),
    ("minimax-m2", minimax_m2::body),
    ("mistral3", mistral3::body),
    ("olmoe", olmoe::body),
    ("phi3", phi3::body),
    ("qwen2", qwen2::dense),
    ("qwen2moe", qwen2::moe),
    ("qwen3", qwen3::dense),
    ("qwen35", hybrid::qwen35),
    ("qwen35moe", hybrid::qwen35moe),
    ("qwen3moe", qwen3::moe),
    ("qwen3next", hybrid::qwen3next),
    ("qwen3vl", qwen3::dense),
    ("qwen3vlmoe", qwen3::moe),
    ("smollm3", smollm3::body),
];

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
    tensors.ignore_blocks(body.dims.n_layers, body.dims.n_blocks);
    Ok(ModelSpec {
        architecture: architecture.to_owned(),
        name: metadata.str("general.name")?.map(str::to_owned),
        n_vocab: body.n_vocab,
        hidden: body.dims.hidden,
        context_length: body.dims.context_length,
        embedding: body.embedding,
        side: body.side,
        layers: body.layers,
        head: body.head,
        roles: tensors.finish()?,
    })
}
