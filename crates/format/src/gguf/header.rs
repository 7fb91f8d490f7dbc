//! Parsing of one file's header: magic, metadata, and the tensors' descriptions.
//!
//! ```text
//! "GGUF"  version:u32  tensors:u64  keys:u64
//! keys    x { key:string  type:u32  value }
//! tensors x { name:string  dims:u32  dim:u64 x dims  type:u32  offset:u64 }
//! padding to general.alignment (32 unless the key is there), then the data that the offsets count from
//!
//! string = length:u64 bytes        array = type:u32 count:u64 elements
//! ```
//!
//! Invariant: a tensor that comes out of here lies inside the file and overlaps no other.

use super::cursor::{Cursor, Located, Parsed};
use super::value::{ARRAY, Array, Metadata, Value};
use super::{DEFAULT_ALIGNMENT, TensorInfo, stored_bytes};
use crate::{BlockType, Fault};

/// Arrays of arrays of arrays have no use in practice; the limit keeps recursion off the stack's end.
pub(super) const MAX_NESTING: usize = 8;
pub(super) const MAX_DIMS: u32 = 4;
const ALIGNMENT_KEY: &str = "general.alignment";
/// A key of one byte and a one-byte value.
const MIN_KEY_BYTES: usize = 8 + 1 + 4 + 1;
/// A name of one byte and one dimension.
const MIN_TENSOR_BYTES: usize = 8 + 1 + 4 + 8 + 4 + 8;

/// What one file says; its tensors carry shard 0.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) metadata: Metadata,
    pub(super) tensors: Vec<TensorInfo>,
}

/// Parses a whole file's bytes; only the header is touched.
pub(super) fn parse(bytes: &[u8]) -> Parsed<Header> {
    let mut cursor = Cursor::new(bytes);
    let magic = cursor.array::<4>()?;
    if &magic != b"GGUF" {
        let fault = Fault::Magic { magic: magic.escape_ascii().to_string(), hint: hint(&magic) };
        return Err(Located { offset: 0, fault });
    }
    let version = cursor.u32()?;
    match version {
        2 | 3 => {}
        _ if matches!(version.swap_bytes(), 1..=0xff) => {
            return cursor.fail(4, |_| Fault::BigEndian { version: version.swap_bytes() });
        }
        _ => return cursor.fail(4, |_| Fault::Version { version }),
    }
    "the tensor count".clone_into(&mut cursor.section);
    let n_tensors = cursor.count(MIN_TENSOR_BYTES)?;
    "the metadata count".clone_into(&mut cursor.section);
    let n_keys = cursor.count(MIN_KEY_BYTES)?;

    let mut metadata = Metadata::default();
    let mut alignment_at = 0;
    for i in 0..n_keys {
        cursor.section = format!("metadata key {} of {n_keys}", i + 1);
        let begin = cursor.position();
        let key = cursor.name()?;
        if key == ALIGNMENT_KEY {
            alignment_at = begin as u64;
        }
        cursor.section = format!("metadata {key:?}");
        let number = cursor.u32()?;
        let value = value(&mut cursor, number)?;
        if metadata.insert(key, value).is_some() {
            let fault = Fault::DuplicateKey { key: key.to_owned() };
            return Err(Located { offset: begin as u64, fault });
        }
    }
    let alignment = alignment(&metadata).map_err(|fault| Located { offset: alignment_at, fault })?;

    let mut tensors = Vec::with_capacity(n_tensors);
    let mut described_at = Vec::with_capacity(n_tensors);
    for i in 0..n_tensors {
        cursor.section = format!("the description of tensor {} of {n_tensors}", i + 1);
        described_at.push(cursor.position() as u64);
        tensors.push(tensor(&mut cursor, alignment)?);
    }
    place(&mut tensors, &described_at, cursor.position() as u64, alignment, bytes.len() as u64)?;
    Ok(Header { metadata, tensors })
}

/// What a file with this beginning probably is.
fn hint(magic: &[u8; 4]) -> &'static str {
    match magic {
        b"FUGG" => "it is a big-endian GGUF, convert it again on this kind of machine",
        b"lmgg" | b"tjgg" | b"fmgg" | b"algg" => "it is of the time before GGUF, convert the model again",
        b"PK\x03\x04" => "it is a ZIP archive or a PyTorch checkpoint, convert it to GGUF first",
        b"vers" => "it is a Git LFS pointer, download the file itself",
        b"<!DO" | b"<!do" | b"<htm" => "it is a web page, the download went wrong",
        [0, 0, 0, 0] => "the download did not finish",
        _ => "name a .gguf file",
    }
}

/// The alignment of the data section.
pub(super) fn alignment(metadata: &Metadata) -> Result<u64, Fault> {
    let Some(value) = metadata.get(ALIGNMENT_KEY) else { return Ok(DEFAULT_ALIGNMENT) };
    match metadata.u32(ALIGNMENT_KEY) {
        Ok(Some(n)) if n.is_power_of_two() => Ok(n.into()),
        Ok(Some(n)) => Err(Fault::Alignment { found: n.to_string() }),
        _ => Err(Fault::Alignment { found: value.type_name() }),
    }
}

fn value(cursor: &mut Cursor<'_>, number: u32) -> Parsed<Value> {
    Ok(match number {
        0 => Value::U8(u8::from_le_bytes(cursor.array()?)),
        1 => Value::I8(i8::from_le_bytes(cursor.array()?)),
        2 => Value::U16(u16::from_le_bytes(cursor.array()?)),
        3 => Value::I16(i16::from_le_bytes(cursor.array()?)),
        4 => Value::U32(u32::from_le_bytes(cursor.array()?)),
        5 => Value::I32(i32::from_le_bytes(cursor.array()?)),
        6 => Value::F32(f32::from_le_bytes(cursor.array()?)),
        7 => Value::Bool(boolean(cursor)?),
        8 => Value::String(cursor.str()?.to_owned()),
        ARRAY => Value::Array(array(cursor, 1)?),
        10 => Value::U64(u64::from_le_bytes(cursor.array()?)),
        11 => Value::I64(i64::from_le_bytes(cursor.array()?)),
        12 => Value::F64(f64::from_le_bytes(cursor.array()?)),
        _ => return cursor.fail(4, |section| Fault::ValueType { section, number }),
    })
}

fn boolean(cursor: &mut Cursor<'_>) -> Parsed<bool> {
    match cursor.array::<1>()? {
        [0] => Ok(false),
        [1] => Ok(true),
        [byte] => cursor.fail(1, |section| Fault::Bool { section, byte }),
    }
}

fn array(cursor: &mut Cursor<'_>, depth: usize) -> Parsed<Array> {
    if depth > MAX_NESTING {
        return cursor.fail(0, |section| Fault::Nesting { section, limit: MAX_NESTING });
    }
    let number = cursor.u32()?;
    Ok(match number {
        0 => Array::U8(numbers(cursor, u8::from_le_bytes)?),
        1 => Array::I8(numbers(cursor, i8::from_le_bytes)?),
        2 => Array::U16(numbers(cursor, u16::from_le_bytes)?),
        3 => Array::I16(numbers(cursor, i16::from_le_bytes)?),
        4 => Array::U32(numbers(cursor, u32::from_le_bytes)?),
        5 => Array::I32(numbers(cursor, i32::from_le_bytes)?),
        6 => Array::F32(numbers(cursor, f32::from_le_bytes)?),
        7 => Array::Bool(elements(cursor, 1, boolean)?),
        8 => Array::String(elements(cursor, 8, |cursor| cursor.str().map(str::to_owned))?),
        ARRAY => Array::Array(elements(cursor, 12, |cursor| array(cursor, depth + 1))?),
        10 => Array::U64(numbers(cursor, u64::from_le_bytes)?),
        11 => Array::I64(numbers(cursor, i64::from_le_bytes)?),
        12 => Array::F64(numbers(cursor, f64::from_le_bytes)?),
        _ => return cursor.fail(4, |section| Fault::ValueType { section, number }),
    })
}

fn numbers<T, const N: usize>(cursor: &mut Cursor<'_>, from: fn([u8; N]) -> T) -> Parsed<Vec<T>> {
    let count = cursor.count(N)?;
    let bytes = cursor.take((count * N) as u64)?;
    Ok(bytes.as_chunks::<N>().0.iter().map(|b| from(*b)).collect())
}

fn elements<T>(
    cursor: &mut Cursor<'_>,
    min_bytes: usize,
    mut element: impl FnMut(&mut Cursor<'_>) -> Parsed<T>,
) -> Parsed<Vec<T>> {
    let count = cursor.count(min_bytes)?;
    let mut elements = Vec::with_capacity(count);
    for _ in 0..count {
        elements.push(element(cursor)?);
    }
    Ok(elements)
}

/// One description; `offset` of the result still counts from the data section.
fn tensor(cursor: &mut Cursor<'_>, alignment: u64) -> Parsed<TensorInfo> {
    let name = cursor.name()?.to_owned();
    cursor.section = format!("the description of tensor {name:?}");
    let dims = cursor.u32()?;
    if !(1..=MAX_DIMS).contains(&dims) {
        return cursor.fail(4, |_| Fault::Dimensions { tensor: name, dims });
    }
    let mut sizes = Vec::with_capacity(dims as usize);
    for dim in 0..dims as usize {
        let size = cursor.u64()?;
        if size == 0 {
            return cursor.fail(8, |_| Fault::ZeroDimension { tensor: name, dim });
        }
        sizes.push(size);
    }
    let number = cursor.u32()?;
    let Some(block_type) = BlockType::from_number(number) else {
        return cursor.fail(4, |_| match not_yet(number) {
            Some(type_name) => Fault::NotYet { tensor: name, name: type_name },
            None => Fault::UnknownBlockType { tensor: name, number },
        });
    };
    let offset = cursor.u64()?;
    if !offset.is_multiple_of(alignment) {
        return cursor.fail(8, |_| Fault::Misaligned { tensor: name, offset, alignment });
    }
    let block_len = block_type.block_len();
    if !sizes[0].is_multiple_of(block_len as u64) {
        let columns = sizes[0];
        return cursor.fail(0, |_| Fault::PartialBlock { tensor: name, columns, block_len, block_type });
    }
    let shape = sizes.iter().map(|n| usize::try_from(*n).ok()).collect::<Option<Vec<_>>>();
    let bytes = shape.as_ref().and_then(|shape| stored_bytes(block_type, shape));
    match (shape, bytes) {
        (Some(shape), Some(bytes)) => {
            Ok(TensorInfo { name, shape, block_type, shard: 0, offset, bytes: bytes as u64 })
        }
        _ => cursor.fail(0, |_| Fault::Overflow { tensor: name, shape: sizes }),
    }
}

/// Turns data offsets into file offsets, and checks that the tensors are distinct and inside the file.
fn place(
    tensors: &mut [TensorInfo],
    described_at: &[u64],
    header_end: u64,
    alignment: u64,
    file: u64,
) -> Parsed<()> {
    let data = header_end.next_multiple_of(alignment);
    for (tensor, described_at) in tensors.iter_mut().zip(described_at) {
        let begin = tensor.offset.checked_add(data);
        let end = begin.and_then(|begin| begin.checked_add(tensor.bytes));
        match (begin, end) {
            (Some(begin), Some(end)) if end <= file => tensor.offset = begin,
            _ => {
                let end = end.unwrap_or(u64::MAX);
                let fault = Fault::Outside { tensor: tensor.name.clone(), end, file };
                return Err(Located { offset: *described_at, fault });
            }
        }
    }
    let mut order: Vec<usize> = (0..tensors.len()).collect();
    order.sort_unstable_by_key(|i| tensors[*i].offset);
    for pair in order.windows(2) {
        let (first, second) = (&tensors[pair[0]], &tensors[pair[1]]);
        if first.offset + first.bytes > second.offset {
            let fault = Fault::Overlap { first: first.name.clone(), second: second.name.clone() };
            return Err(Located { offset: described_at[pair[1]], fault });
        }
    }
    Ok(())
}

/// The name of a type that the specification defines and this crate does not read.
fn not_yet(number: u32) -> Option<&'static str> {
    Some(match number {
        4 => "Q4_2",
        5 => "Q4_3",
        9 => "Q8_1",
        15 => "Q8_K",
        16 => "IQ2_XXS",
        17 => "IQ2_XS",
        18 => "IQ3_XXS",
        19 => "IQ1_S",
        21 => "IQ3_S",
        22 => "IQ2_S",
        24 => "I8",
        25 => "I16",
        26 => "I32",
        27 => "I64",
        28 => "F64",
        29 => "IQ1_M",
        31 => "Q4_0_4_4",
        32 => "Q4_0_4_8",
        33 => "Q4_0_8_8",
        34 => "TQ1_0",
        35 => "TQ2_0",
        36 => "IQ4_NL_4_4",
        37 => "IQ4_NL_4_8",
        38 => "IQ4_NL_8_8",
        40 => "NVFP4",
        _ => return None,
    })
}
