//! Writing GGUF version 3.
//!
//! Invariant: what is written re-reads equal. What the reader would refuse is refused before the first byte, and
//! tensor data is streamed: the writer holds no copy of it.

use super::cursor::MAX_NAME;
use super::header;
use super::header::{MAX_DIMS, MAX_NESTING};
use super::value::{Array, Metadata, Value};
use crate::{BlockType, FormatError};
use std::borrow::Cow;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

type Source<'a> = Box<dyn FnOnce(&mut dyn Write) -> io::Result<()> + 'a>;

struct Pending<'a> {
    name: String,
    shape: Vec<usize>,
    block_type: BlockType,
    data: Source<'a>,
}

/// A GGUF file being put together; `'a` is how long borrowed tensor data lives.
///
/// ```
/// use turbospark_format::{BlockType, Gguf, GgufWriter, quantize};
///
/// let mut writer = GgufWriter::new();
/// writer.set("general.architecture", "llama");
/// writer.tensor("output_norm.weight", &[4], BlockType::F32, quantize(BlockType::F32, &[1.0; 4])?);
/// let mut file = Vec::new();
/// writer.write(&mut file)?;
/// assert_eq!(Gguf::from_bytes(file)?.tensors()[0].shape, [4]);
/// # Ok::<(), turbospark_format::FormatError>(())
/// ```
#[derive(Default)]
pub struct GgufWriter<'a> {
    metadata: Metadata,
    tensors: Vec<Pending<'a>>,
}

impl<'a> GgufWriter<'a> {
    /// An empty file.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a metadata key. `general.alignment`, if set, governs the file.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<Value>) -> &mut Self {
        self.metadata.insert(key, value);
        self
    }

    /// Adds a tensor with its stored bytes; `shape` has the innermost size first.
    pub fn tensor(
        &mut self,
        name: impl Into<String>,
        shape: &[usize],
        block_type: BlockType,
        bytes: impl Into<Cow<'a, [u8]>>,
    ) -> &mut Self {
        let bytes = bytes.into();
        self.tensor_from(name, shape, block_type, move |out| out.write_all(&bytes))
    }

    /// Adds a tensor whose bytes are produced when the file is written, after those of all tensors before it.
    pub fn tensor_from(
        &mut self,
        name: impl Into<String>,
        shape: &[usize],
        block_type: BlockType,
        data: impl FnOnce(&mut dyn Write) -> io::Result<()> + 'a,
    ) -> &mut Self {
        let (name, shape, data) = (name.into(), shape.to_owned(), Box::new(data));
        self.tensors.push(Pending { name, shape, block_type, data });
        self
    }

    /// Writes the file. It is built beside `path` and renamed, so that a reader that has the old file mapped keeps it
    /// and an interrupted write leaves no half file under the name.
    ///
    /// # Errors
    ///
    /// As [`GgufWriter::write`], with the path.
    pub fn write_file(self, path: impl AsRef<Path>) -> Result<(), FormatError> {
        let path = path.as_ref();
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = Path::new(&part);
        let io = |source| FormatError::Io { path: path.to_owned(), action: "write", source };
        let written = File::create(part).map_err(io).and_then(|file| {
            let mut out = BufWriter::new(file);
            self.write(&mut out).map_err(|error| match error {
                FormatError::Io { source, .. } => io(source),
                other => other,
            })?;
            out.flush().map_err(io)?;
            fs::rename(part, path).map_err(io)
        });
        if written.is_err() {
            // The first error is the one to report.
            let _ = fs::remove_file(part);
        }
        written
    }

    /// Writes the file to a stream.
    ///
    /// # Errors
    ///
    /// [`FormatError::Unwritable`] for a name, shape, alignment or nesting that the reader would refuse and for
    /// tensor data of the wrong length; [`FormatError::Io`] for the stream's errors.
    pub fn write(self, out: impl Write) -> Result<(), FormatError> {
        let alignment = self.check()?;
        let mut out = Counted { out, written: 0 };
        let io = |source| FormatError::Io { path: "the output".into(), action: "write", source };
        self.write_header(&mut out, alignment).map_err(io)?;
        for tensor in self.tensors {
            out.pad(alignment).map_err(io)?;
            let (begin, expected) = (out.written, stored_bytes(&tensor)? as u64);
            (tensor.data)(&mut out).map_err(io)?;
            let written = out.written - begin;
            if written != expected {
                return unwritable(
                    &tensor.name,
                    format!("its data has {written} bytes, its shape {expected}"),
                );
            }
        }
        out.pad(alignment).map_err(io)?;
        out.flush().map_err(io)
    }

    /// Refuses what the reader would refuse; returns the alignment.
    fn check(&self) -> Result<u64, FormatError> {
        let alignment =
            header::alignment(&self.metadata).or_else(|fault| unwritable("metadata", fault.to_string()))?;
        for (key, value) in self.metadata.iter() {
            check_name(key)?;
            if let Value::Array(array) = value
                && nesting(array) > MAX_NESTING
            {
                return unwritable(key, format!("arrays nest more than {MAX_NESTING} deep"));
            }
        }
        let mut names = HashSet::new();
        for tensor in &self.tensors {
            check_name(&tensor.name)?;
            if !names.insert(tensor.name.as_str()) {
                return unwritable(&tensor.name, "the name occurs twice".to_owned());
            }
            stored_bytes(tensor)?;
        }
        Ok(alignment)
    }

    fn write_header(&self, out: &mut Counted<impl Write>, alignment: u64) -> io::Result<()> {
        out.write_all(b"GGUF")?;
        out.write_all(&3u32.to_le_bytes())?;
        out.write_all(&(self.tensors.len() as u64).to_le_bytes())?;
        out.write_all(&(self.metadata.len() as u64).to_le_bytes())?;
        for (key, value) in self.metadata.iter() {
            write_str(out, key)?;
            out.write_all(&value.number().to_le_bytes())?;
            write_value(out, value)?;
        }
        let mut offset = 0u64;
        for tensor in &self.tensors {
            write_str(out, &tensor.name)?;
            out.write_all(&(tensor.shape.len() as u32).to_le_bytes())?;
            for size in &tensor.shape {
                out.write_all(&(*size as u64).to_le_bytes())?;
            }
            out.write_all(&(tensor.block_type as u32).to_le_bytes())?;
            out.write_all(&offset.to_le_bytes())?;
            let bytes = stored_bytes(tensor).map_err(io::Error::other)? as u64;
            offset = (offset + bytes).next_multiple_of(alignment);
        }
        Ok(())
    }
}

/// Bytes of a tensor's data.
fn stored_bytes(tensor: &Pending<'_>) -> Result<usize, FormatError> {
    let shape = &tensor.shape;
    if !(1..=MAX_DIMS as usize).contains(&shape.len()) || shape.contains(&0) {
        return unwritable(&tensor.name, format!("shape {shape:?} is not of 1 to {MAX_DIMS} sizes above 0"));
    }
    if !shape[0].is_multiple_of(tensor.block_type.block_len()) {
        return Err(FormatError::PartialBlock { block_type: tensor.block_type, len: shape[0] });
    }
    match super::stored_bytes(tensor.block_type, shape) {
        Some(bytes) => Ok(bytes),
        None => unwritable(&tensor.name, format!("the size of shape {shape:?} overflows")),
    }
}

fn check_name(name: &str) -> Result<(), FormatError> {
    match name.len() {
        1..=MAX_NAME => Ok(()),
        len => unwritable(name, format!("its name has {len} bytes, not 1 to {MAX_NAME}")),
    }
}

fn unwritable<T>(what: &str, problem: String) -> Result<T, FormatError> {
    Err(FormatError::Unwritable { what: what.to_owned(), problem })
}

fn nesting(array: &Array) -> usize {
    match array {
        Array::Array(inner) => 1 + inner.iter().map(nesting).max().unwrap_or(0),
        _ => 1,
    }
}

fn write_str(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(&(text.len() as u64).to_le_bytes())?;
    out.write_all(text.as_bytes())
}

fn write_value(out: &mut impl Write, value: &Value) -> io::Result<()> {
    match value {
        Value::U8(v) => out.write_all(&v.to_le_bytes()),
        Value::I8(v) => out.write_all(&v.to_le_bytes()),
        Value::U16(v) => out.write_all(&v.to_le_bytes()),
        Value::I16(v) => out.write_all(&v.to_le_bytes()),
        Value::U32(v) => out.write_all(&v.to_le_bytes()),
        Value::I32(v) => out.write_all(&v.to_le_bytes()),
        Value::F32(v) => out.write_all(&v.to_le_bytes()),
        Value::Bool(v) => out.write_all(&[u8::from(*v)]),
        Value::String(v) => write_str(out, v),
        Value::Array(v) => write_array(out, v),
        Value::U64(v) => out.write_all(&v.to_le_bytes()),
        Value::I64(v) => out.write_all(&v.to_le_bytes()),
        Value::F64(v) => out.write_all(&v.to_le_bytes()),
    }
}

fn write_array(out: &mut impl Write, array: &Array) -> io::Result<()> {
    out.write_all(&array.element_number().to_le_bytes())?;
    out.write_all(&(array.len() as u64).to_le_bytes())?;
    match array {
        Array::U8(v) => out.write_all(v),
        Array::I8(v) => v.iter().try_for_each(|v| out.write_all(&v.to_le_bytes())),
        Array::U16(v) => v.iter().try_for_each(|v| out.write_all(&v.to_le_bytes())),
        Array::I16(v) => v.iter().try_for_each(|v| out.write_all(&v.to_le_bytes())),
        Array::U32(v) => v.iter().try_for_each(|v| out.write_all(&v.to_le_bytes())),
        Array::I32(v) => v.iter().try_for_each(|v| out.write_all(&v.to_le_bytes())),
        Array::F32(v) => v.iter().try_for_each(|v| out.write_all(&v.to_le_bytes())),
        Array::Bool(v) => v.iter().try_for_each(|v| out.write_all(&[u8::from(*v)])),
        Array::String(v) => v.iter().try_for_each(|v| write_str(out, v)),
        Array::Array(v) => v.iter().try_for_each(|v| write_array(out, v)),
        Array::U64(v) => v.iter().try_for_each(|v| out.write_all(&v.to_le_bytes())),
        Array::I64(v) => v.iter().try_for_each(|v| out.write_all(&v.to_le_bytes())),
        Array::F64(v) => v.iter().try_for_each(|v| out.write_all(&v.to_le_bytes())),
    }
}

/// A stream that knows its position, for padding.
struct Counted<W> {
    out: W,
    written: u64,
}

impl<W: Write> Counted<W> {
    fn pad(&mut self, alignment: u64) -> io::Result<()> {
        let padding = self.written.next_multiple_of(alignment) - self.written;
        io::copy(&mut io::Read::take(io::repeat(0), padding), self).map(drop)
    }
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.out.write(bytes)?;
        self.written += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
