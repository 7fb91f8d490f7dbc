//! Rotary tables: the frequencies of each rotary embedding of a model, and the angles of the current batch.
//!
//! Invariant: layers with equal rotary embeddings share a table, so a batch's angles are computed once for all of them.

use turbospark_kernels::{RopeRows, frequencies, yarn_frequencies};
use turbospark_model::{Mixer, ModelSpec, Rope, RopeScaling};

use super::Weights;
use crate::forward::Row;

/// All rotary embeddings of a model.
pub(super) struct Ropes(Vec<Table>);

struct Table {
    rope: Rope,
    /// Radians per position, `[dims / 2]`.
    frequencies: Vec<f32>,
    angles: RopeRows,
}

impl Ropes {
    pub(super) fn new(spec: &ModelSpec, weights: &Weights) -> Ropes {
        let mut tables: Vec<Table> = Vec::new();
        for layer in &spec.layers {
            let rope = match &layer.mixer {
                Mixer::Attention(a) => a.rope.as_ref(),
                Mixer::Latent(a) => Some(&a.rope),
                Mixer::Delta(_) => None,
            };
            if let Some(rope) = rope
                && !tables.iter().any(|t| t.rope == *rope)
            {
                let frequencies = frequencies_of(rope, weights);
                tables.push(Table { rope: rope.clone(), frequencies, angles: RopeRows::default() });
            }
        }
        Ropes(tables)
    }

    /// Computes the angles of a batch.
    pub(super) fn begin(&mut self, rows: &[Row]) {
        for table in &mut self.0 {
            let positions = rows.iter().map(|r| r.position);
            table.angles.fill(positions, &table.frequencies, table.rope.magnitude);
        }
    }

    /// Bytes of the batch's angles.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.0.iter().map(|t| t.angles.bytes()).sum()
    }

    /// The batch's angles of `rope`, which is one of the model's.
    pub(super) fn angles(&self, rope: &Rope) -> Option<&RopeRows> {
        self.0.iter().find(|t| t.rope == *rope).map(|t| &t.angles)
    }
}

fn frequencies_of(rope: &Rope, weights: &Weights) -> Vec<f32> {
    let mut table = match rope.scaling {
        RopeScaling::Linear(factor) => frequencies(rope.theta, rope.dims, factor),
        RopeScaling::Yarn { factor, original_context, beta_fast, beta_slow, round } => {
            yarn_frequencies(rope.theta, rope.dims, factor, original_context, beta_fast, beta_slow, round)
        }
    };
    if let Some(factors) = rope.freq_factors {
        table.iter_mut().zip(weights.vector(factors)).for_each(|(f, by)| *f /= by);
    }
    table
}
