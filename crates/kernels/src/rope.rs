//! Rotary position embedding (Su et al. 2021).
//!
//! Angles are computed once for a batch of rows ([`RopeRows`]) and used by every layer with the same base. As in the
//! reference implementations, an angle is the f32 product of the position and the pair's f32 frequency.

use crate::cpu::Cpu;

/// Which elements of a head form a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Elements `2i` and `2i + 1`.
    Interleaved,
    /// Elements `i` and `i + rotated / 2` (NeoX).
    Halves,
}

/// Cosines and sines of a batch of rows, `[rows, pairs]` each.
#[derive(Default)]
pub struct RopeRows {
    pairs: usize,
    cos: Vec<f32>,
    sin: Vec<f32>,
}

impl RopeRows {
    /// Bytes of the angles of `rows` rows.
    pub fn bytes_for(rows: usize, pairs: usize) -> usize {
        2 * rows * pairs * size_of::<f32>()
    }

    /// Bytes held now.
    pub fn bytes(&self) -> usize {
        (self.cos.capacity() + self.sin.capacity()) * size_of::<f32>()
    }

    /// Replaces the contents by the angles of `positions`. `frequencies` has one entry a pair, in radians per position;
    /// `magnitude` scales both tables (YaRN's attention factor, otherwise 1).
    pub fn fill(&mut self, positions: impl IntoIterator<Item = usize>, frequencies: &[f32], magnitude: f32) {
        self.pairs = frequencies.len();
        self.cos.clear();
        self.sin.clear();
        let positions = positions.into_iter();
        let angles = positions.size_hint().0 * self.pairs;
        self.cos.reserve_exact(angles);
        self.sin.reserve_exact(angles);
        for position in positions {
            for f in frequencies {
                // Double precision: single-precision range reduction is off by more than the f32 angle's own rounding.
                let (sin, cos) = f64::from(position as f32 * f).sin_cos();
                self.cos.push(cos as f32 * magnitude);
                self.sin.push(sin as f32 * magnitude);
            }
        }
    }
}

impl Cpu {
    /// Rotates the first `2 · pairs` elements of each head of `x` `[rows, n_heads, head_dim]`.
    ///
    /// # Panics
    /// Where `x` has other rows than `angles`, or a head is shorter than the rotated part.
    pub fn rope(&self, x: &mut [f32], head_dim: usize, pairing: Pairing, angles: &RopeRows) {
        let pairs = angles.pairs;
        if pairs == 0 || angles.cos.is_empty() {
            return;
        }
        let rows = angles.cos.len() / pairs;
        assert!(
            2 * pairs <= head_dim && x.len().is_multiple_of(rows * head_dim),
            "rotary of the wrong shape"
        );
        let row_len = x.len() / rows;
        let shared = crate::pool::SharedMut::new(x);
        self.split(rows, 8192_usize.div_ceil(row_len), &|part| {
            for row in part {
                // SAFETY: parts of one split are disjoint rows.
                let heads = unsafe { shared.slice(row * row_len, row_len) };
                let cos = &angles.cos[row * pairs..(row + 1) * pairs];
                let sin = &angles.sin[row * pairs..(row + 1) * pairs];
                for x in heads.chunks_exact_mut(head_dim) {
                    rotate(&mut x[..2 * pairs], pairing, cos, sin);
                }
            }
        });
    }
}

/// Rotates one head's part. Each product is rounded on its own (no fused multiply-add), so every build gives the same bits.
fn rotate(part: &mut [f32], pairing: Pairing, cos: &[f32], sin: &[f32]) {
    let turn = |a: &mut f32, b: &mut f32, c: f32, s: f32| {
        let (x, y) = (*a, *b);
        *a = x * c - y * s;
        *b = x * s + y * c;
    };
    match pairing {
        Pairing::Interleaved => {
            for (pair, (c, s)) in part.as_chunks_mut::<2>().0.iter_mut().zip(cos.iter().zip(sin)) {
                let [a, b] = pair;
                turn(a, b, *c, *s);
            }
        }
        Pairing::Halves => {
            let (first, second) = part.split_at_mut(cos.len());
            for ((a, b), (c, s)) in first.iter_mut().zip(second).zip(cos.iter().zip(sin)) {
                turn(a, b, *c, *s);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_turn_by_position_times_frequency_and_the_rest_stays() {
        let mut angles = RopeRows::default();
        angles.fill([0, 3], &[0.5, 0.25], 1.0);
        let cpu = Cpu::new(1);
        for (pairing, partner) in [(Pairing::Interleaved, [1, 3]), (Pairing::Halves, [2, 3])] {
            let first = if pairing == Pairing::Interleaved { [0, 2] } else { [0, 1] };
            let mut x: Vec<f32> = (0..12).map(|i| i as f32 + 1.0).collect();
            let before = x.clone();
            cpu.rope(&mut x, 6, pairing, &angles);
            assert_eq!(x[..6], before[..6], "position 0 does not turn");
            for p in 0..2 {
                let angle = 3.0 * [0.5_f32, 0.25][p];
                let (a, b) = (before[6 + first[p]], before[6 + partner[p]]);
                assert!((x[6 + first[p]] - (a * angle.cos() - b * angle.sin())).abs() < 1e-5);
                assert!((x[6 + partner[p]] - (a * angle.sin() + b * angle.cos())).abs() < 1e-5);
            }
            assert_eq!(x[10..], before[10..], "elements past the rotated part stay");
        }
    }
}
