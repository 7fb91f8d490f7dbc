//! What the forward pass's buffers take: the memory plan counts by it.
//!
//! Invariant: [`widths`] follows the operations of `mixer.rs` and `feed_forward.rs`. A test runs every fixture and compares what the
//! buffers then hold with what is counted here, to the byte.

use turbospark_model::{
    Attention, DeltaGates, FeedForward, KeyValues, LatentQuery, Layer, Linear, Mixer, ModelSpec,
};

use super::{Buffers, HEAD_ROWS, Row};

/// Bytes of the buffers, and of what is noted about each row, for batches of `rows` rows.
pub(crate) fn buffer_bytes(spec: &ModelSpec, rows: usize) -> u64 {
    let head = HEAD_ROWS.min(rows) * (spec.hidden + spec.n_vocab);
    let floats = rows as u64 * widths(spec).floats() + head as u64;
    // A row of the batch, its token, its place in attention, whether it is wanted, and its routes twice.
    let top_k = spec.layers.iter().map(|l| routed(l).map_or(0, |m| m.top_k)).max().unwrap_or(0);
    let noted = 2 * size_of::<Row>() + 4 * size_of::<usize>() + 3 * top_k * size_of::<u32>();
    floats * size_of::<f32>() as u64 + (rows * noted) as u64
}

fn routed(layer: &Layer) -> Option<&turbospark_model::Moe> {
    match &layer.feed_forward {
        FeedForward::Moe(moe) => Some(moe),
        FeedForward::Dense(_) => None,
    }
}

/// Buffers at the end of [`Buffers::each`] that have few rows.
const FEW_ROWS: usize = 2;

impl<B> Buffers<B> {
    /// All of them.
    fn each(&self) -> [&B; 15] {
        let Buffers {
            x,
            normed,
            branch,
            q,
            k,
            v,
            attended,
            gate,
            up,
            narrow,
            shared_in,
            shared,
            side,
            picked,
            logits,
        } = self;
        [x, normed, branch, q, k, v, attended, gate, up, narrow, shared_in, shared, side, picked, logits]
    }
}

impl Buffers<usize> {
    /// The sum of the widths, without the buffers that have few rows.
    fn floats(&self) -> u64 {
        let each = self.each();
        each[..each.len() - FEW_ROWS].iter().map(|&&width| width as u64).sum()
    }

    fn widen(&mut self, other: &Buffers<usize>) {
        let Buffers {
            x,
            normed,
            branch,
            q,
            k,
            v,
            attended,
            gate,
            up,
            narrow,
            shared_in,
            shared,
            side,
            picked,
            logits,
        } = self;
        for (mine, other) in
            [x, normed, branch, q, k, v, attended, gate, up, narrow, shared_in, shared, side, picked, logits]
                .into_iter()
                .zip(other.each())
        {
            *mine = (*mine).max(*other);
        }
    }
}

/// The widest that each buffer gets.
fn widths(spec: &ModelSpec) -> Buffers<usize> {
    let hidden = spec.hidden;
    let mut widest = Buffers {
        x: hidden,
        normed: hidden,
        branch: hidden,
        picked: hidden,
        logits: spec.n_vocab,
        ..Buffers::default()
    };
    if let Some(side) = &spec.side {
        let width = spec.layers.len() * side.width;
        widest.widen(&Buffers { up: width, side: width, ..Buffers::default() });
    }
    let (mut gated, mut latent) = (false, false);
    for layer in &spec.layers {
        widest.widen(&match &layer.mixer {
            Mixer::Attention(a) => attention(a),
            Mixer::Latent(a) => {
                let low_rank = |q: &LatentQuery| match q {
                    LatentQuery::Direct(_) => 0,
                    LatentQuery::LowRank { down, .. } => down.rows,
                };
                Buffers {
                    q: a.n_heads * (a.nope_dim.max(a.rank) + a.rope_dim),
                    k: a.rank + a.rope_dim,
                    v: a.rank.max(a.n_heads * a.rank),
                    attended: a.n_heads * a.rank.max(a.v_dim),
                    gate: a.n_heads * a.rope_dim,
                    up: low_rank(&a.q).max(a.n_heads * a.nope_dim),
                    narrow: a.rope_dim,
                    ..Buffers::default()
                }
            }
            Mixer::Delta(d) => {
                let (narrow, k) = match &d.gates {
                    DeltaGates::Split { beta, alpha } => (beta.rows, alpha.rows),
                    DeltaGates::PerKeyHead(both) => (both.rows, 0),
                };
                let (q, gate) = (d.qkv.rows, d.z.rows);
                Buffers { q, k, attended: d.n_v_heads * d.v_dim, gate, narrow, ..Buffers::default() }
            }
        });
        gated |= matches!(&layer.mixer, Mixer::Attention(a) if a.output_gate);
        latent |= matches!(&layer.mixer, Mixer::Latent(_));
        widest.widen(&feed_forward(layer, hidden));
        if let Some(side) = &layer.side {
            widest.widen(&Buffers { gate: side.gate.rows, ..Buffers::default() });
        }
    }
    // Buffers that are swapped: each gets to be the other.
    if gated {
        (widest.q, widest.up) = (widest.q.max(widest.up), widest.q.max(widest.up));
    }
    if latent {
        let both = widest.attended.max(widest.v);
        (widest.attended, widest.v) = (both, both);
    }
    widest
}

fn attention(a: &Attention) -> Buffers<usize> {
    let rows = |l: &Linear| l.rows;
    let (k, v) = match &a.kv {
        KeyValues::Own { k, v, .. } => (rows(k), v.as_ref().map_or(rows(k), rows)),
        KeyValues::OfLayer(_) => (0, 0),
    };
    let gate = if a.output_gate { a.n_heads * a.head_dim } else { 0 };
    Buffers { q: a.q.rows, k, v, attended: a.n_heads * a.v_dim, gate, up: gate, ..Buffers::default() }
}

fn feed_forward(layer: &Layer, hidden: usize) -> Buffers<usize> {
    match &layer.feed_forward {
        FeedForward::Dense(d) => Buffers { gate: d.width, up: d.width, ..Buffers::default() },
        FeedForward::Moe(m) => {
            let mut widths = Buffers { narrow: m.n_experts, ..Buffers::default() };
            if m.router.norm.is_some() {
                widths.shared_in = hidden;
            }
            if let Some(shared) = &m.shared {
                let width = shared.network.width;
                let input = if shared.norm.is_some() { hidden } else { 0 };
                let own = Buffers {
                    gate: width,
                    up: width,
                    shared: hidden,
                    shared_in: input,
                    ..Buffers::default()
                };
                widths.widen(&own);
            }
            widths
        }
    }
}

#[cfg(test)]
impl super::Forward<crate::device::CpuDevice> {
    /// Bytes that the buffers of activations hold, and those of the device.
    pub(crate) fn held_bytes(&self) -> (u64, u64) {
        (self.buffers.each().iter().map(|b| b.bytes() as u64).sum(), self.device.scratch_held() as u64)
    }
}
