//! Drawing a token from the distribution that temperature, `top_k`, `min_p` and `top_p` leave.
//!
//! Invariant: candidates have one total order (greater logit first, then smaller id), so every cut is a
//! single candidate and what survives it doesn't depend on how it was found. Weights are integers of 2^36 for
//! the likeliest token; a token whose weight rounds to 0 (less than e^-25 of it) is never drawn.

use std::cmp::Ordering;

use super::SamplingParams;
use super::random::{SplitMix64, exp};

/// Weight of the likeliest token: sums of 2^28 of them fit 64 bits.
const UNIT: f64 = (1u64 << 36) as f64;
/// ln(2^-36), a little below: nothing under it has a weight.
const LOWEST: f64 = -25.0;

#[derive(Debug, Clone, Copy)]
struct Candidate {
    logit: f32,
    id: u32,
    weight: u64,
}

impl Candidate {
    /// Likelier candidates first.
    fn rank(&self, other: &Candidate) -> Ordering {
        // Logits have been checked: no NaN, and zeros of both signs are equal.
        other.logit.partial_cmp(&self.logit).unwrap_or(Ordering::Equal).then(self.id.cmp(&other.id))
    }
}

/// Room that a sampler keeps from token to token.
#[derive(Debug, Clone, Default)]
pub(super) struct Scratch {
    work: Vec<Candidate>,
    kept: Vec<Candidate>,
}

/// Draws a token; `top` is the greatest of `logits` and not `-inf`.
pub(super) fn draw(
    params: &SamplingParams,
    logits: &[f32],
    top: f32,
    random: &mut SplitMix64,
    scratch: &mut Scratch,
) -> u32 {
    let Scratch { work, kept } = scratch;
    let kth = (params.top_k > 0 && params.top_k < logits.len()).then(|| kth_best(logits, params.top_k, work));
    let temperature = f64::from(params.temperature);
    let least = (f64::from(params.min_p) * UNIT) as u64;
    kept.clear();
    // Below it a weight is 0 or a better k were found; f32 rounds this by less than a thousandth, hence the margin.
    let lightest = top + (LOWEST - 0.01) as f32 * params.temperature;
    let floor = kth.map_or(lightest, |k| k.logit.max(lightest));
    scan(logits, floor, |id, logit| {
        let mut candidate = Candidate { logit, id, weight: 0 };
        let x = (f64::from(logit) - f64::from(top)) / temperature;
        if x >= LOWEST && kth.is_none_or(|k| candidate.rank(&k) != Ordering::Greater) {
            candidate.weight = (exp(x) * UNIT) as u64;
            if candidate.weight >= least {
                kept.push(candidate);
            }
        }
        floor
    });
    let total: u64 = kept.iter().map(|c| c.weight).sum();
    let mut end = total;
    let mut last = None;
    if params.top_p < 1.0 {
        let wanted = (f64::from(params.top_p) * total as f64) as u64;
        work.clear();
        work.extend_from_slice(kept);
        let (cut, sum) = mass_cut(work, wanted.max(1));
        (last, end) = (Some(cut), sum);
    }
    let mut point = random.below(end);
    for c in kept.iter().filter(|c| last.is_none_or(|l| c.rank(&l) != Ordering::Greater)) {
        if point < c.weight {
            return c.id;
        }
        point -= c.weight;
    }
    // Not reached: `point` is below the sum of the weights walked. The likeliest is the safe answer.
    super::argmax(logits) as u32
}

/// The `k`-th best candidate, `0 < k < logits.len()`.
fn kth_best(logits: &[f32], k: usize, work: &mut Vec<Candidate>) -> Candidate {
    // Collect what may be among the best, and raise the floor each time the room is full: most of a vocabulary is
    // passed over with one comparison for many tokens.
    let room = (2 * k).max(64);
    let mut floor = f32::NEG_INFINITY;
    work.clear();
    scan(logits, floor, |id, logit| {
        work.push(Candidate { logit, id, weight: 0 });
        if work.len() == room {
            floor = work.select_nth_unstable_by(k - 1, Candidate::rank).1.logit;
            work.truncate(k);
        }
        floor
    });
    *work.select_nth_unstable_by(k - 1, Candidate::rank).1
}

/// Calls `visit(id, logit)` for each logit that is not below the floor, which starts as `floor` and becomes what `visit`
/// returns.
fn scan(logits: &[f32], mut floor: f32, mut visit: impl FnMut(u32, f32) -> f32) {
    for (chunk, first) in logits.chunks(32).zip((0..).step_by(32)) {
        // A vector maximum: only chunks that have something are looked at one by one.
        if let Ok(full) = <&[f32; 32]>::try_from(chunk)
            && greatest(full) < floor
        {
            continue;
        }
        for (&logit, id) in chunk.iter().zip(first..) {
            if logit >= floor {
                floor = visit(id, logit);
            }
        }
    }
}

fn greatest(chunk: &[f32; 32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; 8];
    for part in chunk.as_chunks::<8>().0 {
        for (lane, &x) in lanes.iter_mut().zip(part) {
            *lane = if x > *lane { x } else { *lane };
        }
    }
    lanes.into_iter().fold(f32::NEG_INFINITY, f32::max)
}

/// The last candidate of the shortest best-first run whose weights reach `wanted` (at most the sum of all), and
/// the run's weight. Halves the range by selection, so the run is never sorted.
fn mass_cut(mut work: &mut [Candidate], wanted: u64) -> (Candidate, u64) {
    let mut before = 0;
    while work.len() > 1 {
        let middle = work.len() / 2;
        work.select_nth_unstable_by(middle - 1, Candidate::rank);
        let (likelier, rest) = work.split_at_mut(middle);
        let mass: u64 = likelier.iter().map(|c| c.weight).sum();
        work = if before + mass >= wanted {
            likelier
        } else {
            before += mass;
            rest
        };
    }
    (work[0], before + work[0].weight)
}
