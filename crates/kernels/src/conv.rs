//! The short causal convolution before a gated delta net.
//!
//! A channel is one chain of fused multiply-adds over its taps, oldest first, whatever the rows beside it: inputs before the
//! call's first row come from the state, the same ones that a longer call would have found in its rows.

use crate::cpu::{Cpu, Isa};
use crate::delta::{DeltaShape, DeltaState};
use crate::pool::SharedMut;
use crate::scalar;
use std::cell::Cell;

/// Channels that a step of the convolution takes together.
const CONV_BLOCK: usize = 512;
/// Elements of a convolution below which it stays on the calling thread.
const SERIAL: usize = 4096;

thread_local! {
    /// Taps and inputs of a step, kept from call to call.
    static BUFFER: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
}

impl Cpu {
    /// A causal convolution of every channel over positions, then SiLU, in place: `x[t, c]` becomes
    /// `silu(Σ_j weight[c, j] · x[t - conv_width + 1 + j, c])`. `x` is `[rows, channels]`, `weight` `[channels, conv_width]`; inputs
    /// before the first row come from `state`, which keeps the last ones.
    ///
    /// # Panics
    /// Where a length or the state's shape disagrees with `shape`.
    pub fn delta_conv(&self, shape: &DeltaShape, state: &mut DeltaState, weight: &[f32], x: &mut [f32]) {
        let (channels, width) = (shape.channels(), shape.conv_width);
        assert_eq!(state.shape, *shape, "a state of another shape");
        assert_eq!(weight.len(), channels * width, "convolution weight of the wrong length");
        assert!(x.len().is_multiple_of(channels), "convolution of the wrong shape");
        let rows = x.len() / channels;
        let (x, tail) = (SharedMut::new(x), SharedMut::new(&mut state.conv));
        let isa = self.isa;
        let least = CONV_BLOCK * (SERIAL / CONV_BLOCK).div_ceil(rows.max(1));
        self.split(channels, least, &|part| {
            let mut buffer = BUFFER.take();
            buffer.resize(2 * width * CONV_BLOCK, 0.0);
            for start in part.clone().step_by(CONV_BLOCK) {
                let n = CONV_BLOCK.min(part.end - start);
                let (taps, ring) = buffer[..2 * width * n].split_at_mut(width * n);
                transpose(isa, &weight[start * width..(start + n) * width], width, taps);
                for (at, inputs) in ring.chunks_exact_mut(n).take(width - 1).enumerate() {
                    // SAFETY: the channels of a part are its own.
                    inputs.copy_from_slice(unsafe { tail.slice(at * channels + start, n) });
                }
                for row in 0..rows {
                    // SAFETY: as above.
                    let x = unsafe { x.slice(row * channels + start, n) };
                    let newest = (row + width - 1) % width;
                    match isa {
                        #[cfg(target_arch = "x86_64")]
                        // SAFETY: this set is chosen only where the processor has it.
                        Isa::Avx2 if n.is_multiple_of(8) => unsafe {
                            crate::avx2::delta::conv_step(taps, ring, newest, x);
                        },
                        _ => scalar::conv_step(taps, ring, newest, x),
                    }
                }
                for at in 0..width - 1 {
                    let inputs = &ring[(rows + at) % width * n..][..n];
                    // SAFETY: as above.
                    unsafe { tail.slice(at * channels + start, n) }.copy_from_slice(inputs);
                }
            }
            BUFFER.set(buffer);
        });
    }
}

/// `[n, width]` to `[width, n]`.
fn transpose(isa: Isa, from: &[f32], width: usize, to: &mut [f32]) {
    let n = from.len() / width;
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this set is chosen only where the processor has it.
        Isa::Avx2 if width == 4 && n.is_multiple_of(8) => unsafe { crate::avx2::delta::transpose4(from, to) },
        _ => {
            for (c, taps) in from.chunks_exact(width).enumerate() {
                taps.iter().enumerate().for_each(|(tap, w)| to[tap * n + c] = *w);
            }
        }
    }
}
