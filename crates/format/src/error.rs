//! Why a file or an array could not be read or written: what, where, and what to do about it.
//!
//! Invariant: nothing that a file contains makes this crate panic; it ends in one of these types.

use crate::BlockType;
use std::io;
use std::path::PathBuf;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried, as in "open".
        action: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The path names something that has no content to read.
    #[error("{} is {kind}, not a file: name the model file itself", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What stands there, as in "a directory".
        kind: &'static str,
    },
    /// The content breaks the format.
    #[error("{}, byte {offset}: {fault}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where in the file the faulty field begins.
        offset: u64,
        /// What is wrong there.
        fault: Fault,
    },
    /// One file of a split set is not there.
    #[error(
        "{} is missing: the set has {count} files{}; download the missing ones into the same folder",
        path.display(),
        if *missing > 1 { format!(" and {missing} of them are missing") } else { String::new() }
    )]
    MissingShard {
        /// The first file that is missing.
        path: PathBuf,
        /// Files of the set.
        count: u32,
        /// How many of them are missing.
        missing: u32,
    },
    /// A file's place in a split set contradicts its name or the other files.
    #[error("{}: {problem}; the files must be one download of one set, with their original names", path.display())]
    Split {
        /// The file.
        path: PathBuf,
        /// The contradiction.
        problem: String,
    },
    /// A metadata value is of another type than the reader needs.
    #[error(
        "metadata {key:?} is {found}, expected {expected}: the file was written wrongly, convert it again"
    )]
    WrongType {
        /// The key.
        key: String,
        /// The type or range needed.
        expected: &'static str,
        /// The type or value found.
        found: String,
    },
    /// No such tensor.
    #[error("there is no tensor {name:?} in {}", path.display())]
    NoTensor {
        /// The name asked for.
        name: String,
        /// The file.
        path: PathBuf,
    },
    /// A length does not divide into blocks.
    #[error("{len} elements are no whole number of {block_type} blocks of {}", block_type.block_len())]
    PartialBlock {
        /// The format.
        block_type: BlockType,
        /// Elements given.
        len: usize,
    },
    /// Quantising to this format is not implemented.
    #[error("cannot quantise to {0}: F32, F16, BF16, Q8_0, Q4_0, Q4_K, Q6_K and MXFP4 can be written")]
    NoQuantizer(BlockType),
    /// A value has no representation in the format.
    #[error(
        "value {value} at {index} cannot be stored as {block_type}: it is not finite or its scale overflows f16"
    )]
    Unrepresentable {
        /// The format.
        block_type: BlockType,
        /// Index of the value.
        index: usize,
        /// The value.
        value: f32,
    },
    /// What was handed to a writer does not make a valid file.
    #[error("cannot write {what:?}: {problem}")]
    Unwritable {
        /// The key or tensor.
        what: String,
        /// Why not.
        problem: String,
    },
}

/// What is wrong with a file's content. Names out of the file are printed quoted and escaped: a stranger chose them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // Each field is named in the message above it.
pub enum Fault {
    #[error("the file begins with {magic:?}, not with \"GGUF\": {hint}")]
    Magic { magic: String, hint: &'static str },
    #[error(
        "the file is big-endian (version {version}); only little-endian GGUF is read, convert it again on this kind of machine"
    )]
    BigEndian { version: u32 },
    #[error(
        "GGUF version {version} is not supported, only 2 and 3 are: convert the model again with current tools"
    )]
    Version { version: u32 },
    #[error(
        "the file ends inside {section}: {needed} bytes needed, {left} left; it is cut short, download it again"
    )]
    Truncated { section: String, needed: u64, left: u64 },
    #[error(
        "{section} claims {count} entries, more than the remaining {left} bytes can hold; the file is corrupt"
    )]
    Count { section: String, count: u64, left: u64 },
    #[error(
        "{section} holds a string that is not UTF-8; the file is corrupt or its converter broke the format"
    )]
    NotUtf8 { section: String },
    #[error("{section} has value type {number}, which GGUF does not define; the file is corrupt")]
    ValueType { section: String, number: u32 },
    #[error("{section} nests arrays more than {limit} deep; the file is corrupt")]
    Nesting { section: String, limit: usize },
    #[error("{section} holds the boolean {byte}, neither 0 nor 1; the file is corrupt")]
    Bool { section: String, byte: u8 },
    #[error("{section} has an empty name; the file is corrupt")]
    EmptyName { section: String },
    #[error("{section} has a name of {len} bytes, more than {limit}; the file is corrupt")]
    LongName { section: String, len: usize, limit: usize },
    #[error("metadata key {key:?} occurs twice; the file was written wrongly")]
    DuplicateKey { key: String },
    #[error("tensor {tensor:?} occurs twice; the file was written wrongly")]
    DuplicateTensor { tensor: String },
    #[error(
        "general.alignment is {found}, not a power of two in an unsigned integer; the file was written wrongly"
    )]
    Alignment { found: String },
    #[error("tensor {tensor:?} has {dims} dimensions, not 1 to 4; the file is corrupt")]
    Dimensions { tensor: String, dims: u32 },
    #[error("dimension {dim} of tensor {tensor:?} is 0; the file is corrupt")]
    ZeroDimension { tensor: String, dim: usize },
    #[error("the size of tensor {tensor:?}, shape {shape:?}, overflows; the file is corrupt")]
    Overflow { tensor: String, shape: Vec<u64> },
    #[error(
        "tensor {tensor:?} is stored as {name}, which is not yet supported: use a file in another quantisation, such as Q4_K_M"
    )]
    NotYet { tensor: String, name: &'static str },
    #[error(
        "tensor {tensor:?} has the unknown block type {number}: the file is corrupt or newer than this program"
    )]
    UnknownBlockType { tensor: String, number: u32 },
    #[error(
        "rows of tensor {tensor:?} have {columns} elements, no multiple of the {block_len} of a {block_type} block"
    )]
    PartialBlock { tensor: String, columns: u64, block_len: usize, block_type: BlockType },
    #[error(
        "data of tensor {tensor:?} begins at {offset} of the data section, no multiple of the alignment {alignment}"
    )]
    Misaligned { tensor: String, offset: u64, alignment: u64 },
    #[error(
        "data of tensor {tensor:?} ends at byte {end}, the file at {file}: it is cut short, download it again"
    )]
    Outside { tensor: String, end: u64, file: u64 },
    #[error("data of tensors {first:?} and {second:?} overlap; the file is corrupt")]
    Overlap { first: String, second: String },
    #[error("the safetensors header is not valid: {problem}")]
    SafetensorsHeader { problem: String },
    #[error("tensor {tensor:?} has dtype {dtype}, which does not convert to f32; F32, F16 and BF16 do")]
    Dtype { tensor: String, dtype: &'static str },
}
