//! The router of a mixture of experts: scores, choice and weights of each row's experts.
//!
//! What is not finite is never chosen from: a row with such a score is an error that names it. Equal scores go to the lower index,
//! and a row's choice depends on its own logits alone.

use crate::cpu::{Cpu, Isa};
use crate::pool::SharedMut;
use crate::scalar;
use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What becomes of the logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scoring {
    /// Softmax over all experts (Shazeer et al. 2017).
    Softmax,
    /// The logistic function of each.
    Sigmoid,
    /// The logits choose; softmax over the chosen ones alone.
    SoftmaxOfSelected,
}

/// Choice limited to the best groups of consecutive experts ("A Strong, Economical, and Efficient Mixture-of-Experts Language Model", 2024, section 2.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    /// Groups of equal size.
    pub count: usize,
    /// Groups whose experts may be chosen.
    pub used: usize,
    /// A group's score is the sum of so many of its highest scores.
    pub best: usize,
}

/// How experts are chosen and weighed.
#[derive(Clone, Copy, Debug)]
pub struct RouterParams<'a> {
    /// Experts in all.
    pub n_experts: usize,
    /// Experts a row.
    pub top_k: usize,
    /// Scores.
    pub scoring: Scoring,
    /// `[n_experts]`: added to the scores for the choice, never for the weights (Wang et al. 2024, "Auxiliary-Loss-Free Load
    /// Balancing").
    pub correction: Option<&'a [f32]>,
    /// Groups, if the choice is limited to some.
    pub groups: Option<Groups>,
    /// Whether the weights are divided by their sum.
    pub normalise: bool,
    /// Added to that sum: scores that have all underflowed give zeros then, not NaN.
    pub norm_floor: f32,
    /// Factor of all weights.
    pub scale: f32,
    /// `[n_experts]`: factor of each expert's weight.
    pub expert_scale: Option<&'a [f32]>,
}

/// The experts of each row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Routes {
    /// Experts a row.
    pub top_k: usize,
    /// `[rows, top_k]`, the highest score of the choice first.
    pub experts: Vec<u32>,
    /// `[rows, top_k]`.
    pub weights: Vec<f32>,
}

/// A router's score is NaN or infinite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the router's score of expert {expert} in row {row} is NaN or infinite: the activations or the weights before it are broken"
)]
pub struct NotFinite {
    /// Row of the batch.
    pub row: usize,
    /// Expert.
    pub expert: usize,
}

#[derive(Default)]
struct Buffers {
    scores: Vec<f32>,
    choice: Vec<f32>,
    groups: Vec<(f32, u32)>,
    ranks: Vec<(f32, u32)>,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::default();
}

impl Cpu {
    /// Replaces `routes` by the experts and weights of each row of `logits` `[rows, n_experts]`.
    ///
    /// Without correction, and with groups scored by their best expert, the logits themselves are compared: every scoring keeps
    /// their order, but rounding makes some scores equal.
    ///
    /// # Errors
    /// [`NotFinite`] for the first score that is NaN or infinite, by rows; `routes` is empty then.
    ///
    /// # Panics
    /// Where lengths disagree with `params`, or there are fewer experts in the groups used than `top_k`.
    pub fn route(
        &self,
        params: &RouterParams<'_>,
        logits: &[f32],
        routes: &mut Routes,
    ) -> Result<(), NotFinite> {
        let (n, k) = (params.n_experts, params.top_k);
        params.check();
        assert!(logits.len().is_multiple_of(n), "router logits of the wrong shape");
        let rows = logits.len() / n;
        routes.top_k = k;
        routes.experts.resize(rows * k, 0);
        routes.weights.resize(rows * k, 0.0);
        let bad = AtomicUsize::new(usize::MAX);
        let (experts, weights) = (SharedMut::new(&mut routes.experts), SharedMut::new(&mut routes.weights));
        self.split(rows, 2048_usize.div_ceil(n), &|part| {
            BUFFERS.with_borrow_mut(|b| {
                for row in part {
                    let logits = &logits[row * n..(row + 1) * n];
                    // SAFETY: parts of one split are disjoint rows.
                    let (experts, weights) =
                        unsafe { (experts.slice(row * k, k), weights.slice(row * k, k)) };
                    if let Err(expert) = route_row(self.isa, params, logits, b, experts, weights) {
                        bad.fetch_min(row * n + expert, Ordering::Relaxed);
                    }
                }
            });
        });
        match bad.into_inner() {
            usize::MAX => Ok(()),
            at => {
                routes.experts.clear();
                routes.weights.clear();
                Err(NotFinite { row: at / n, expert: at % n })
            }
        }
    }
}

impl RouterParams<'_> {
    fn check(&self) {
        let n = self.n_experts;
        let eligible = match self.groups {
            None => n,
            Some(g) => {
                assert!(g.count > 0 && n.is_multiple_of(g.count), "experts in groups of different sizes");
                assert!(g.used <= g.count && (1..=n / g.count).contains(&g.best), "impossible groups");
                n / g.count * g.used
            }
        };
        assert!((1..=eligible).contains(&self.top_k), "more experts a row than there are to choose from");
        for per_expert in [self.correction, self.expert_scale].into_iter().flatten() {
            assert_eq!(per_expert.len(), n, "a router tensor of the wrong length");
        }
    }

    /// Whether the logits' order is the order of choice.
    fn ordered_by_logits(&self) -> bool {
        self.correction.is_none()
            && (self.groups.is_none_or(|g| g.best == 1) || self.scoring == Scoring::SoftmaxOfSelected)
    }
}

/// Routes one row; the error is the first expert whose score is not finite.
fn route_row(
    isa: Isa,
    params: &RouterParams<'_>,
    logits: &[f32],
    b: &mut Buffers,
    experts: &mut [u32],
    weights: &mut [f32],
) -> Result<(), usize> {
    all_finite(logits)?;
    b.scores.clear();
    b.scores.extend_from_slice(logits);
    match params.scoring {
        Scoring::Softmax => softmax(isa, &mut b.scores),
        Scoring::Sigmoid => sigmoid(isa, &mut b.scores),
        Scoring::SoftmaxOfSelected => {}
    }
    let choice: &[f32] = if params.ordered_by_logits() {
        logits
    } else if let Some(correction) = params.correction {
        b.choice.clear();
        b.choice.extend(b.scores.iter().zip(correction).map(|(s, c)| s + c));
        all_finite(&b.choice)?;
        &b.choice
    } else {
        &b.scores
    };
    b.ranks.clear();
    if let Some(groups) = params.groups {
        let size = params.n_experts / groups.count;
        b.groups.clear();
        for (g, choice) in choice.chunks_exact(size).enumerate() {
            b.ranks.clear();
            keep_best(&mut b.ranks, groups.best, choice.iter().copied().zip(0..));
            let score = b.ranks.iter().map(|(score, _)| score).sum();
            keep_best(&mut b.groups, groups.used, std::iter::once((score, g as u32)));
        }
        // By index, so that equal scores of different groups go to the lower one.
        b.groups.sort_unstable_by_key(|(_, g)| *g);
        b.ranks.clear();
        for (_, g) in &b.groups {
            let first = *g as usize * size;
            let members = choice[first..first + size].iter().copied().zip(first as u32..);
            keep_best(&mut b.ranks, params.top_k, members);
        }
    } else {
        keep_best(&mut b.ranks, params.top_k, choice.iter().copied().zip(0..));
    }
    for ((expert, weight), (_, chosen)) in experts.iter_mut().zip(&mut *weights).zip(&b.ranks) {
        (*expert, *weight) = (*chosen, b.scores[*chosen as usize]);
    }
    weigh(isa, params, experts, weights);
    Ok(())
}

/// Turns the scores of the chosen experts into their weights.
fn weigh(isa: Isa, params: &RouterParams<'_>, experts: &[u32], weights: &mut [f32]) {
    if params.scoring == Scoring::SoftmaxOfSelected {
        softmax(isa, weights);
    }
    if params.normalise {
        let sum = weights.iter().fold(0.0, |sum, w| sum + w) + params.norm_floor;
        weights.iter_mut().for_each(|w| *w /= sum);
    }
    weights.iter_mut().for_each(|w| *w *= params.scale);
    if let Some(scale) = params.expert_scale {
        weights.iter_mut().zip(experts).for_each(|(w, e)| *w *= scale[*e as usize]);
    }
}

/// Adds candidates to a list of at most `k`, the highest first. One that equals an earlier one ranks below it.
fn keep_best(best: &mut Vec<(f32, u32)>, k: usize, candidates: impl Iterator<Item = (f32, u32)>) {
    for candidate in candidates {
        if best.len() == k {
            if best.last().is_none_or(|last| candidate.0 <= last.0) {
                continue;
            }
            best.pop();
        }
        let mut at = best.len();
        while at > 0 && best[at - 1].0 < candidate.0 {
            at -= 1;
        }
        best.insert(at, candidate);
    }
}

fn all_finite(scores: &[f32]) -> Result<(), usize> {
    // Without an early end, which would keep the compiler from taking several at once.
    if scores.iter().fold(true, |all, s| all & s.is_finite()) {
        return Ok(());
    }
    Err(scores.iter().position(|s| !s.is_finite()).unwrap_or(0))
}

fn softmax(isa: Isa, x: &mut [f32]) {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this set is chosen only where the processor has it.
        Isa::Avx2 => unsafe { crate::avx2::math::softmax(x) },
        _ => scalar::softmax(x),
    }
}

fn sigmoid(isa: Isa, x: &mut [f32]) {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this set is chosen only where the processor has it.
        Isa::Avx2 => unsafe { crate::avx2::math::sigmoid(x) },
        _ => x.iter_mut().for_each(|x| *x = scalar::sigmoid(*x)),
    }
}
