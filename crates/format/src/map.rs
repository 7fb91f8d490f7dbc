//! Files as bytes: the mapping, and the checks before it.
//!
//! Invariant: the only `unsafe` of the crate. A mapping lives as long as the value that lends its bytes.

use crate::FormatError;
use memmap2::Mmap;
use std::fs::{self, File};
use std::ops::Deref;
use std::path::Path;

/// The bytes of a file, mapped read-only or held in memory.
#[derive(Debug)]
pub(crate) enum Bytes {
    Mapped(Mmap),
    Held(Vec<u8>),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Held(bytes) => bytes,
        }
    }
}

impl Bytes {
    /// Maps a regular file. Anything else is refused before it is opened: opening a pipe would wait for its writer.
    #[allow(unsafe_code)]
    pub(crate) fn map(path: &Path) -> Result<Self, FormatError> {
        let io = |action| move |source| FormatError::Io { path: path.to_owned(), action, source };
        let kind = fs::metadata(path).map_err(io("open"))?;
        if !kind.is_file() {
            let kind = if kind.is_dir() { "a directory" } else { "a device or a pipe" };
            return Err(FormatError::NotAFile { path: path.to_owned(), kind });
        }
        let file = File::open(path).map_err(io("open"))?;
        if file.metadata().map_err(io("measure"))?.len() == 0 {
            return Ok(Self::Held(Vec::new()));
        }
        // SAFETY: the mapping is private to this value and read-only. As with every mapped file, soundness rests on
        // nobody truncating or rewriting the file while it is open; models are write-once, and the documentation of
        // `Gguf::open` states the condition.
        let map = unsafe { Mmap::map(&file) }.map_err(io("map"))?;
        Ok(Self::Mapped(map))
    }

    /// Asks the system to read a range soon; only a hint.
    pub(crate) fn prefetch(&self, offset: usize, len: usize) {
        #[cfg(unix)]
        if let Self::Mapped(map) = self {
            // A refused hint costs nothing but the hint.
            let _ = map.advise_range(memmap2::Advice::WillNeed, offset, len);
        }
        #[cfg(not(unix))]
        let _ = (offset, len);
    }
}
