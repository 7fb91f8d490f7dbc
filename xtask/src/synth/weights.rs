//! Random weights as fast as a disk takes them: a pool of encoded blocks a format and distribution, from which each
//! tensor copies runs that begin at random places.
//!
//! Invariant: nothing of the model's size is held in memory; the bytes depend on the seed and the tensor's place alone,
//! and on no arithmetic that differs between platforms.

use std::io::{self, Write};

use anyhow::Result;
use turbospark_engine::SplitMix64;
use turbospark_format::{BlockType, quantize};

use super::shape::{Law, Tensor};

/// The pools that the tensors of a model need.
pub(super) struct Pools {
    pools: Vec<Pool>,
    seed: u64,
}

struct Pool {
    block_type: BlockType,
    law: Law,
    bytes: Vec<u8>,
}

/// Blocks of a pool. A prime, so that the rows of a run, each some whole number of blocks, begin at different places.
fn pool_blocks(ty: BlockType) -> usize {
    match ty.block_len() {
        1 => 1_048_573,
        32 => 131_071,
        _ => 16_381,
    }
}

impl Pools {
    /// Draws and encodes what the tensors are copied from.
    pub(super) fn new(tensors: &[Tensor], seed: u64) -> Result<Self> {
        let mut pools: Vec<Pool> = Vec::new();
        let mut random = SplitMix64::new(seed);
        for t in tensors {
            if pools.iter().all(|p| !p.serves(t)) {
                let values = pool_blocks(t.block_type) * t.block_type.block_len();
                let values: Vec<f32> = (0..values).map(|_| normal(&mut random, t.law)).collect();
                let bytes = quantize(t.block_type, &values)?;
                pools.push(Pool { block_type: t.block_type, law: t.law, bytes });
            }
        }
        Ok(Self { pools, seed })
    }

    /// Writes the data of tensor number `index`; `progress` is told the bytes of each run.
    pub(super) fn fill(
        &self,
        t: &Tensor,
        index: usize,
        out: &mut dyn Write,
        progress: impl Fn(u64),
    ) -> io::Result<()> {
        let Some(pool) = self.pools.iter().find(|p| p.serves(t)) else {
            return Err(io::Error::other(format!("no pool was made for {}", t.name)));
        };
        let blocks = pool_blocks(t.block_type);
        // Tensors take sequences far apart: the generator adds an odd number, of which this one is no multiple.
        let mut random = SplitMix64::new(self.seed ^ ((index as u64 + 1) << 40));
        let mut left = t.blocks();
        while left > 0 {
            let run = left.min(blocks as u64);
            let start = random.below(blocks as u64) as usize * t.block_type.block_bytes();
            let bytes = run as usize * t.block_type.block_bytes();
            let (head, tail) = (&pool.bytes[start..], &pool.bytes[..start]);
            let from_head = bytes.min(head.len());
            out.write_all(&head[..from_head])?;
            out.write_all(&tail[..bytes - from_head])?;
            progress(bytes as u64);
            left -= run;
        }
        Ok(())
    }
}

impl Pool {
    fn serves(&self, t: &Tensor) -> bool {
        self.block_type == t.block_type && self.law == t.law
    }
}

/// A nearly normal value: the sum of six uniform ones (Irwin-Hall), within 4.2 deviations of the mean.
fn normal(random: &mut SplitMix64, law: Law) -> f32 {
    let mut three = || {
        let bits = random.below(1 << 48);
        (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32)
    };
    // Each summand has mean 2^15 - 1/2 and variance 2^32 / 12, so that six have the variance 2^31.
    let centred = (three() + three()) as f32 - 6.0 * 32_767.5;
    law.mean + law.deviation * centred / 46_340.95
}
