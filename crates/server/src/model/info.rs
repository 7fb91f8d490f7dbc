//! What is told of a model, loaded or not: read from the file's header alone.

use std::path::{Path, PathBuf};

use turbospark_format::{FormatError, Gguf};

/// A model's description.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelInfo {
    /// The name by which clients ask for it.
    pub name: String,
    /// Its file, the first of a split set.
    pub path: PathBuf,
    /// Bytes of its weights.
    pub size_bytes: u64,
    /// `general.architecture`.
    pub architecture: String,
    /// Numbers in all its tensors.
    pub parameter_count: u64,
    /// The block format that holds most bytes: `Q4_K`.
    pub quantization: String,
    /// Positions it was trained for, or is loaded with.
    pub context: usize,
    /// Length of its hidden vectors.
    pub hidden: usize,
    /// Whether it is in memory.
    pub loaded: bool,
    /// Whether conversations can be had with it.
    pub template: bool,
    /// The template's source.
    pub template_source: Option<String>,
    /// Whether its file says that it makes embeddings.
    pub embeds: bool,
    /// When the file was written, seconds since 1970.
    pub modified: u64,
    /// A number that follows from name, size and time: stands for a digest that would take minutes.
    pub fingerprint: u64,
}

impl ModelInfo {
    /// Reads a file's header.
    pub(crate) fn read(name: &str, path: &Path) -> Result<ModelInfo, FormatError> {
        let gguf = Gguf::open(path)?;
        let metadata = gguf.metadata();
        let text = |key: &str| metadata.str(key).ok().flatten().map(str::to_owned);
        let architecture = text("general.architecture").unwrap_or_default();
        let count = |key: &str| metadata.usize(&format!("{architecture}.{key}")).ok().flatten();
        let mut by_format: Vec<(&'static str, u64)> = Vec::new();
        let (mut size_bytes, mut parameter_count) = (0, 0);
        for tensor in gguf.tensors() {
            let bytes = gguf.bytes(tensor).len() as u64;
            size_bytes += bytes;
            parameter_count += tensor.elements() as u64;
            let format = tensor.block_type.name();
            match by_format.iter_mut().find(|(name, _)| *name == format) {
                Some((_, sum)) => *sum += bytes,
                None => by_format.push((format, bytes)),
            }
        }
        let quantization = by_format.iter().max_by_key(|(_, bytes)| *bytes).map_or("", |(name, _)| name);
        let modified = std::fs::metadata(path).and_then(|m| m.modified()).ok();
        let modified = modified.and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
        let template_source =
            text("tokenizer.chat_template").or_else(|| text("tokenizer.chat_template.default"));
        let modified = modified.map_or(0, |t| t.as_secs());
        let mut fingerprint = std::hash::DefaultHasher::new();
        std::hash::Hash::hash(&(name, size_bytes, modified), &mut fingerprint);
        Ok(ModelInfo {
            name: name.to_owned(),
            path: path.to_owned(),
            size_bytes,
            parameter_count,
            quantization: quantization.to_owned(),
            context: count("context_length").unwrap_or(0),
            hidden: count("embedding_length").unwrap_or(0),
            loaded: false,
            template: template_source.is_some(),
            template_source,
            embeds: matches!(count("pooling_type"), Some(1 | 3)),
            modified,
            fingerprint: std::hash::Hasher::finish(&fingerprint),
            architecture,
        })
    }
}
