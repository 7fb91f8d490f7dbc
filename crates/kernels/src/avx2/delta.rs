//! The gated delta rule eight value columns at a time, step for step as its scalar twin.

use super::math::{silu8, sum8};
use super::store;
use crate::delta::{Gate, Step};
use core::arch::x86_64::*;

/// As [`crate::scalar::delta_step`].
#[target_feature(enable = "avx2,fma")]
pub(crate) fn step(state: &mut [f32], q: &[f32], k: &[f32], s: &Step, x: &mut [f32]) {
    match state.len() / k.len() {
        8 => columns::<1>(state, q, k, s, x),
        16 => columns::<2>(state, q, k, s, x),
        24 => columns::<3>(state, q, k, s, x),
        32 => columns::<4>(state, q, k, s, x),
        other => unreachable!("a state tile of {other} columns"),
    }
}

/// `N` registers of columns. Four of them with two reads each are the eight chains that keep both multipliers busy.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn columns<const N: usize>(state: &mut [f32], q: &[f32], k: &[f32], s: &Step, x: &mut [f32]) {
    assert!(q.len() == k.len() && state.len() == k.len() * N * 8 && x.len().div_ceil(8) == N);
    let (mut held, mut read) = ([_mm256_setzero_ps(); N], [_mm256_setzero_ps(); N]);
    let state = state.as_mut_ptr();
    for (i, (k, q)) in k.iter().zip(q).enumerate() {
        let (k, q) = (_mm256_set1_ps(*k), _mm256_set1_ps(*q));
        for c in 0..N {
            // SAFETY: row `i` of the state is inside it, by the assertion.
            let value = unsafe { _mm256_loadu_ps(state.add((i * N + c) * 8)) };
            held[c] = _mm256_fmadd_ps(value, k, held[c]);
            read[c] = _mm256_fmadd_ps(value, q, read[c]);
        }
    }
    let decay = _mm256_set1_ps(s.decay);
    let mut change = [_mm256_setzero_ps(); N];
    for (c, x) in x.chunks_mut(8).enumerate() {
        let correction =
            _mm256_mul_ps(_mm256_set1_ps(s.beta), _mm256_fmadd_ps(_mm256_set1_ps(-s.held), held[c], load(x)));
        let y = _mm256_fmadd_ps(correction, _mm256_set1_ps(s.kq), _mm256_mul_ps(decay, read[c]));
        store(_mm256_mul_ps(_mm256_set1_ps(s.q_scale), y), x);
        change[c] = _mm256_mul_ps(correction, _mm256_set1_ps(s.k_scale));
    }
    for (i, k) in k.iter().enumerate() {
        let k = _mm256_set1_ps(*k);
        for c in 0..N {
            // SAFETY: as above.
            unsafe {
                let at = state.add((i * N + c) * 8);
                let value = _mm256_mul_ps(decay, _mm256_loadu_ps(at));
                _mm256_storeu_ps(at, _mm256_fmadd_ps(k, change[c], value));
            }
        }
    }
}

/// Up to eight floats, zeros in the other lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn load(x: &[f32]) -> __m256 {
    if x.len() == 8 {
        // SAFETY: eight floats.
        return unsafe { _mm256_loadu_ps(x.as_ptr()) };
    }
    let mut lanes = [0.0_f32; 8];
    lanes[..x.len()].copy_from_slice(x);
    // SAFETY: eight floats.
    unsafe { _mm256_loadu_ps(lanes.as_ptr()) }
}

/// [`Step::fill`] from the products of a query with a key.
#[target_feature(enable = "avx2,fma")]
pub(crate) fn prepare(q: &[f32], k: &[f32], eps: f32, gates: impl Iterator<Item = Gate>, out: &mut [Step]) {
    Step::fill(dots(q, k), q.len(), eps, gates, out);
}

/// As [`crate::scalar::delta_dots`].
#[inline]
#[target_feature(enable = "avx2,fma")]
fn dots(q: &[f32], k: &[f32]) -> [f32; 3] {
    let mut acc = [_mm256_setzero_ps(); 3];
    for (q, k) in q.chunks(8).zip(k.chunks(8)) {
        let (q, k) = (load(q), load(k));
        acc[0] = _mm256_fmadd_ps(q, q, acc[0]);
        acc[1] = _mm256_fmadd_ps(k, k, acc[1]);
        acc[2] = _mm256_fmadd_ps(q, k, acc[2]);
    }
    acc.map(|v| sum8(v))
}

/// As [`crate::scalar::conv_step`], for a multiple of eight channels.
#[target_feature(enable = "avx2,fma")]
pub(crate) fn conv_step(taps: &[f32], ring: &mut [f32], newest: usize, x: &mut [f32]) {
    match taps.len() / x.len() {
        // The released models' width: a loop of known length is unrolled.
        4 => conv(4, taps, ring, newest, x),
        width => conv(width, taps, ring, newest, x),
    }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn conv(width: usize, taps: &[f32], ring: &mut [f32], newest: usize, x: &mut [f32]) {
    let n = x.len();
    assert!(n.is_multiple_of(8) && newest < width && taps.len() == width * n && ring.len() == width * n);
    ring[newest * n..(newest + 1) * n].copy_from_slice(x);
    for c in (0..n).step_by(8) {
        // SAFETY: `c + 8 <= n`, and there are `width` rows of `n` in both.
        unsafe {
            let mut acc = _mm256_setzero_ps();
            let mut row = newest;
            for tap in 0..width {
                row = if row + 1 == width { 0 } else { row + 1 };
                let (w, x) = (taps.as_ptr().add(tap * n + c), ring.as_ptr().add(row * n + c));
                acc = _mm256_fmadd_ps(_mm256_loadu_ps(w), _mm256_loadu_ps(x), acc);
            }
            _mm256_storeu_ps(x.as_mut_ptr().add(c), silu8(acc));
        }
    }
}

/// `[n, 4]` to `[4, n]`, for a multiple of eight channels.
#[target_feature(enable = "avx2")]
pub(crate) fn transpose4(from: &[f32], to: &mut [f32]) {
    let n = from.len() / 4;
    assert!(n.is_multiple_of(8) && from.len() == 4 * n && to.len() == 4 * n);
    for c in (0..n).step_by(8) {
        // SAFETY: `c + 8 <= n`: 32 floats of `from`, eight in each row of `to`.
        unsafe {
            // Channels `i` and `i + 4` in the halves of a register.
            let [a, b, c0, d] = std::array::from_fn(|i| {
                let p = from.as_ptr().add((c + i) * 4);
                _mm256_set_m128(_mm_loadu_ps(p.add(16)), _mm_loadu_ps(p))
            });
            let (ab, ab_high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
            let (cd, cd_high) = (_mm256_unpacklo_ps(c0, d), _mm256_unpackhi_ps(c0, d));
            let rows = [
                _mm256_shuffle_ps::<0x44>(ab, cd),
                _mm256_shuffle_ps::<0xee>(ab, cd),
                _mm256_shuffle_ps::<0x44>(ab_high, cd_high),
                _mm256_shuffle_ps::<0xee>(ab_high, cd_high),
            ];
            for (tap, row) in rows.into_iter().enumerate() {
                _mm256_storeu_ps(to.as_mut_ptr().add(tap * n + c), row);
            }
        }
    }
}
