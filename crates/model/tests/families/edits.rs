//! Fixtures, and copies of them with one thing changed.

use std::path::PathBuf;

use turbospark_format::{BlockType, Gguf, GgufWriter, Value};
use turbospark_model::{ModelError, ModelSpec};

/// A fixture of `testdata/oracle`.
pub(crate) fn fixture(file: &str) -> Gguf {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/oracle").join(file);
    Gguf::open(path).unwrap()
}

/// One change to a file.
#[derive(Clone)]
pub(crate) enum Edit {
    /// Sets a key.
    Set(&'static str, Value),
    /// Leaves a key out.
    Unset(&'static str),
    /// Leaves a tensor out.
    Without(&'static str),
    /// Gives a tensor another shape of the same size.
    Reshape(&'static str, &'static [usize]),
    /// Another architecture, whose keys have the same names.
    Family(&'static str),
    /// Adds a tensor of zeros.
    Add(&'static str, &'static [usize]),
}

/// The spec of `file` after `edits`.
pub(crate) fn edited(file: &str, edits: &[Edit]) -> Result<ModelSpec, ModelError> {
    let source = fixture(file);
    let mut writer = GgufWriter::new();
    let own = source.metadata().str("general.architecture").unwrap().unwrap().to_owned();
    let family = edits.iter().find_map(|e| if let Edit::Family(name) = e { Some(*name) } else { None });
    for (key, value) in source.metadata().iter() {
        if let (Some(family), Some(rest)) = (family, key.strip_prefix(&format!("{own}."))) {
            writer.set(format!("{family}.{rest}"), value.clone());
        } else if !edits.iter().any(|e| matches!(e, Edit::Unset(k) if *k == key)) {
            writer.set(key, value.clone());
        }
    }
    for tensor in source.tensors() {
        let mut shape = tensor.shape.as_slice();
        for edit in edits {
            match edit {
                Edit::Reshape(name, other) if *name == tensor.name => shape = other,
                _ => {}
            }
        }
        if !edits.iter().any(|e| matches!(e, Edit::Without(n) if *n == tensor.name)) {
            writer.tensor(tensor.name.clone(), shape, tensor.block_type, source.bytes(tensor));
        }
    }
    for edit in edits {
        match edit {
            Edit::Set(key, value) => {
                writer.set(*key, value.clone());
            }
            Edit::Family(name) => {
                writer.set("general.architecture", Value::String((*name).to_owned()));
            }
            Edit::Add(name, shape) => {
                let bytes = vec![0; 4 * shape.iter().product::<usize>()];
                writer.tensor(*name, shape, BlockType::F32, bytes);
            }
            _ => {}
        }
    }
    let mut bytes = Vec::new();
    writer.write(&mut bytes).unwrap();
    ModelSpec::from_gguf(&Gguf::from_bytes(bytes).unwrap())
}
