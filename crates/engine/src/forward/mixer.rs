//! A layer's mixer: from the normed stream to what is added to it.

use smallvec::smallvec;
use turbospark_model::{
    Attention, DeltaGates, DeltaNet, KeyValues, LatentAttention, LatentQuery, Layer, Mixer,
};

use super::{Batch, Forward, Row, Together, first_of_feed_forward};
use crate::device::{Attend, Device};

impl<D: Device> Forward<D> {
    /// `x += residual_scale * post_norm(mixer(norm(x)))`; afterwards the stream has only the batch's kept rows.
    pub(super) fn mixer(&mut self, layer: &Layer, index: usize, batch: &mut Batch<'_, '_, D::Cache>) {
        let b = &mut self.buffers;
        self.device.norm(&layer.mixer_norm, &b.x, &mut b.normed);
        let out = match &layer.mixer {
            Mixer::Attention(a) => {
                self.attention(a, index, batch);
                &a.o
            }
            Mixer::Latent(a) => {
                self.latent(a, index, batch);
                &a.o
            }
            Mixer::Delta(d) => {
                self.delta(d, index, batch);
                &d.out
            }
        };
        let b = &mut self.buffers;
        self.device.expect(&first_of_feed_forward(&layer.feed_forward));
        self.device.linear(&b.attended, &mut [(out, &mut b.branch)]);
        if let Some(norm) = &layer.mixer_post_norm {
            self.device.norm_in_place(norm, &mut b.branch);
        }
        self.device.add(&mut b.x, &b.branch, layer.residual_scale);
    }

    fn attention(&mut self, a: &Attention, index: usize, batch: &mut Batch<'_, '_, D::Cache>) {
        let (device, b) = (&mut self.device, &mut self.buffers);
        device.expect(&[&a.o]);
        let own = match &a.kv {
            KeyValues::Own { k, v: Some(v), .. } => {
                device.linear(&b.normed, &mut [(&a.q, &mut b.q), (k, &mut b.k), (v, &mut b.v)]);
                true
            }
            KeyValues::Own { k, v: None, .. } => {
                device.linear(&b.normed, &mut [(&a.q, &mut b.q), (k, &mut b.k), (k, &mut b.v)]);
                true
            }
            KeyValues::OfLayer(_) => {
                device.linear(&b.normed, &mut [(&a.q, &mut b.q)]);
                false
            }
        };
        if a.output_gate {
            device.split(&b.q, a.head_dim, a.head_dim, &mut b.up, &mut b.gate);
            std::mem::swap(&mut b.q, &mut b.up);
        }
        if let Some(norm) = &a.q_norm {
            device.norm_in_place(norm, &mut b.q);
        }
        if let KeyValues::Own { k_norm, v_norm, .. } = &a.kv {
            for (norm, x) in [(k_norm, &mut b.k), (v_norm, &mut b.v)] {
                if let Some(norm) = norm {
                    device.norm_in_place(norm, x);
                }
            }
        }
        if let Some(rope) = &a.rope {
            device.rope(rope, a.head_dim, &mut b.q);
            if own {
                device.rope(rope, a.head_dim, &mut b.k);
            }
        }
        if let Some(temperature) = &a.temperature {
            device.temperature(temperature, batch.rows, &mut b.q);
        }
        let layer = match a.kv {
            KeyValues::Own { .. } => {
                device.cache(index, batch.rows, batch.caches, &b.k, Some(&b.v));
                index
            }
            KeyValues::OfLayer(layer) => layer,
        };
        let attend = Attend { layer, n_heads: a.n_heads, scale: a.scale, window: a.window, sinks: a.sinks };
        self.attend(&attend, batch, a.output_gate);
        if a.output_gate {
            self.device.gate(&mut self.buffers.attended, &self.buffers.gate);
        }
    }

    /// Narrows the batch to the rows that matter and lets them attend, from `q` to `attended`.
    fn attend(&mut self, attend: &Attend, batch: &mut Batch<'_, '_, D::Cache>, gated: bool) {
        let (device, b) = (&mut self.device, &mut self.buffers);
        let kept: Vec<Row>;
        let rows = match batch.keep {
            Some(wanted) => {
                device.keep(&mut b.x, wanted);
                device.keep(&mut b.q, wanted);
                device.keep(&mut b.side, wanted);
                if gated {
                    device.keep(&mut b.gate, wanted);
                }
                kept = wanted.iter().map(|&w| batch.rows[w]).collect();
                &kept
            }
            None => batch.rows,
        };
        device.attend(attend, rows, batch.caches, &b.q, &mut b.attended);
    }

    /// Latent attention: the cached row is `[compressed, turned]`, a query head the same through `k_up`.
    fn latent(&mut self, a: &LatentAttention, index: usize, batch: &mut Batch<'_, '_, D::Cache>) {
        let (device, b) = (&mut self.device, &mut self.buffers);
        match &a.q {
            LatentQuery::Direct(q) => device.linear(&b.normed, &mut [(q, &mut b.q), (&a.kv, &mut b.k)]),
            LatentQuery::LowRank { down, norm, up } => {
                device.linear(&b.normed, &mut [(down, &mut b.up), (&a.kv, &mut b.k)]);
                device.norm_in_place(norm, &mut b.up);
                device.linear(&b.up, &mut [(up, &mut b.q)]);
            }
        }
        device.split(&b.k, a.rank, a.rope_dim, &mut b.v, &mut b.narrow);
        device.norm_in_place(&a.kv_norm, &mut b.v);
        device.rope(&a.rope, a.rope_dim, &mut b.narrow);
        device.join((&b.v, a.rank), (&b.narrow, a.rope_dim), &mut b.k);
        device.cache(index, batch.rows, batch.caches, &b.k, None);

        device.split(&b.q, a.nope_dim, a.rope_dim, &mut b.up, &mut b.gate);
        device.rope(&a.rope, a.rope_dim, &mut b.gate);
        device.stacked(&a.k_up, &b.up, &mut b.v);
        device.join((&b.v, a.rank), (&b.gate, a.rope_dim), &mut b.q);
        let attend = Attend { layer: index, n_heads: a.n_heads, scale: a.scale, window: None, sinks: None };
        self.attend(&attend, batch, false);
        let b = &mut self.buffers;
        std::mem::swap(&mut b.attended, &mut b.v);
        self.device.stacked(&a.v_up, &b.v, &mut b.attended);
    }

    fn delta(&mut self, d: &DeltaNet, index: usize, batch: &mut Batch<'_, '_, D::Cache>) {
        let (device, b) = (&mut self.device, &mut self.buffers);
        let second = match &d.gates {
            DeltaGates::Split { beta, alpha } => {
                let outputs =
                    &mut [(&d.qkv, &mut b.q), (&d.z, &mut b.gate), (beta, &mut b.narrow), (alpha, &mut b.k)];
                device.linear(&b.normed, outputs);
                Some(&b.k)
            }
            DeltaGates::PerKeyHead(both) => {
                let outputs = &mut [(&d.qkv, &mut b.q), (&d.z, &mut b.gate), (both, &mut b.narrow)];
                device.linear(&b.normed, outputs);
                None
            }
        };
        let gates = (&b.narrow, second);
        device.delta(d, index, batch.rows, batch.caches, &mut b.q, gates, &mut b.attended);
        if let Some(wanted) = batch.keep {
            for buffer in [&mut b.x, &mut b.attended, &mut b.gate, &mut b.side] {
                device.keep(buffer, wanted);
            }
        }
        device.gated_norm(&d.norm, &mut b.attended, &b.gate);
    }
}

/// The projections of an attention layer's input.
pub(super) fn projections(a: &Attention) -> Together<'_> {
    match &a.kv {
        KeyValues::Own { k, v: Some(v), .. } => smallvec![&a.q, k, v],
        KeyValues::Own { k, v: None, .. } => smallvec![&a.q, k],
        KeyValues::OfLayer(_) => smallvec![&a.q],
    }
}
