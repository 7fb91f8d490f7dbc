//! Rotary embeddings as the `rope.*` keys describe them.
//!
//! Defaults of the format: base 10000, linear scaling with factor 1; for YaRN the trained context is `context_length`,
//! the ramp runs from 32 to 1 turns and its ends are whole pairs. YaRN's factor on queries and keys is
//! `1 + 0.1 ln(factor)` (Peng et al. 2023), over `1 + 0.1 m ln(factor)` where `yarn_log_multiplier` gives `m`.

use super::Dims;
use super::refuse::refuse_factor;
use crate::ModelError;
use crate::keys::Keys;
use crate::spec::{Pairing, Rope, RopeScaling};

/// The rotary embedding of `dims.rope_dims` elements, without frequency factors.
pub(in crate::families) fn rope(keys: &Keys<'_>, dims: &Dims, pairing: Pairing) -> Result<Rope, ModelError> {
    let theta = keys.positive("rope.freq_base")?.unwrap_or(10_000.0);
    let factor = match keys.factor("rope.scaling.factor")? {
        Some(x) => Some(x),
        None => keys.factor("rope.scale_linear")?,
    };
    let key = "rope.scaling.type";
    let (scaling, magnitude) = match keys.str(key)? {
        None | Some("linear") => (RopeScaling::Linear(factor.unwrap_or(1.0)), 1.0),
        Some("none") => (RopeScaling::Linear(1.0), 1.0),
        Some("yarn") => yarn(keys, dims, factor)?,
        Some(other) => {
            return Err(ModelError::NotYet {
                what: format!("rotary scaling `{other}`"),
                shown_by: format!("key `{}`", keys.full(key)),
            });
        }
    };
    let key = "rope.scaling.attn_factor";
    refuse_factor(keys, key, "a factor of the file's own on rotary embeddings")?;
    Ok(Rope { theta, dims: dims.rope_dims, pairing, scaling, magnitude, freq_factors: None })
}

fn yarn(keys: &Keys<'_>, dims: &Dims, factor: Option<f32>) -> Result<(RopeScaling, f32), ModelError> {
    let factor = factor.ok_or_else(|| ModelError::MissingKey { key: keys.full("rope.scaling.factor") })?;
    for key in ["rope.scaling.yarn_ext_factor", "rope.scaling.yarn_attn_factor"] {
        refuse_factor(keys, key, "a YaRN factor of the file's own")?;
    }
    let original_context = keys.count("rope.scaling.original_context_length")?.unwrap_or(dims.context_length);
    let beta_fast = keys.positive("rope.scaling.yarn_beta_fast")?.unwrap_or(32.0);
    let beta_slow = keys.positive("rope.scaling.yarn_beta_slow")?.unwrap_or(1.0);
    if beta_slow > beta_fast {
        let expected = format!("at most yarn_beta_fast ({beta_fast})");
        return Err(keys.bad("rope.scaling.yarn_beta_slow", beta_slow, expected));
    }
    let multiplier = yarn_log_multiplier(keys)?.unwrap_or(0.0);
    let magnitude = yarn_mscale(factor, 0.1) / yarn_mscale(factor, 0.1 * multiplier);
    Ok((RopeScaling::Yarn { factor, original_context, beta_fast, beta_slow, round: true }, magnitude))
}

/// `rope.scaling.yarn_log_multiplier`; none where it is 0.
pub(in crate::families) fn yarn_log_multiplier(keys: &Keys<'_>) -> Result<Option<f32>, ModelError> {
    let key = "rope.scaling.yarn_log_multiplier";
    match keys.factor(key)? {
        Some(x) if x > 100.0 => Err(keys.bad(key, x, "a multiplier up to 100")),
        found => Ok(found),
    }
}

/// `1 + slope ln(factor)` for a stretch, 1 for none.
pub(in crate::families) fn yarn_mscale(factor: f32, slope: f32) -> f32 {
    if factor > 1.0 { 1.0 + slope * factor.ln() } else { 1.0 }
}
