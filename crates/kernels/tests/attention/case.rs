//! A shape of attention with its data, computed by the library and by the definition. All data follow from indices, so two
//! caches of a case hold the same values however they were written.

use std::ops::Range;
use turbospark_kernels::{AttnParams, AttnRow, AttnScratch, Cpu, KvKind, KvLayer, Values};

const SCALE: f32 = 0.37;

pub(crate) fn value(seed: usize, i: usize) -> f32 {
    let mut z = (seed as u64 * 0x9e37_79b9 + i as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z >> 40) as f32 / (1 << 23) as f32 - 1.0
}

#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) kind: KvKind,
    pub(crate) n_heads: usize,
    pub(crate) n_kv: usize,
    pub(crate) k_dim: usize,
    pub(crate) values: Values,
    /// Whether query heads have sinks.
    pub(crate) sinks: bool,
    pub(crate) window: Option<usize>,
    pub(crate) positions: usize,
}

impl Case {
    pub(crate) fn v_dim(&self) -> usize {
        self.values.dim()
    }

    pub(crate) fn empty(&self) -> KvLayer {
        KvLayer::new(self.kind, self.n_kv, self.k_dim, self.values)
    }

    /// One logit per query head: far above, about and far below the scores.
    fn sinks(&self) -> Option<Vec<f32>> {
        self.sinks.then(|| (0..self.n_heads).map(|h| [95.0, 0.5, -2.0, -200.0][h % 4]).collect())
    }

    pub(crate) fn keys(&self) -> Vec<f32> {
        (0..self.positions * self.n_kv * self.k_dim).map(|i| value(1, i)).collect()
    }

    pub(crate) fn own_values(&self) -> Vec<f32> {
        let Values::Own(v_dim) = self.values else { return Vec::new() };
        (0..self.positions * self.n_kv * v_dim).map(|i| value(2, i)).collect()
    }

    pub(crate) fn cache(&self, cpu: &Cpu, step: usize) -> KvLayer {
        let mut kv = self.empty();
        for start in (0..self.positions).step_by(step) {
            self.write(cpu, &mut kv, start..(start + step).min(self.positions));
        }
        kv
    }

    /// Writes these positions of the case.
    pub(crate) fn write(&self, cpu: &Cpu, kv: &mut KvLayer, positions: Range<usize>) {
        let rows = |seed: usize, len: usize| -> Vec<f32> {
            (positions.start * len..positions.end * len).map(|i| value(seed, i)).collect()
        };
        let v_dim = if let Values::Own(dim) = self.values { dim } else { 0 };
        cpu.kv_write(kv, positions.start, &rows(1, self.n_kv * self.k_dim), &rows(2, self.n_kv * v_dim));
    }

    pub(crate) fn queries(&self, positions: &[usize]) -> Vec<f32> {
        let row = self.n_heads * self.k_dim;
        positions.iter().flat_map(|p| (0..row).map(move |i| 2.0 * value(3, p * row + i))).collect()
    }

    pub(crate) fn attend(&self, cpu: &Cpu, kv: &KvLayer, positions: &[usize]) -> Vec<f32> {
        let rows: Vec<_> = positions.iter().map(|&position| AttnRow { kv, position }).collect();
        let mut out = vec![f32::NAN; positions.len() * self.n_heads * self.v_dim()];
        self.attend_rows(cpu, &self.queries(positions), &rows, &mut out);
        out
    }

    pub(crate) fn attend_rows(&self, cpu: &Cpu, q: &[f32], rows: &[AttnRow<'_>], out: &mut [f32]) {
        let sinks = self.sinks();
        let params =
            AttnParams { n_heads: self.n_heads, scale: SCALE, window: self.window, sinks: sinks.as_deref() };
        cpu.attend(&mut AttnScratch::default(), &params, q, rows, out);
    }

    /// The definition, in double precision, on the values as cached.
    pub(crate) fn reference(&self, position: usize) -> Vec<f64> {
        let round = |x: f32| match self.kind {
            KvKind::F16 => f64::from(half::f16::from_f32(x).to_f32()),
            KvKind::F32 => f64::from(x),
        };
        let (k, v, q) = (self.keys(), self.own_values(), self.queries(&[position]));
        let from = self.window.map_or(0, |w| (position + 1).saturating_sub(w));
        let value = |p: usize, kv_head: usize, d: usize| match self.values {
            Values::Own(v_dim) => v[(p * self.n_kv + kv_head) * v_dim + d],
            Values::OfKeys(_) => k[(p * self.n_kv + kv_head) * self.k_dim + d],
        };
        let sinks = self.sinks();
        let mut out = Vec::new();
        for head in 0..self.n_heads {
            let kv_head = head / (self.n_heads / self.n_kv);
            let scores: Vec<f64> = (from..=position)
                .map(|p| {
                    (0..self.k_dim)
                        .map(|d| {
                            f64::from(q[head * self.k_dim + d])
                                * round(k[(p * self.n_kv + kv_head) * self.k_dim + d])
                        })
                        .sum::<f64>()
                        * f64::from(SCALE)
                })
                .collect();
            let sink = sinks.as_ref().map_or(f64::NEG_INFINITY, |s| f64::from(s[head]));
            let maximum = scores.iter().copied().fold(sink, f64::max);
            let weights: Vec<f64> = scores.iter().map(|s| (s - maximum).exp()).collect();
            let sum = weights.iter().sum::<f64>() + (sink - maximum).exp();
            for d in 0..self.v_dim() {
                let weighted =
                    weights.iter().enumerate().map(|(i, w)| w * round(value(from + i, kv_head, d)));
                out.push(weighted.sum::<f64>() / sum);
            }
        }
        out
    }
}
