//! Shared by the tests: where data lies.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

pub(crate) fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}

pub(crate) fn json(path: &Path) -> Json {
    let text = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_slice(&text).unwrap()
}
