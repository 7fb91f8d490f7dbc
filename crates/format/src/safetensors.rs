//! Safetensors: named arrays behind a JSON header.
//!
//! ```text
//! header bytes:u64  header:JSON { name: { dtype, shape, data_offsets: [begin, end] } }  data
//! ```
//!
//! Invariant: a tensor that is listed lies inside the file, overlaps no other, and has the bytes that its shape and
//! dtype need.

use crate::blocks::dequantize;
use crate::map::Bytes;
use crate::{BlockType, Fault, FormatError};
use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

macro_rules! dtypes {
    ($($variant:ident($name:literal, $bytes:literal),)*) => {
        /// An element type of safetensors.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(non_camel_case_types, missing_docs)]
        pub enum Dtype {
            $($variant,)*
        }

        impl Dtype {
            /// The format's name, as in `BF16`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Bytes of an element.
            pub fn bytes(self) -> usize {
                match self {
                    $(Self::$variant => $bytes,)*
                }
            }

            fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

dtypes! {
    Bool("BOOL", 1),
    U8("U8", 1),
    I8("I8", 1),
    F8_E4M3("F8_E4M3", 1),
    F8_E5M2("F8_E5M2", 1),
    F8_E8M0("F8_E8M0", 1),
    U16("U16", 2),
    I16("I16", 2),
    F16("F16", 2),
    BF16("BF16", 2),
    U32("U32", 4),
    I32("I32", 4),
    F32("F32", 4),
    U64("U64", 8),
    I64("I64", 8),
    F64("F64", 8),
}

/// One tensor of a safetensors file.
#[derive(Clone, Copy, Debug)]
pub struct SafeTensor<'a> {
    /// How its elements are stored.
    pub dtype: Dtype,
    /// Sizes, outermost first (unlike GGUF); none for a scalar.
    pub shape: &'a [usize],
    /// Its data, little-endian.
    pub bytes: &'a [u8],
}

#[derive(Debug)]
struct Entry {
    name: String,
    dtype: Dtype,
    shape: Vec<usize>,
    begin: usize,
    end: usize,
}

/// An opened safetensors file, memory-mapped.
#[derive(Debug)]
pub struct SafeTensors {
    path: PathBuf,
    bytes: Bytes,
    entries: Vec<Entry>,
    index: HashMap<String, usize>,
}

impl SafeTensors {
    /// Opens a file. It must not be truncated or rewritten while this value lives.
    ///
    /// # Errors
    ///
    /// When it cannot be opened or breaks the format.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FormatError> {
        let path = path.as_ref();
        Self::parse(path.to_owned(), Bytes::map(path)?)
    }

    /// Reads a file's content out of memory.
    ///
    /// # Errors
    ///
    /// When it breaks the format.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, FormatError> {
        Self::parse(PathBuf::from("memory"), Bytes::Held(bytes))
    }

    fn parse(path: PathBuf, bytes: Bytes) -> Result<Self, FormatError> {
        match entries(&bytes) {
            Ok(entries) => {
                let index = entries.iter().enumerate().map(|(i, entry)| (entry.name.clone(), i)).collect();
                Ok(Self { path, bytes, entries, index })
            }
            Err((offset, fault)) => Err(FormatError::Malformed { path, offset, fault }),
        }
    }

    /// The tensors' names in header order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.entries.iter().map(|entry| entry.name.as_str())
    }

    /// The tensor of this name.
    pub fn tensor(&self, name: &str) -> Option<SafeTensor<'_>> {
        let entry = &self.entries[*self.index.get(name)?];
        Some(SafeTensor {
            dtype: entry.dtype,
            shape: &entry.shape,
            bytes: &self.bytes[entry.begin..entry.end],
        })
    }

    /// The values of an F32, F16 or BF16 tensor, widened.
    ///
    /// # Errors
    ///
    /// [`FormatError::NoTensor`], or [`Fault::Dtype`] for another dtype.
    pub fn f32(&self, name: &str) -> Result<Vec<f32>, FormatError> {
        let Some(tensor) = self.tensor(name) else {
            return Err(FormatError::NoTensor { name: name.to_owned(), path: self.path.clone() });
        };
        let block_type = match tensor.dtype {
            Dtype::F32 => BlockType::F32,
            Dtype::F16 => BlockType::F16,
            Dtype::BF16 => BlockType::BF16,
            other => {
                let fault = Fault::Dtype { tensor: name.to_owned(), dtype: other.name() };
                return Err(FormatError::Malformed { path: self.path.clone(), offset: 8, fault });
            }
        };
        let mut values = vec![0.0; tensor.bytes.len() / tensor.dtype.bytes()];
        dequantize(block_type, tensor.bytes, &mut values);
        Ok(values)
    }
}

#[derive(Deserialize)]
struct Described {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
}

/// The header's pairs in order, so that a name which occurs twice is seen.
struct Pairs(Vec<(String, Option<Described>)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor;
        impl<'de> Visitor<'de> for PairsVisitor {
            type Value = Pairs;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    let described = if name == "__metadata__" {
                        map.next_value::<serde::de::IgnoredAny>()?;
                        None
                    } else {
                        Some(map.next_value()?)
                    };
                    pairs.push((name, described));
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(PairsVisitor)
    }
}

fn entries(bytes: &[u8]) -> Result<Vec<Entry>, (u64, Fault)> {
    let truncated = |section: &str, needed, left: usize| Fault::Truncated {
        section: section.to_owned(),
        needed,
        left: left as u64,
    };
    let header_error = |problem| (8, Fault::SafetensorsHeader { problem });
    let Some((len, rest)) = bytes.split_first_chunk::<8>() else {
        return Err((0, truncated("the header length", 8, bytes.len())));
    };
    let len = u64::from_le_bytes(*len);
    let Some((header, data)) = usize::try_from(len).ok().and_then(|len| rest.split_at_checked(len)) else {
        return Err((8, truncated("the header", len, rest.len())));
    };
    let Pairs(pairs) = serde_json::from_slice(header).map_err(|error| header_error(error.to_string()))?;

    let data_begin = bytes.len() - data.len();
    let mut entries: Vec<Entry> = Vec::with_capacity(pairs.len());
    for (name, described) in pairs {
        let Some(described) = described else { continue };
        let Some(dtype) = Dtype::from_name(&described.dtype) else {
            let problem = format!("tensor {name:?} has the unknown dtype {:?}", described.dtype);
            return Err(header_error(problem));
        };
        let shape = described.shape.iter().map(|n| usize::try_from(*n).ok()).collect::<Option<Vec<_>>>();
        let size = shape
            .as_ref()
            .and_then(|shape| shape.iter().try_fold(dtype.bytes(), |n, size| n.checked_mul(*size)));
        let (Some(shape), Some(size)) = (shape, size) else {
            return Err((8, Fault::Overflow { tensor: name, shape: described.shape }));
        };
        let [begin, end] = described.data_offsets;
        if end > data.len() as u64 {
            let (end, file) = (end.saturating_add(data_begin as u64), bytes.len() as u64);
            return Err((8, Fault::Outside { tensor: name, end, file }));
        }
        if end.checked_sub(begin) != Some(size as u64) {
            let problem = format!(
                "tensor {name:?} has offsets {begin} to {end}, its shape and dtype need {size} bytes"
            );
            return Err(header_error(problem));
        }
        let (begin, end) = (data_begin + begin as usize, data_begin + end as usize);
        entries.push(Entry { name, dtype, shape, begin, end });
    }
    check_distinct(&entries).map_err(|fault| (8, fault))?;
    Ok(entries)
}

fn check_distinct(entries: &[Entry]) -> Result<(), Fault> {
    let mut order: Vec<&Entry> = entries.iter().collect();
    order.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    if let Some(pair) = order.windows(2).find(|pair| pair[0].name == pair[1].name) {
        return Err(Fault::DuplicateTensor { tensor: pair[0].name.clone() });
    }
    order.retain(|entry| entry.begin < entry.end);
    order.sort_unstable_by_key(|entry| entry.begin);
    match order.windows(2).find(|pair| pair[0].end > pair[1].begin) {
        Some(pair) => Err(Fault::Overlap { first: pair[0].name.clone(), second: pair[1].name.clone() }),
        None => Ok(()),
    }
}

/// Writes f32 tensors (name, shape with the outermost size first, values) as a safetensors file.
///
/// # Errors
///
/// [`FormatError::Unwritable`] when values do not fill a shape or a name occurs twice; [`FormatError::Io`].
pub fn write_safetensors(
    path: impl AsRef<Path>,
    tensors: &[(&str, &[usize], &[f32])],
) -> Result<(), FormatError> {
    let path = path.as_ref();
    let mut header = serde_json::Map::new();
    let mut begin = 0;
    for (name, shape, values) in tensors {
        let unwritable = |problem| FormatError::Unwritable { what: (*name).to_owned(), problem };
        if shape.iter().try_fold(1usize, |n, size| n.checked_mul(*size)) != Some(values.len()) {
            return Err(unwritable(format!("{} values do not fill shape {shape:?}", values.len())));
        }
        let end = begin + size_of_val(*values);
        let described = serde_json::json!({ "dtype": "F32", "shape": shape, "data_offsets": [begin, end] });
        if *name == "__metadata__" || header.insert((*name).to_owned(), described).is_some() {
            return Err(unwritable("the name is reserved or occurs twice".to_owned()));
        }
        begin = end;
    }
    let mut header = serde_json::Value::Object(header).to_string();
    // Data that begins at a multiple of 8 can be used where it is mapped.
    header.extend(std::iter::repeat_n(' ', header.len().next_multiple_of(8) - header.len()));
    let write = || {
        let mut out = BufWriter::new(File::create(path)?);
        out.write_all(&(header.len() as u64).to_le_bytes())?;
        out.write_all(header.as_bytes())?;
        for (_, _, values) in tensors {
            for value in *values {
                out.write_all(&value.to_le_bytes())?;
            }
        }
        out.flush()
    };
    write().map_err(|source| FormatError::Io { path: path.to_owned(), action: "write", source })
}
