//! Getting and keeping models: from the name that somebody types to a file that can be opened.
//!
//! A [`Store`] is a folder of models. [`Store::resolve`] takes paths as they are; the name [`DEMO`] stands for the model that the
//! program carries (feature `demo`), which is unpacked into the store once and read from there like any other.
//!
//! Invariant: a file of the store is whole or not there, whoever else writes it at the same time and whenever the machine stops.
#![forbid(unsafe_code)]

#[cfg(feature = "demo")]
mod demo;
mod error;
#[cfg(feature = "demo")]
mod place;

use std::path::{Path, PathBuf};

pub use error::HubError;

/// The name of the model that comes with the program.
pub const DEMO: &str = "demo";

/// The folder where models are kept.
#[derive(Debug, Clone)]
pub struct Store {
    #[cfg_attr(
        not(feature = "demo"),
        expect(dead_code, reason = "a build without models has nothing to keep")
    )]
    folder: Option<PathBuf>,
}

impl Store {
    /// The store below `home`, the folder for what the program keeps; `None` where the system names no place for it. Nothing is created.
    pub fn new(home: Option<&Path>) -> Store {
        Store { folder: home.map(|home| home.join("models")) }
    }

    /// The names that [`Store::resolve`] knows.
    pub fn names() -> &'static [&'static str] {
        if cfg!(feature = "demo") { &[DEMO] } else { &[] }
    }

    /// The file of the model that `model` names.
    ///
    /// A file that exists comes before a name. Whatever can only be a path (it has a separator or an extension) is returned as it is, so that who opens it
    /// says what is wrong. [`DEMO`] is unpacked unless the store has it, byte for byte.
    ///
    /// # Errors
    ///
    /// [`HubError`] if the name isn't known, or the model can't be put into the store.
    pub fn resolve(&self, model: &Path) -> Result<PathBuf, HubError> {
        if model.is_file() {
            return Ok(model.to_owned());
        }
        #[cfg(feature = "demo")]
        if model == Path::new(DEMO) {
            return demo::unpacked(self.folder.as_deref().ok_or(HubError::NoFolder)?);
        }
        if model.exists() || model.components().count() != 1 || model.extension().is_some() {
            return Ok(model.to_owned());
        }
        Err(HubError::Unknown { name: model.display().to_string(), known: Store::names().join(", ") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_comes_before_a_name_and_paths_stay_what_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(Some(dir.path()));
        let file = dir.path().join(DEMO);
        std::fs::write(&file, "x").unwrap();
        for path in [&file, Path::new("missing.gguf"), Path::new("some/where"), dir.path()] {
            assert_eq!(store.resolve(path).unwrap(), path);
        }
        assert!(!dir.path().join("models").exists());
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let error = Store::new(None).resolve(Path::new("dmeo")).unwrap_err();
        assert!(matches!(&error, HubError::Unknown { name, .. } if name == "dmeo"));
        assert!(Store::names().iter().all(|name| error.to_string().contains(name)), "{error}");
    }
}
