//! The environment, read here and nowhere else.
//!
//! `TURBOSPARK_HOME` is the folder for what the program keeps. Without it that is the platform's folder for
//! applications' data.

use std::env;
use std::path::PathBuf;

/// The folder for what the program keeps between runs; `None` where the system names no place for it.
pub(crate) fn home() -> Option<PathBuf> {
    let folder = |name| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    folder("TURBOSPARK_HOME").or_else(|| {
        let data = if cfg!(windows) {
            folder("LOCALAPPDATA")
        } else if cfg!(target_os = "macos") {
            folder("HOME").map(|home| home.join("Library/Application Support"))
        } else {
            folder("XDG_DATA_HOME").or_else(|| folder("HOME").map(|home| home.join(".local/share")))
        };
        data.map(|data| data.join("turbospark"))
    })
}
