//! One page of attention, one element at a time.

use crate::attention::PageJob;
use crate::kv::PageData;
use crate::scalar::dot::sum8;
use crate::scalar::exp;
use half::f16;

/// For each query: scores as one chain of fused multiply-adds over the head (eight chains where keys lie in rows, added as a
/// tree), weights `exp(score - maximum)`, their sum in
/// eight chains by position modulo eight, and the weighted values as one chain over positions.
pub(crate) fn attend_page(job: &mut PageJob<'_>) {
    let (k_dim, v_dim) = (job.k_dim, job.v_dim);
    let element = |at: usize, of_keys: bool| match (job.page, of_keys) {
        (PageData::F16 { k, .. }, true) => f16::from_bits(k[at]).to_f32(),
        (PageData::F16 { v, .. }, false) => f16::from_bits(v[at]).to_f32(),
        (PageData::F32 { k, .. }, true) => k[at],
        (PageData::F32 { v, .. }, false) => v[at],
    };
    for ((q, seen), out) in job.q.chunks(k_dim).zip(job.seen).zip(job.out.chunks_mut(v_dim + 2)) {
        let mut weights = [0.0_f32; crate::kv::PAGE];
        let mut maximum = f32::NEG_INFINITY;
        for p in seen.clone() {
            let score = if job.latent {
                let mut chains = [0.0_f32; 8];
                for d in 0..k_dim {
                    chains[d % 8] = q[d].mul_add(element(p * k_dim + d, true), chains[d % 8]);
                }
                sum8(chains)
            } else {
                let key = |d| element((p / 8 * k_dim + d) * 8 + p % 8, true);
                (0..k_dim).fold(0.0_f32, |acc, d| q[d].mul_add(key(d), acc))
            };
            weights[p] = score;
            maximum = if score > maximum || score.is_nan() { score } else { maximum };
        }
        let mut sums = [0.0_f32; 8];
        for p in seen.clone() {
            weights[p] = exp(weights[p] - maximum);
            sums[p % 8] += weights[p];
        }
        out.fill(0.0);
        for p in seen.clone() {
            for (d, o) in out[..v_dim].iter_mut().enumerate() {
                let at = if job.latent { p * k_dim + d } else { p * v_dim + d };
                *o = weights[p].mul_add(element(at, job.latent), *o);
            }
        }
        out[v_dim] = maximum;
        out[v_dim + 1] = sum8(sums);
    }
}

/// Adds a page's part to the total of the pages before it. Both are `[v_dim values, maximum, sum]`. Inlined, so that a
/// caller compiled for wider registers gets them; the products are not fused there either.
#[inline(always)]
pub(crate) fn merge_parts(total: &mut [f32], part: &[f32]) {
    let v_dim = part.len() - 2;
    let maximum = if part[v_dim] > total[v_dim] { part[v_dim] } else { total[v_dim] };
    // One of the two factors is exactly 1.
    let (old, new) = if part[v_dim] > total[v_dim] {
        (exp(total[v_dim] - part[v_dim]), 1.0)
    } else {
        (1.0, exp(part[v_dim] - total[v_dim]))
    };
    for (t, p) in total[..v_dim].iter_mut().zip(part) {
        *t = *t * old + p * new;
    }
    total[v_dim] = maximum;
    total[v_dim + 1] = total[v_dim + 1] * old + part[v_dim + 1] * new;
}
