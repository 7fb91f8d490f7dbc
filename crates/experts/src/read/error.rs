//! Why bytes of a file can't be had, in words that name file, offset and length.

use std::io;
use std::path::PathBuf;

/// A read that failed, or a way of reading that can't be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// A file that can't be opened.
    #[error("can't open `{path}`: {source}")]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// Direct reads were asked for and the file has none.
    #[error("`{path}` can't be read directly ({reason}): read it buffered")]
    NotDirect {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },

    /// What was asked for by name and this system does not give.
    #[error("{what} can't be had: {reason}")]
    Unavailable {
        /// `io_uring`, for example.
        what: &'static str,
        /// Why.
        reason: String,
    },

    /// The system could not read.
    #[error("can't read {len} bytes at offset {offset} of `{path}`: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Offset of the read.
        offset: u64,
        /// Its bytes.
        len: usize,
        /// What the system said.
        source: io::Error,
    },

    /// Bytes that the file has not.
    #[error("`{path}` has {size} bytes, so {len} bytes at offset {offset} can't be read")]
    BeyondEnd {
        /// The file.
        path: PathBuf,
        /// Offset of the read.
        offset: u64,
        /// Its bytes.
        len: usize,
        /// Bytes of the file.
        size: u64,
    },

    /// A file that is not the one that was opened any more.
    #[error(
        "`{path}` {change} while it was in use (reading {len} bytes at offset {offset}): open the model again"
    )]
    Changed {
        /// The file.
        path: PathBuf,
        /// What happened to it.
        change: String,
        /// Offset of the read that noticed.
        offset: u64,
        /// Its bytes.
        len: usize,
    },

    /// A disk that does not answer.
    #[error(
        "no read has ended for {seconds} s; waiting for {len} bytes at offset {offset} of `{path}`: is the disk well?"
    )]
    Stalled {
        /// The file of the oldest read.
        path: PathBuf,
        /// Its offset.
        offset: u64,
        /// Its bytes.
        len: usize,
        /// How long nothing came.
        seconds: u64,
    },
}
