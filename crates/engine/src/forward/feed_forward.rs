//! A layer's feed-forward: dense networks, routed and shared experts, and the side branch.

use turbospark_experts::{Phase, RouteBatch};
use turbospark_model::{DenseFeedForward, FeedForward, Layer, Linear, Moe, Norm, SharedExpert, SideBranch};

use super::{Batch, Forward, PerExpert};
use crate::EngineError;
use crate::device::Device;

impl<D: Device> Forward<D> {
    /// `x += residual_scale * post_norm(feed_forward(norm(x)))`; `next` are the weights that the next layer reads first.
    pub(super) fn feed_forward(
        &mut self,
        layer: &Layer,
        index: usize,
        batch: &Batch<'_, '_, D::Cache>,
        next: &[&Linear],
    ) -> Result<(), EngineError> {
        let b = &mut self.buffers;
        self.device.norm(&layer.ff_norm, &b.x, &mut b.normed);
        match &layer.feed_forward {
            FeedForward::Dense(dense) => {
                let (input, out) = (&b.normed, &mut b.branch);
                network(&mut self.device, dense, input, &mut b.gate, &mut b.up, out, next);
            }
            FeedForward::Moe(moe) => self.moe(moe, index, batch, next)?,
        }
        let b = &mut self.buffers;
        if let Some(norm) = &layer.ff_post_norm {
            self.device.norm_in_place(norm, &mut b.branch);
        }
        self.device.add(&mut b.x, &b.branch, layer.residual_scale);
        Ok(())
    }

    fn moe(
        &mut self,
        moe: &Moe,
        index: usize,
        batch: &Batch<'_, '_, D::Cache>,
        next: &[&Linear],
    ) -> Result<(), EngineError> {
        let (device, b, router) = (&mut self.device, &mut self.buffers, &moe.router);
        let input = input_of(device, router.norm.as_ref(), &b.x, &b.normed, &mut b.shared_in);
        device.linear(input, &mut [(&router.projection, &mut b.narrow)]);
        device.scale(&mut b.narrow, router.logit_scale);
        device.route(router, moe.top_k, &b.narrow, &mut self.routes).map_err(|bad| {
            let row = batch.keep.map_or(bad.row, |kept| kept[bad.row]);
            let position = batch.rows[row].position;
            EngineError::BadRouting { layer: index, position, expert: bad.expert }
        })?;
        let (experts, rows) = distinct(&self.routes.experts);
        let routed = RouteBatch {
            phase: if batch.rows.len() > 1 { Phase::Prefill } else { Phase::Decode },
            layer: index as u32,
            n_rows: (self.routes.experts.len() / moe.top_k) as u32,
            experts: &experts,
            rows: &rows,
        };
        if let Some(sink) = &mut self.sink {
            sink.routed(&routed);
        }
        self.experts.request(&routed)?;
        if let Some((layer, experts)) = batch.ahead {
            self.hint(layer, experts);
        }
        if let Some((layer, next)) = batch.guess {
            self.guess(layer, next);
        }
        // While the experts that are missing are read.
        if let Some(shared) = &moe.shared {
            self.shared_expert(shared, next);
        }
        let (device, b) = (&mut self.device, &mut self.buffers);
        device.moe_begin(moe, &self.routes, &experts);
        while let Some(wave) = self.experts.next(batch.cancelled)? {
            device.moe_wave(moe, &b.normed, &experts, &wave);
        }
        device.moe_end(moe, &self.routes, &mut b.branch);
        if let Some(norm) = &moe.post_norm {
            device.norm_in_place(norm, &mut b.branch);
        }
        if moe.shared.is_some() {
            device.add(&mut b.branch, &b.shared, 1.0);
        }
        Ok(())
    }

    /// Lets the experts be read that `next`'s router chooses for the stream as it is now: what this layer still adds changes few
    /// choices.
    fn guess(&mut self, layer: usize, next: &Layer) {
        let FeedForward::Moe(moe) = &next.feed_forward else { return };
        let (device, b, router) = (&mut self.device, &mut self.buffers, &moe.router);
        device.norm(router.norm.as_ref().unwrap_or(&next.ff_norm), &b.x, &mut b.shared_in);
        device.linear(&b.shared_in, &mut [(&router.projection, &mut b.narrow)]);
        device.scale(&mut b.narrow, router.logit_scale);
        if device.route(router, moe.top_k, &b.narrow, &mut self.guessed).is_ok() {
            self.experts.guess(layer, &self.guessed.experts);
        }
    }

    /// The shared expert's output.
    fn shared_expert(&mut self, shared: &SharedExpert, next: &[&Linear]) {
        let (device, b) = (&mut self.device, &mut self.buffers);
        let input = input_of(device, shared.norm.as_ref(), &b.x, &b.normed, &mut b.shared_in);
        network(device, &shared.network, input, &mut b.gate, &mut b.up, &mut b.shared, next);
        if let Some(gate) = &shared.gate {
            device.linear(input, &mut [(gate, &mut b.narrow)]);
            device.gate(&mut b.shared, &b.narrow);
        }
        if let Some(norm) = &shared.post_norm {
            device.norm_in_place(norm, &mut b.shared);
        }
    }

    /// Adds a layer's part of the side embedding to the stream.
    pub(super) fn side_branch(&mut self, side: &SideBranch, index: usize) {
        let (device, b) = (&mut self.device, &mut self.buffers);
        device.linear(&b.x, &mut [(&side.gate, &mut b.gate)]);
        device.glu_part(side.activation, &mut b.gate, &b.side, index);
        device.linear(&b.gate, &mut [(&side.up, &mut b.branch)]);
        device.norm_in_place(&side.norm, &mut b.branch);
        device.add(&mut b.x, &b.branch, 1.0);
    }
}

/// What a part of the feed-forward reads: the stream through a norm of its own, put into `own`, or what the layer's norm gave.
fn input_of<'b, D: Device>(
    device: &mut D,
    norm: Option<&Norm>,
    x: &D::Buffer,
    normed: &'b D::Buffer,
    own: &'b mut D::Buffer,
) -> &'b D::Buffer {
    let Some(norm) = norm else { return normed };
    device.norm(norm, x, own);
    own
}

/// `out = down(activation(gate(x)) * up(x))`.
fn network<D: Device>(
    device: &mut D,
    dense: &DenseFeedForward,
    x: &D::Buffer,
    gate: &mut D::Buffer,
    up: &mut D::Buffer,
    out: &mut D::Buffer,
    next: &[&Linear],
) {
    device.expect(&[&dense.down]);
    device.linear(x, &mut [(&dense.gate, gate), (&dense.up, up)]);
    device.glu(dense.activation, gate, up);
    device.expect(next);
    device.linear(gate, &mut [(&dense.down, out)]);
}

/// The distinct numbers of `chosen`, ascending, and how often each is there.
fn distinct(chosen: &[u32]) -> (PerExpert<u32>, PerExpert<u32>) {
    let mut sorted = PerExpert::from_slice(chosen);
    sorted.sort_unstable();
    sorted.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u32)).unzip()
}
