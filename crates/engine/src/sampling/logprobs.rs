//! Log-probabilities of tokens in the model's own distribution: the log-softmax of the logits as the model gave them, before
//! biases, penalties, constraints and temperature.

/// A chosen token's log-probability, and the likeliest tokens' at its place.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenLogprob {
    /// Natural logarithm of the token's probability.
    pub logprob: f32,
    /// The likeliest tokens and theirs, likeliest first; of equals the smaller id first.
    pub top: Vec<(u32, f32)>,
}

/// The log-probability of `token` after `logits`, and of the `top` likeliest.
pub(super) fn logprob(logits: &[f32], token: u32, top: usize) -> TokenLogprob {
    let greatest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|&x| f64::from(x - greatest).exp()).sum();
    let log_sum = f64::from(greatest) + sum.ln();
    let of =
        |id: u32| logits.get(id as usize).map_or(f32::NEG_INFINITY, |&x| (f64::from(x) - log_sum) as f32);
    let likeliest = likeliest(logits, top);
    TokenLogprob { logprob: of(token), top: likeliest.into_iter().map(|id| (id, of(id))).collect() }
}

/// Ids of the `n` greatest logits, greatest first.
fn likeliest(logits: &[f32], n: usize) -> Vec<u32> {
    let n = n.min(logits.len());
    let mut best: Vec<u32> = Vec::with_capacity(n + 1);
    for (id, &logit) in (0..).zip(logits) {
        // Ids ascend, so an equal one comes after those that are there.
        let better = |other: &u32| logits[*other as usize] >= logit;
        if best.len() < n || best.last().is_some_and(|last| !better(last)) {
            best.insert(best.partition_point(better), id);
            best.truncate(n);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn they_are_the_log_softmax_of_a_full_sort(logits in prop::collection::vec(-40i8..40, 1..200), n in 0usize..25) {
            let logits: Vec<f32> = logits.into_iter().map(|x| f32::from(x) / 3.0).collect();
            let mut ids: Vec<u32> = (0..logits.len() as u32).collect();
            ids.sort_by(|&a, &b| logits[b as usize].total_cmp(&logits[a as usize]));
            ids.truncate(n);
            let sum: f64 = logits.iter().map(|&x| f64::from(x).exp()).sum();
            let got = logprob(&logits, 0, n);
            prop_assert!((f64::from(got.logprob) - (f64::from(logits[0]) - sum.ln())).abs() < 1e-5);
            prop_assert_eq!(got.top.iter().map(|t| t.0).collect::<Vec<_>>(), ids);
            for (id, p) in got.top {
                prop_assert!((f64::from(p) - (f64::from(logits[id as usize]) - sum.ln())).abs() < 1e-5);
            }
        }
    }
}
