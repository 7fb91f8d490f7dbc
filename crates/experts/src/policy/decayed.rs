//! The default: the expert whose next use is expected latest leaves.
//!
//! Each expert has two counts of its layer's rows that chose it, in which a row's weight halves after [`SHORT`] and after [`LONG`]
//! further rows. Scaled by their weights' sum they are two estimates of the probability p that the next row chooses the expert: one
//! follows the text, the other knows the popular. Their mean, [`SHARE`] of it the short one, is what experts of a layer are ranked
//! by. With one count this would be LRFU (Lee et al. 2001). Counts survive eviction, so an expert that comes and goes is known.
//!
//! Layers take turns: of two experts of equal p the one whose layer is due later leaves. The next use of an expert whose layer is due in
//! d passes, 0 < d <= 1, is expected after d + (1 - p) / p of them.
//!
//! A prompt's rows are counted as if they had come evenly, one after another: its hottest experts stay.
//!
//! Invariant: no transcendental function, so every machine ranks alike.

use super::ranks::Ranks;
use super::{CacheShape, Policy};
use crate::{Key, RouteBatch};

/// What a row's weight in the short count is multiplied by with each further row.
const SHORT: f64 = 0.85;
/// The same for the long count.
const LONG: f64 = 0.995;
/// Share of the short estimate.
const SHARE: f64 = 0.3;

/// An expert's two decayed counts, scaled so that one used by every row tends to 1.
#[derive(Clone, Copy, Default)]
struct Estimate {
    short: f64,
    long: f64,
}

pub(super) struct Decayed {
    layers: usize,
    experts: usize,
    /// `[layers, experts]`.
    estimates: Vec<Estimate>,
    /// By p.
    cached: Ranks<f64>,
    /// The layer that was asked for last.
    layer: u32,
}

impl Decayed {
    pub(super) fn new(shape: CacheShape) -> Decayed {
        Decayed {
            layers: shape.layers,
            experts: shape.experts,
            estimates: vec![Estimate::default(); shape.layers * shape.experts],
            cached: Ranks::new(shape),
            layer: 0,
        }
    }

    fn p(&self, key: Key) -> f64 {
        let e = self.estimates[key.layer as usize * self.experts + key.expert as usize];
        SHARE * e.short + (1.0 - SHARE) * e.long
    }
}

impl Policy for Decayed {
    fn name(&self) -> &'static str {
        "decayed"
    }

    fn requested(&mut self, batch: &RouteBatch<'_>) {
        self.layer = batch.layer;
        let rows = batch.n_rows.min(i32::MAX as u32) as i32;
        let (short, long) = (SHORT.powi(rows), LONG.powi(rows));
        let of_layer = &mut self.estimates[batch.layer as usize * self.experts..][..self.experts];
        for e in of_layer.iter_mut() {
            e.short *= short;
            e.long *= long;
        }
        for (&expert, &rows) in batch.experts.iter().zip(batch.rows) {
            let share = f64::from(rows) / f64::from(batch.n_rows);
            let e = &mut of_layer[expert as usize];
            e.short += share * (1.0 - short);
            e.long += share * (1.0 - long);
        }
        for expert in 0..self.experts as u32 {
            let key = Key { layer: batch.layer, expert };
            if self.cached.has(key) {
                self.cached.set(key, self.p(key));
            }
        }
    }

    fn placed(&mut self, key: Key) {
        self.cached.set(key, self.p(key));
    }

    fn removed(&mut self, key: Key) {
        self.cached.remove(key);
    }

    fn victim(&mut self, may_leave: &dyn Fn(Key) -> bool) -> Option<Key> {
        let (now, layers) = (self.layer as usize, self.layers);
        self.cached.least_by(may_leave, |layer, p| {
            let due = if layer as usize > now { layer as usize - now } else { layer as usize + layers - now };
            let d = due as f64 / layers as f64;
            // The inverse of d + (1 - p) / p.
            p / (1.0 - p * (1.0 - d))
        })
    }
}
