//! Activations quantised to int8, the form in which rows meet quantised weights.
//!
//! A row is cut into blocks of 32. A block keeps a scale `d = max|x| / 127`, codes `q = round(x / d)` (ties to even),
//! the sums of the codes of its two halves, and those sums times `d`. A block that holds an infinity or a NaN gets
//! `d = NaN`, so the fault reaches the output instead of vanishing in a saturated code.

use crate::cpu::{Cpu, Isa};
use crate::pool::SharedMut;

/// Elements in a block of activations.
pub(crate) const BLOCK: usize = 32;

/// Rows of activations, quantised. `[m, k]` codes with `k / 32` blocks a row.
#[derive(Default)]
pub(crate) struct QuantRows {
    pub(crate) m: usize,
    pub(crate) k: usize,
    /// `[m, k]` codes in -127..=127.
    pub(crate) q: Vec<i8>,
    /// `[m, k / 32]` scales.
    pub(crate) d: Vec<f32>,
    /// `[m, k / 32]` pairs of code sums, one a half block.
    pub(crate) sums: Vec<[i16; 2]>,
    /// `[m, k / 32, 3]`: `d` times the sum of the first half, of the second, of both.
    pub(crate) scaled: Vec<[f32; 3]>,
}

/// One block's results, written through the parts that a task owns.
pub(crate) struct BlockOut<'a> {
    pub(crate) q: &'a mut [i8],
    pub(crate) d: &'a mut f32,
    pub(crate) sums: &'a mut [i16; 2],
    pub(crate) scaled: &'a mut [f32; 3],
}

impl QuantRows {
    /// Bytes of `m` rows of `k` elements.
    pub(crate) fn bytes_for(m: usize, k: usize) -> usize {
        let block = BLOCK + size_of::<f32>() + size_of::<[i16; 2]>() + size_of::<[f32; 3]>();
        m.saturating_mul(k / BLOCK).saturating_mul(block)
    }

    /// Bytes held now.
    pub(crate) fn bytes(&self) -> usize {
        self.q.capacity()
            + self.d.capacity() * size_of::<f32>()
            + self.sums.capacity() * size_of::<[i16; 2]>()
            + self.scaled.capacity() * size_of::<[f32; 3]>()
    }

    /// Replaces the contents by `m` rows of `x` `[_, k]`: those that `picked` lists, or all. `k` must be a multiple of 32.
    pub(crate) fn fill(&mut self, cpu: &Cpu, x: &[f32], picked: Option<&[u32]>, m: usize, k: usize) {
        let blocks = k / BLOCK;
        assert!(k.is_multiple_of(BLOCK), "activations of the wrong shape");
        (self.m, self.k) = (m, k);
        resize(&mut self.q, m * k, 0);
        resize(&mut self.d, m * blocks, 0.0);
        resize(&mut self.sums, m * blocks, [0; 2]);
        resize(&mut self.scaled, m * blocks, [0.0; 3]);
        let (q, d) = (SharedMut::new(&mut self.q), SharedMut::new(&mut self.d));
        let (sums, scaled) = (SharedMut::new(&mut self.sums), SharedMut::new(&mut self.scaled));
        let isa = cpu.isa;
        // 4,096 elements take under a microsecond: fewer are not worth a region.
        let step = (4096 / BLOCK).max(1);
        cpu.split(m * blocks, step, &|part| {
            // A part may begin and end within a row.
            let rows = part.start / blocks..part.end.div_ceil(blocks);
            for row in rows {
                let start = part.start.max(row * blocks);
                let n = part.end.min((row + 1) * blocks) - start;
                // SAFETY: parts of one split are disjoint, and the vectors stay borrowed until it returns.
                let (q, d, sums, scaled) = unsafe {
                    (
                        q.slice(start * BLOCK, n * BLOCK),
                        d.slice(start, n),
                        sums.slice(start, n),
                        scaled.slice(start, n),
                    )
                };
                let from = picked.map_or(row, |p| p[row] as usize);
                let x = &x[(from * blocks + start - row * blocks) * BLOCK..][..n * BLOCK];
                match isa {
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: this set is chosen only where the processor has it.
                    Isa::Avx2 => unsafe { crate::avx2::quantize::blocks(x, q, d, sums, scaled) },
                    _ => {
                        for (b, x) in x.chunks_exact(BLOCK).enumerate() {
                            crate::scalar::quantize_block(
                                x,
                                &mut BlockOut {
                                    q: &mut q[b * BLOCK..(b + 1) * BLOCK],
                                    d: &mut d[b],
                                    sums: &mut sums[b],
                                    scaled: &mut scaled[b],
                                },
                            );
                        }
                    }
                }
            }
        });
    }
}

/// Resizes without room to spare: what is held is what the largest contents took.
fn resize<T: Clone>(x: &mut Vec<T>, len: usize, value: T) {
    x.reserve_exact(len.saturating_sub(x.len()));
    x.resize(len, value);
}
