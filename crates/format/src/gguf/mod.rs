//! GGUF: opening a model file or a split set, and the tensors in it.
//!
//! Invariant: whatever [`Gguf::tensors`] lists can be read through [`Gguf::bytes`] without another check.

mod cursor;
mod header;
mod split;
mod value;
mod writer;

pub use value::{Array, Metadata, Value};
pub use writer::GgufWriter;

use crate::map::Bytes;
use crate::{BlockType, Fault, FormatError};
use cursor::Located;
use header::Header;
use split::ShardName;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Alignment of tensor data where the file does not say.
const DEFAULT_ALIGNMENT: u64 = 32;

/// One tensor of a model file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// Its name, as in `blk.0.attn_q.weight`.
    pub name: String,
    /// Sizes in GGUF order, innermost (columns, the k of a matrix product) first; 1 to 4 of them, none zero.
    pub shape: Vec<usize>,
    /// How its elements are stored.
    pub block_type: BlockType,
    /// Which file of the set holds it, an index into [`Gguf::paths`].
    pub shard: usize,
    /// Where its data begins, in bytes from the start of that file.
    pub offset: u64,
    /// Bytes of its data.
    pub bytes: u64,
}

impl TensorInfo {
    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }
}

/// An opened model: one file or a split set, memory-mapped.
#[derive(Debug)]
pub struct Gguf {
    metadata: Metadata,
    tensors: Vec<TensorInfo>,
    index: HashMap<String, usize>,
    paths: Vec<PathBuf>,
    shards: Vec<Bytes>,
}

impl Gguf {
    /// Opens a model by its file, or by any file of a split set.
    ///
    /// The files are mapped: they must not be truncated or rewritten while this value lives.
    ///
    /// # Errors
    ///
    /// When a file cannot be opened, breaks the format, stores a tensor in a format that is not read, or when the set
    /// is incomplete or contradicts itself.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FormatError> {
        let path = path.as_ref();
        let paths = match ShardName::parse(path) {
            // The file named is looked at first, so that a wrong path is reported as such.
            Some(name) if path.exists() => name.paths()?,
            _ => vec![path.to_owned()],
        };
        let shards = paths.iter().map(|path| Bytes::map(path)).collect::<Result<Vec<_>, _>>()?;
        Self::from_shards(paths, shards)
    }

    /// Reads a model of one file out of memory, as [`Gguf::open`] would; [`Gguf::paths`] is empty.
    ///
    /// # Errors
    ///
    /// As [`Gguf::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, FormatError> {
        let mut gguf = Self::from_shards(vec![PathBuf::from("memory")], vec![Bytes::Held(bytes)])?;
        gguf.paths.clear();
        Ok(gguf)
    }

    fn from_shards(paths: Vec<PathBuf>, shards: Vec<Bytes>) -> Result<Self, FormatError> {
        let count = paths.len() as u32;
        let mut metadata = None;
        let mut tensors: Vec<TensorInfo> = Vec::new();
        let mut index = HashMap::new();
        let mut expected = None;
        for (shard, (path, bytes)) in paths.iter().zip(&shards).enumerate() {
            let Header { metadata: own, tensors: described } =
                header::parse(bytes).map_err(|Located { offset, fault }| malformed(path, offset, fault))?;
            if let Some(said) = split::check_place(path, &own, shard as u32, count)? {
                if expected.is_some_and(|e| e != said) {
                    let problem = format!("its split.tensors.count is {said}, the first file's is another");
                    return Err(FormatError::Split { path: path.clone(), problem });
                }
                expected = Some(said);
            }
            metadata.get_or_insert(own);
            for tensor in described {
                if index.insert(tensor.name.clone(), tensors.len()).is_some() {
                    let fault = Fault::DuplicateTensor { tensor: tensor.name };
                    return Err(malformed(path, tensor.offset, fault));
                }
                tensors.push(TensorInfo { shard, ..tensor });
            }
        }
        if let Some(expected) = expected.filter(|e| *e != tensors.len() as u64) {
            let problem = format!("split.tensors.count is {expected}, the set has {}", tensors.len());
            return Err(FormatError::Split { path: paths[0].clone(), problem });
        }
        Ok(Self { metadata: metadata.unwrap_or_default(), tensors, index, paths, shards })
    }

    /// The metadata, of a split set the first file's.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// All tensors in file order.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// The tensor of this name.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.index.get(name).map(|i| &self.tensors[*i])
    }

    /// The stored bytes of one of this model's tensors, exactly `t.bytes` of them.
    ///
    /// In a mapped file they begin at a multiple of the file's alignment in memory too; in one read from memory they
    /// may begin anywhere.
    ///
    /// # Panics
    ///
    /// May panic when `t` is of another model.
    pub fn bytes(&self, t: &TensorInfo) -> &[u8] {
        &self.shards[t.shard][t.offset as usize..][..t.bytes as usize]
    }

    /// Asks the system to read a tensor's bytes soon, without waiting.
    pub fn prefetch(&self, t: &TensorInfo) {
        self.shards[t.shard].prefetch(t.offset as usize, t.bytes as usize);
    }

    /// The files, in the set's order.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }
}

/// Bytes of a tensor whose shape has at least one size, or `None` where they overflow.
///
/// The element count has to fit too: formats below a byte an element would let a consumer's product of the shape wrap.
fn stored_bytes(block_type: BlockType, shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1usize, |n, size| n.checked_mul(*size))?;
    let row = block_type.row_bytes(shape[0])?;
    shape[1..].iter().try_fold(row, |n, size| n.checked_mul(*size))
}

fn malformed(path: &Path, offset: u64, fault: Fault) -> FormatError {
    FormatError::Malformed { path: path.to_owned(), offset, fault }
}
