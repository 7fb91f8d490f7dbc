//! What the CPU device's scratch takes besides the forward pass's buffers: the memory plan counts by it.
//!
//! Invariant: it is never less than what the operations of this folder allocate; a test runs every fixture and compares.

use turbospark_format::{BlockType, Gguf};
use turbospark_kernels::{AttnScratch, MatScratch, RopeRows};
use turbospark_model::{
    Attention, DeltaGates, DenseFeedForward, FeedForward, KeyValues, LatentAttention, LatentQuery, Layer,
    Linear, Mixer, ModelSpec, Moe, Rope, Stack, TensorRef,
};

use super::cache::delta_shape;
use super::moe::MoeState;

/// Bytes that batches of `rows` rows take on `threads` threads.
pub(crate) fn scratch_bytes(spec: &ModelSpec, gguf: &Gguf, rows: usize, threads: usize) -> u64 {
    let mut most = Most { gguf, rows, quantized: 0, picked: 0, heads: 0 };
    let mut ropes: Vec<&Rope> = Vec::new();
    let (mut attention, mut moe, mut per_thread) = (0, 0, 0);
    for layer in &spec.layers {
        let rope = match &layer.mixer {
            Mixer::Attention(a) => {
                most.attention(a);
                attention = attention.max(AttnScratch::bytes_for(
                    threads,
                    a.n_heads,
                    a.n_kv_heads,
                    a.head_dim,
                    a.v_dim,
                ));
                a.rope.as_ref()
            }
            Mixer::Latent(a) => {
                most.latent(a);
                attention =
                    attention.max(AttnScratch::bytes_for(threads, a.n_heads, 1, a.rank + a.rope_dim, a.rank));
                Some(&a.rope)
            }
            Mixer::Delta(d) => {
                let gates = match &d.gates {
                    DeltaGates::Split { beta, alpha } => vec![beta, alpha],
                    DeltaGates::PerKeyHead(both) => vec![both],
                };
                gates.into_iter().chain([&d.qkv, &d.z, &d.out]).for_each(|l| most.linear(l));
                per_thread = per_thread.max(delta_shape(d).bytes_per_thread());
                None
            }
        };
        ropes.extend(rope.filter(|r| !ropes.contains(r)));
        most.feed_forward(layer);
        if let FeedForward::Moe(m) = &layer.feed_forward {
            moe = moe.max(MoeState::bytes_for(m, rows));
        }
    }
    if let Some(side) = &spec.side {
        most.linear(&side.projection);
    }
    most.linear(&spec.head.projection);
    let ropes: usize = ropes.iter().map(|r| RopeRows::bytes_for(rows, r.dims / 2)).sum();
    (ropes + attention + moe + per_thread * threads + most.bytes()) as u64
}

/// The largest inputs of matrix products.
struct Most<'a> {
    gguf: &'a Gguf,
    rows: usize,
    /// Bytes of quantised rows.
    quantized: usize,
    /// Floats of rows that were put side by side.
    picked: usize,
    /// Floats of the outputs of stacks.
    heads: usize,
}

impl Most<'_> {
    fn bytes(&self) -> usize {
        self.quantized + size_of::<f32>() * (self.picked + self.heads)
    }

    /// A product of `rows` rows of `k` elements.
    fn product(&mut self, weight: TensorRef, rows: usize, k: usize, picked: bool) {
        let kind = self.gguf.tensors()[weight.index].block_type;
        if !matches!(kind, BlockType::F32 | BlockType::F16 | BlockType::BF16) {
            self.quantized = self.quantized.max(MatScratch::bytes_for(rows, k));
        } else if picked {
            self.picked = self.picked.max(rows * k);
        }
    }

    fn linear(&mut self, linear: &Linear) {
        self.product(linear.weight, self.rows, linear.columns, false);
    }

    fn stack(&mut self, stack: &Stack) {
        self.product(stack.weight, self.rows * stack.n, stack.columns, true);
        self.heads = self.heads.max(self.rows * stack.n * stack.rows);
    }

    fn attention(&mut self, a: &Attention) {
        self.linear(&a.q);
        self.linear(&a.o);
        if let KeyValues::Own { k, v, .. } = &a.kv {
            self.linear(k);
            v.iter().for_each(|v| self.linear(v));
        }
    }

    fn latent(&mut self, a: &LatentAttention) {
        match &a.q {
            LatentQuery::Direct(q) => self.linear(q),
            LatentQuery::LowRank { down, up, .. } => [down, up].into_iter().for_each(|l| self.linear(l)),
        }
        [&a.kv, &a.o].into_iter().for_each(|l| self.linear(l));
        [&a.k_up, &a.v_up].into_iter().for_each(|s| self.stack(s));
    }

    fn dense(&mut self, d: &DenseFeedForward) {
        [&d.gate, &d.up, &d.down].into_iter().for_each(|l| self.linear(l));
    }

    fn feed_forward(&mut self, layer: &Layer) {
        match &layer.feed_forward {
            FeedForward::Dense(d) => self.dense(d),
            FeedForward::Moe(m) => self.moe(m),
        }
        if let Some(side) = &layer.side {
            [&side.gate, &side.up].into_iter().for_each(|l| self.linear(l));
        }
    }

    fn moe(&mut self, m: &Moe) {
        let slots = MoeState::slots_at_a_time(self.rows, m.top_k);
        self.product(m.gate.weight, slots, m.gate.columns, true);
        self.product(m.up.weight, slots, m.up.columns, true);
        self.product(m.down.weight, slots, m.down.columns, false);
        self.linear(&m.router.projection);
        if let Some(shared) = &m.shared {
            self.dense(&shared.network);
            shared.gate.iter().for_each(|g| self.linear(g));
        }
    }
}
