//! Ollama's `options`: sampling and limits.

use serde_json::{Map, Value};
use turbospark_engine::SamplingParams;

use crate::fields::Fields;
use crate::{Refusal, ids};

/// Most stop strings.
const STOPS: usize = 16;

/// What options say.
#[derive(Debug, PartialEq)]
pub(crate) struct Options {
    /// How tokens are chosen; Ollama's defaults where nothing is said, but for the repetition penalty, which is off.
    pub(crate) sampling: SamplingParams,
    /// Most tokens of the answer.
    pub(crate) max_tokens: Option<usize>,
    /// What ends it.
    pub(crate) stop: Vec<String>,
}

/// Takes `options` of a request to a model with room for `context` tokens, where that is known.
///
/// # Errors
/// [`Refusal::Bad`] with the option that is wrong or unknown.
pub(crate) fn take(fields: &mut Fields, context: Option<usize>) -> Result<Options, Refusal> {
    let mut options = match fields.object("options")? {
        Some(options) => options,
        None => Fields::of("options", Value::Object(Map::new()))?,
    };
    let default = SamplingParams::default();
    let top_k = options.integer("top_k")?;
    if top_k.is_some_and(|k| k < 0) {
        return Err(options.wrong("top_k", "must be 0 (all) or more"));
    }
    let sampling = SamplingParams {
        temperature: options.number_in("temperature", 0.0, f32::MAX)?.unwrap_or(0.8),
        top_k: top_k.map_or(40, |k| k as usize),
        top_p: options.number_in("top_p", f32::MIN_POSITIVE, 1.0)?.unwrap_or(0.9),
        min_p: options.number_in("min_p", 0.0, 1.0)?.unwrap_or(0.0),
        repetition_penalty: options
            .number_in("repeat_penalty", f32::MIN_POSITIVE, f32::MAX)?
            .unwrap_or(default.repetition_penalty),
        presence_penalty: options
            .number_in("presence_penalty", f32::MIN, f32::MAX)?
            .unwrap_or(default.presence_penalty),
        frequency_penalty: options
            .number_in("frequency_penalty", f32::MIN, f32::MAX)?
            .unwrap_or(default.frequency_penalty),
        // Negative seeds are seeds too.
        seed: options.seed("seed")?.unwrap_or_else(ids::random),
        ..default
    };
    // -1 and -2 both mean: until the model or the context ends.
    let max_tokens = match options.integer("num_predict")? {
        None | Some(-2 | -1) => None,
        Some(n) if n > 0 => Some(n as usize),
        Some(_) => return Err(options.wrong("num_predict", "must be at least 1, or -1 for no limit")),
    };
    let stop = options.texts("stop", STOPS)?;
    if let (Some(wanted), Some(has)) = (options.count("num_ctx")?, context)
        && wanted > has
    {
        return Err(
            options.wrong("num_ctx", format!("the server runs this model with {has} tokens of context"))
        );
    }
    options.finish()?;
    Ok(Options { sampling, max_tokens, stop })
}
