//! Why a trace can't be read or written.

use std::io;
use std::path::PathBuf;

/// A trace that can't be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The system refused.
    #[error("cannot {doing} the trace {}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },

    /// Another kind of file.
    #[error("{} is no routing trace: make one with `trace record`", path.display())]
    NotATrace {
        /// The file.
        path: PathBuf,
    },

    /// A trace of a later program.
    #[error("{} is a trace of version {version}, this program reads version {}: record it again", path.display(), super::wire::VERSION)]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },

    /// Bytes that no recorder writes.
    #[error("the trace {} is damaged at byte {offset}: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the header or the record in question begins.
        offset: u64,
        /// What is wrong.
        what: String,
    },

    /// Routes that don't fit the header they are recorded under.
    #[error("the routes don't fit the trace's header: {what}")]
    Misfit {
        /// What is wrong.
        what: String,
    },
}
