//! Refusals by name of what a file may ask for and a family can't do.

use super::Dims;
use crate::ModelError;
use crate::keys::Keys;
use crate::tensors::Tensors;

/// Refuses a file with routed experts.
pub(in crate::families) fn refuse_experts(keys: &Keys<'_>, what: &str) -> Result<(), ModelError> {
    ["expert_count", "expert_used_count"].into_iter().try_for_each(|key| refuse_key(keys, key, what))
}

/// Refuses a file in which `key` is above zero.
pub(in crate::families) fn refuse_key(keys: &Keys<'_>, key: &str, what: &str) -> Result<(), ModelError> {
    match keys.number(key)?.filter(|&x| x != 0.0) {
        Some(x) => Err(not_yet(what, format!("key `{}` = {x}", keys.full(key)))),
        None => Ok(()),
    }
}

/// Refuses a factor that is neither absent nor 0 nor 1.
pub(super) fn refuse_factor(keys: &Keys<'_>, key: &str, what: &str) -> Result<(), ModelError> {
    match keys.factor(key)?.filter(|&x| x != 1.0) {
        Some(x) => Err(not_yet(what, format!("key `{}` = {x}", keys.full(key)))),
        None => Ok(()),
    }
}

/// Refuses a window in families whose GGUF form has none: which layers it is for isn't said.
pub(in crate::families) fn refuse_window(keys: &Keys<'_>, dims: &Dims) -> Result<(), ModelError> {
    match keys.some_count("attention.sliding_window")? {
        Some(n) if n < dims.context_length => {
            refuse_key(keys, "attention.sliding_window", "sliding windows in this family")
        }
        _ => Ok(()),
    }
}

/// Refuses a file that has the tensor `name`.
pub(in crate::families) fn refuse_tensor(
    tensors: &Tensors<'_>,
    name: &str,
    what: &str,
) -> Result<(), ModelError> {
    match tensors.shape(name) {
        Some(_) => Err(not_yet(what, format!("tensor `{name}`"))),
        None => Ok(()),
    }
}

fn not_yet(what: &str, shown_by: String) -> ModelError {
    ModelError::NotYet { what: what.to_owned(), shown_by }
}
