//! What can go wrong between a name and a file.
//!
//! Invariant: every error names the model or the path, and says what to do.

use std::io;
use std::path::PathBuf;

/// Why a model can't be had.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// Neither a file nor a name.
    #[error(
        "`{name}` is neither a file nor a model that comes with the program ({}): give the path of a GGUF file",
        if known.is_empty() { "this build has none" } else { known }
    )]
    Unknown {
        /// What was asked for.
        name: String,
        /// The names there are, separated by commas.
        known: String,
    },
    /// There is no folder to keep models in.
    #[error("the system names no folder to keep models in: set TURBOSPARK_HOME to one")]
    NoFolder,
    /// The store can't be written.
    #[error("cannot put the model into {}: {source}{}", path.display(), advice(source))]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What was written is not what should have been.
    #[error("{} has other bytes than were written to it: check the disk and its free space", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
}

fn advice(error: &io::Error) -> &'static str {
    use io::ErrorKind::{NotADirectory, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    match error.kind() {
        PermissionDenied | ReadOnlyFilesystem | NotADirectory => {
            "; set TURBOSPARK_HOME to a folder that can be written"
        }
        StorageFull | QuotaExceeded => {
            "; free some space, or set TURBOSPARK_HOME to a folder on another disk"
        }
        _ => "",
    }
}
