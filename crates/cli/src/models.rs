//! What a user calls a model, and the file that it is.

use std::path::{Path, PathBuf};

use anyhow::Result;
use turbospark_hub::Store;

use crate::environment;

/// The file of the model that `name` is: a path, or a name of the store.
pub(crate) fn find(name: &Path) -> Result<PathBuf> {
    Ok(Store::new(environment::home().as_deref()).resolve(name)?)
}
