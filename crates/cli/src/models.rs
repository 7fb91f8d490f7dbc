//! What a user calls a model, and the file that it is.

use std::path::{Path, PathBuf};

use anyhow::Result;
use turbospark_hub::{DEMO, Store};

use crate::failure::Usage;
use crate::{environment, output};

/// The file of the model that `name` is: a path, or a name of the store.
pub(crate) fn find(name: &Path) -> Result<PathBuf> {
    Ok(Store::new(environment::home().as_deref()).resolve(name)?)
}

/// The name of the model that is taken where none is named, which is said on standard error.
pub(crate) fn unnamed() -> Result<&'static str> {
    if !Store::names().contains(&DEMO) {
        let why = "this build has no model of its own: name a GGUF file";
        return Err(Usage(why.to_owned()).into());
    }
    output::note("no model named: this is `demo`, a small one that tells little stories");
    Ok(DEMO)
}
