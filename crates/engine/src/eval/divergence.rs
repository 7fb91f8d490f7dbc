//! How far a model's predictions are from a reference: another model or saved logits.
//!
//! For each row, `KL(reference || model) = Σ p (log p - log q)` in nats (Kullback and Leibler 1951).

use turbospark_format::{Dtype, SafeTensors};

use super::{EvalError, log_sum_exp};
use crate::{Engine, EngineError, Sequence, Wanted, argmax, check_finite};

/// Rows that are compared at a time: what is held of the reference.
const ROWS: usize = 32;

/// What a model is compared with.
pub enum Reference<'a> {
    /// Another model with the same vocabulary, fed the same tokens.
    Model(&'a Engine),
    /// Tensor `logits` `[rows, n_vocab]` of the same tokens.
    Saved(&'a SafeTensors),
}

/// Sums over the rows compared so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Divergence {
    /// Rows compared.
    pub rows: usize,
    /// Sum of the rows' divergences, in nats.
    pub kl: f64,
    /// The greatest of them.
    pub max_kl: f64,
    /// Rows whose most likely token is the same.
    pub same_top: usize,
}

impl Divergence {
    /// Mean divergence of a row; NaN for none.
    pub fn mean_kl(&self) -> f64 {
        self.kl / self.rows as f64
    }

    /// Share of rows whose most likely token is the same; NaN for none.
    pub fn agreement(&self) -> f64 {
        self.same_top as f64 / self.rows as f64
    }

    /// Adds a row: logits of the reference and of the model, finite and of one length.
    pub fn add(&mut self, reference: &[f32], model: &[f32]) {
        let (log_p, log_q) = (log_sum_exp(reference), log_sum_exp(model));
        let kl: f64 = reference
            .iter()
            .zip(model)
            .map(|(&p, &q)| {
                let p = f64::from(p) - log_p;
                p.exp() * (p - (f64::from(q) - log_q))
            })
            .sum();
        // Rounding can leave a hair below zero.
        let kl = kl.max(0.0);
        self.rows += 1;
        self.kl += kl;
        self.max_kl = self.max_kl.max(kl);
        self.same_top += usize::from(argmax(reference) == argmax(model));
    }
}

/// Compares the rows of `tokens`, one sequence from its start. `progress(rows done)` is called now and then.
///
/// # Errors
/// Tokens that don't fit a context or vocabulary, vocabularies that differ, saved logits of another shape, a logit that is
/// not finite.
pub fn divergence(
    model: &Engine,
    tokens: &[u32],
    reference: &Reference<'_>,
    mut progress: impl FnMut(usize),
) -> Result<Divergence, EvalError> {
    let n_vocab = model.spec().n_vocab;
    let mut reference = Rows::new(reference, tokens.len(), n_vocab)?;
    let mut sequence = model.sequence();
    let mut sum = Divergence::default();
    let mut expected = Vec::new();
    for chunk in tokens.chunks(ROWS) {
        reference.read(chunk, &mut expected)?;
        let mut fault = None;
        model.feed(&mut sequence, chunk, None, Wanted::All, |row, logits| {
            let expected = &expected[row * n_vocab..(row + 1) * n_vocab];
            match check_finite(expected).and_then(|()| check_finite(logits)) {
                Ok(()) => sum.add(expected, logits),
                Err(e) => fault = fault.take().or(Some(e)),
            }
        })?;
        if let Some(fault) = fault {
            return Err(fault.into());
        }
        progress(sum.rows);
    }
    if sum.rows == 0 {
        return Err(EngineError::EmptyPrompt.into());
    }
    Ok(sum)
}

/// The reference's rows, in order.
enum Rows<'a> {
    Model { engine: &'a Engine, sequence: Sequence },
    Saved { bytes: &'a [u8], row_bytes: usize },
}

impl<'a> Rows<'a> {
    fn new(reference: &Reference<'a>, rows: usize, n_vocab: usize) -> Result<Self, EvalError> {
        match *reference {
            Reference::Model(engine) => {
                let reference = engine.spec().n_vocab;
                if reference != n_vocab {
                    return Err(EvalError::Vocabularies { model: n_vocab, reference });
                }
                Ok(Rows::Model { engine, sequence: engine.sequence() })
            }
            Reference::Saved(file) => {
                let wrong = |found| EvalError::SavedLogits { found, rows, n_vocab };
                let saved = file.tensor("logits").ok_or_else(|| wrong("not there".to_owned()))?;
                if saved.dtype != Dtype::F32 || saved.shape != [rows, n_vocab] {
                    return Err(wrong(format!("{} of shape {:?}", saved.dtype.name(), saved.shape)));
                }
                Ok(Rows::Saved { bytes: saved.bytes, row_bytes: n_vocab * size_of::<f32>() })
            }
        }
    }

    /// Replaces `out` by the logits of the next rows, one for each of `tokens`.
    fn read(&mut self, tokens: &[u32], out: &mut Vec<f32>) -> Result<(), EvalError> {
        out.clear();
        match self {
            Rows::Model { engine, sequence } => {
                engine
                    .feed(sequence, tokens, None, Wanted::All, |_, logits| out.extend_from_slice(logits))?;
            }
            Rows::Saved { bytes, row_bytes } => {
                let (now, rest) = bytes.split_at(tokens.len() * *row_bytes);
                *bytes = rest;
                let (values, _) = now.as_chunks::<4>();
                out.extend(values.iter().map(|&b| f32::from_le_bytes(b)));
            }
        }
        Ok(())
    }
}
