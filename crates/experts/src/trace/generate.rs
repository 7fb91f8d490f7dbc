//! Made-up traces with the locality of real ones, for tests and measurements without a trained model.
//!
//! Each layer's experts have popularities by Zipf's law, in an order of its own that drifts; part of a row's experts are those of the row
//! before.
//!
//! Invariant: the same parameters give the same trace.

use super::{Trace, TraceError, TraceHeader, TraceLayer, wire};
use crate::{Phase, RouteBatch};

/// Parameters of a made-up trace.
#[derive(Debug, Clone, PartialEq)]
pub struct MadeUp {
    /// Layers, each with experts.
    pub layers: u32,
    /// Experts of a layer.
    pub experts: u32,
    /// Experts of a row.
    pub top_k: u32,
    /// Bytes of an expert.
    pub expert_bytes: u64,
    /// Exponent s of the popularities 1 / rank^s; 0: all alike.
    pub zipf: f64,
    /// Pairs of experts that change their popularities, each row and layer.
    pub drift: f64,
    /// Probability that an expert is taken from those of the row before.
    pub repeat: f64,
    /// Prompts, each followed by an answer.
    pub turns: u32,
    /// Rows of a prompt.
    pub prompt: u32,
    /// Rows of an answer.
    pub answer: u32,
    /// Start of the random sequence.
    pub seed: u64,
}

impl MadeUp {
    /// 16 layers of 64 experts, 8 to a row, as a published model has; zipf, drift and repeat such that LRU hits what was measured with it in
    /// public: about half with a quarter of the experts in memory.
    pub fn sixteen_by_sixty_four() -> MadeUp {
        MadeUp {
            layers: 16,
            experts: 64,
            top_k: 8,
            expert_bytes: 3_538_944,
            zipf: 0.7,
            drift: 0.05,
            repeat: 0.25,
            turns: 4,
            prompt: 200,
            answer: 500,
            seed: 1,
        }
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014).
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    pub(crate) fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// From 0 to below 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// One layer's state.
struct Layer {
    /// The expert of each rank of popularity.
    by_rank: Vec<u32>,
    /// The last row's experts.
    last: Vec<u32>,
    row: Vec<u32>,
}

/// Makes up a trace.
///
/// # Errors
/// More layers and experts than a trace may have; more experts to a row than there are.
pub fn generate(p: &MadeUp) -> Result<Trace, TraceError> {
    if p.top_k == 0 || p.top_k > p.experts {
        let what = format!("{} experts to a row of {} there are", p.top_k, p.experts);
        return Err(TraceError::Misfit { what });
    }
    if u64::from(p.layers) * u64::from(p.experts) > wire::MOST_KEYS {
        return Err(TraceError::Misfit { what: format!("{} layers of {} experts", p.layers, p.experts) });
    }
    let layer = TraceLayer { n_experts: p.experts, expert_bytes: p.expert_bytes };
    let layers = vec![layer; p.layers as usize];
    let mut trace = Trace::new(TraceHeader { model: "made up".to_owned(), top_k: p.top_k, layers })?;

    let mut random = SplitMix64::new(p.seed);
    // Sums of the popularities up to each rank.
    let mut sums: Vec<f64> = (1..=p.experts).map(|rank| f64::from(rank).powf(-p.zipf)).collect();
    (1..sums.len()).for_each(|i| sums[i] += sums[i - 1]);
    let mut layers: Vec<Layer> = (0..p.layers)
        .map(|_| {
            let mut by_rank: Vec<u32> = (0..p.experts).collect();
            (1..by_rank.len()).for_each(|i| by_rank.swap(i, random.below(i as u64 + 1) as usize));
            Layer { by_rank, last: Vec::new(), row: Vec::new() }
        })
        .collect();

    let mut counts = vec![0_u32; p.experts as usize];
    let (mut experts, mut rows) = (Vec::new(), Vec::new());
    for _ in 0..p.turns {
        let passes = std::iter::once((Phase::Prefill, p.prompt))
            .chain(std::iter::repeat_n((Phase::Decode, 1), p.answer as usize));
        for (phase, n_rows) in passes.filter(|&(_, n)| n > 0) {
            for (index, layer) in layers.iter_mut().enumerate() {
                for _ in 0..n_rows {
                    layer.route(p, &sums, &mut random);
                    layer.row.iter().for_each(|&e| counts[e as usize] += 1);
                }
                experts.clear();
                rows.clear();
                for (expert, n) in counts.iter_mut().enumerate().filter(|(_, n)| **n > 0) {
                    experts.push(expert as u32);
                    rows.push(std::mem::take(n));
                }
                let layer = index as u32;
                trace.push(&RouteBatch { phase, layer, n_rows, experts: &experts, rows: &rows })?;
            }
        }
    }
    Ok(trace)
}

impl Layer {
    fn route(&mut self, p: &MadeUp, sums: &[f64], random: &mut SplitMix64) {
        let n = u64::from(p.experts);
        let swaps = p.drift.max(0.0);
        let swaps = swaps as u64 + u64::from(random.unit() < swaps.fract());
        for _ in 0..swaps {
            self.by_rank.swap(random.below(n) as usize, random.below(n) as usize);
        }
        std::mem::swap(&mut self.last, &mut self.row);
        self.row.clear();
        while self.row.len() < p.top_k as usize {
            let expert = if !self.last.is_empty() && random.unit() < p.repeat {
                self.last[random.below(self.last.len() as u64) as usize]
            } else {
                let at = random.unit() * sums[sums.len() - 1];
                let rank = sums.partition_point(|&sum| sum <= at);
                self.by_rank[rank.min(self.by_rank.len() - 1)]
            };
            if !self.row.contains(&expert) {
                self.row.push(expert);
            }
        }
    }
}
