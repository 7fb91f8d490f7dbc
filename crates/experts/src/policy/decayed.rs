//! The default: the expert whose next use is expected latest leaves.
//!
//! Each expert has decayed counts of its layer's rows that chose it: a row counts for `keep` times as much with each further row.
//! Scaled by the sum of their weights, they estimate the probability p that the next row chooses the expert. With one such count
//! this would be LRFU (Lee et al. 2001), and the best rate would differ from text to text: what the last rows used, what
//! the topic uses, and what is popular each tell something. So there are [`KEEP`] of them, added up in shares that are learnt: with each
//! decoded row, a share moves towards the part that its estimate had in foretelling the experts chosen (the step of
//! expectation maximisation for a mixture's weights). Counts survive eviction, so an expert that comes and goes is known.
//!
//! Layers take turns: of two experts of equal p the one whose layer is due later leaves. The next use of an expert whose layer is due in
//! d passes, 0 < d <= 1, is expected after d + (1 - p) / p of them.
//!
//! A prompt's rows are counted as if they had come evenly, one after another: its hottest experts stay.
//!
//! Invariant: no transcendental function, so every machine ranks alike.

use super::ranks::Ranks;
use super::{CacheShape, Policy};
use crate::{Key, Phase, RouteBatch};

/// What a row's weight is multiplied by with each further row.
const KEEP: [f64; 4] = [0.3, 0.8, 0.95, 0.99];
/// How far a row's experts move the shares.
const LEARN: f64 = 0.001;
/// The least share: one that was of no use can grow again.
const LEAST_SHARE: f64 = 0.01;

type Estimates = [f64; KEEP.len()];

pub(super) struct Decayed {
    layers: usize,
    experts: usize,
    /// `[layers, experts]`: p by each of `KEEP`.
    estimates: Vec<Estimates>,
    shares: Estimates,
    /// By p.
    cached: Ranks<f64>,
    /// The layer that was asked for last.
    layer: u32,
}

fn dot(a: &Estimates, b: &Estimates) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

impl Decayed {
    pub(super) fn new(shape: CacheShape) -> Decayed {
        Decayed {
            layers: shape.layers,
            experts: shape.experts,
            estimates: vec![[0.0; KEEP.len()]; shape.layers * shape.experts],
            shares: [1.0 / KEEP.len() as f64; KEEP.len()],
            cached: Ranks::new(shape),
            layer: 0,
        }
    }

    fn p(&self, key: Key) -> f64 {
        dot(&self.shares, &self.estimates[key.layer as usize * self.experts + key.expert as usize])
    }

    /// Moves the shares towards what foretold `experts`.
    fn learn(shares: &mut Estimates, of_layer: &[Estimates], experts: &[u32]) {
        for &expert in experts {
            let estimates = &of_layer[expert as usize];
            let p = dot(shares, estimates);
            if p > 0.0 {
                for (share, estimate) in shares.iter_mut().zip(estimates) {
                    let part = (*share * estimate / p).max(LEAST_SHARE);
                    *share += LEARN * (part - *share);
                }
            }
        }
    }
}

impl Policy for Decayed {
    fn name(&self) -> &'static str {
        "decayed"
    }

    fn requested(&mut self, batch: &RouteBatch<'_>) {
        self.layer = batch.layer;
        let of_layer = &mut self.estimates[batch.layer as usize * self.experts..][..self.experts];
        if batch.phase == Phase::Decode {
            Decayed::learn(&mut self.shares, of_layer, batch.experts);
        }
        let rows = batch.n_rows.min(i32::MAX as u32) as i32;
        let kept = KEEP.map(|keep| keep.powi(rows));
        for estimates in of_layer.iter_mut() {
            estimates.iter_mut().zip(kept).for_each(|(p, kept)| *p *= kept);
        }
        for (&expert, &rows) in batch.experts.iter().zip(batch.rows) {
            let share = f64::from(rows) / f64::from(batch.n_rows);
            of_layer[expert as usize].iter_mut().zip(kept).for_each(|(p, kept)| *p += share * (1.0 - kept));
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
