//! The one forward pass: reads a [`ModelSpec`] and calls a [`Device`], for every family.
//!
//! Invariant: nothing here knows a family's name or a device's kind, and a row's logits don't depend on the other
//! rows of its batch.

use std::mem;

use turbospark_model::{Attention, FeedForward, Layer, Linear, Mixer, ModelSpec};

use crate::device::Device;

/// One token at one place of one sequence: the unit of all work.
///
/// Rows of a sequence are neighbours in order of position, and follow directly on what its cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Token id.
    pub token: u32,
    /// Index in the batch's list of caches.
    pub sequence: usize,
    /// Position in the sequence, from 0.
    pub position: usize,
}

/// Rows of logits computed at a time: what a large vocabulary takes stays small.
const HEAD_ROWS: usize = 16;

/// A device and the activations that it keeps from batch to batch.
pub(crate) struct Forward<D: Device> {
    device: D,
    /// The residual stream, `[rows, hidden]`.
    x: D::Buffer,
    /// What a branch reads, `[rows, hidden]`.
    normed: D::Buffer,
    /// What a branch adds to the stream, `[rows, hidden]`.
    branch: D::Buffer,
    q: D::Buffer,
    k: D::Buffer,
    v: D::Buffer,
    attended: D::Buffer,
    gate: D::Buffer,
    up: D::Buffer,
    picked: D::Buffer,
    logits: D::Buffer,
}

impl<D: Device> Forward<D> {
    pub(crate) fn new(device: D) -> Self {
        Forward {
            device,
            x: D::Buffer::default(),
            normed: D::Buffer::default(),
            branch: D::Buffer::default(),
            q: D::Buffer::default(),
            k: D::Buffer::default(),
            v: D::Buffer::default(),
            attended: D::Buffer::default(),
            gate: D::Buffer::default(),
            up: D::Buffer::default(),
            picked: D::Buffer::default(),
            logits: D::Buffer::default(),
        }
    }

    /// Floats of activations that a row takes, roughly: what a batch's size is chosen by.
    pub(crate) fn row_width(spec: &ModelSpec) -> usize {
        let widest = |f: &dyn Fn(&Layer) -> usize| spec.layers.iter().map(f).max().unwrap_or_default();
        let mixer = widest(&|l| match &l.mixer {
            Mixer::Attention(a) => 2 * a.q.rows + a.k.rows + a.v.rows,
        });
        let feed_forward = widest(&|l| match &l.feed_forward {
            FeedForward::Dense(d) => 2 * d.width,
        });
        3 * spec.hidden + mixer + feed_forward
    }

    /// Runs `rows` through all layers, appends to their caches and calls `sink(row, logits)` for each row of
    /// `wanted`, which ascends.
    pub(crate) fn run(
        &mut self,
        spec: &ModelSpec,
        rows: &[Row],
        caches: &mut [&mut D::Cache],
        wanted: &[usize],
        sink: &mut dyn FnMut(usize, &mut [f32]),
    ) {
        self.device.begin(rows);
        self.device.shape(&mut self.x, rows.len(), spec.hidden);
        self.device.embed(&spec.embedding, rows, &mut self.x);
        for (index, layer) in spec.layers.iter().enumerate() {
            // Past the last layer's cache only rows with logits matter.
            let last = index + 1 == spec.layers.len() && wanted.len() < rows.len();
            self.device.norm(&layer.mixer_norm, &self.x, &mut self.normed);
            match &layer.mixer {
                Mixer::Attention(attention) => {
                    self.device.expect(&[&attention.o]);
                    self.project(attention);
                    self.device.cache(index, rows, caches, &self.k, &self.v);
                    if last {
                        let rows: Vec<Row> = wanted.iter().map(|&w| rows[w]).collect();
                        self.keep(wanted);
                        self.device.attend(attention, index, &rows, caches, &self.q, &mut self.attended);
                    } else {
                        self.device.attend(attention, index, rows, caches, &self.q, &mut self.attended);
                    }
                    self.device.expect(&first_of_feed_forward(&layer.feed_forward));
                    self.device.linear(&self.attended, &mut [(&attention.o, &mut self.branch)]);
                }
            }
            if let Some(norm) = &layer.mixer_post_norm {
                self.device.norm_in_place(norm, spec.hidden, &mut self.branch);
            }
            self.device.add(&mut self.x, &self.branch);
            let next = spec.layers.get(index + 1);
            self.feed_forward(layer, spec.hidden, &next.map_or(vec![&spec.head.projection], first_of_mixer));
        }
        for (group, start) in wanted.chunks(HEAD_ROWS).zip((0..).step_by(HEAD_ROWS)) {
            let at: Vec<usize> = (start..start + group.len()).collect();
            self.device.pick(&self.x, &at, &mut self.picked);
            self.device.norm(&spec.head.norm, &self.picked, &mut self.normed);
            self.device.linear(&self.normed, &mut [(&spec.head.projection, &mut self.logits)]);
            if let Some(cap) = spec.head.soft_cap {
                self.device.soft_cap(cap, &mut self.logits);
            }
            let logits = self.device.read(&mut self.logits);
            for (&row, logits) in group.iter().zip(logits.chunks_exact_mut(spec.n_vocab)) {
                sink(row, logits);
            }
        }
    }

    /// Queries, keys and values of the normed stream, turned to their positions.
    fn project(&mut self, attention: &Attention) {
        let outputs =
            &mut [(&attention.q, &mut self.q), (&attention.k, &mut self.k), (&attention.v, &mut self.v)];
        self.device.linear(&self.normed, outputs);
        if let Some(norm) = &attention.q_norm {
            self.device.norm_in_place(norm, attention.head_dim, &mut self.q);
        }
        if let Some(norm) = &attention.k_norm {
            self.device.norm_in_place(norm, attention.head_dim, &mut self.k);
        }
        self.device.rope(attention, &mut self.q);
        self.device.rope(attention, &mut self.k);
    }

    fn feed_forward(&mut self, layer: &Layer, hidden: usize, next: &[&Linear]) {
        self.device.norm(&layer.ff_norm, &self.x, &mut self.normed);
        match &layer.feed_forward {
            FeedForward::Dense(dense) => {
                self.device.expect(&[&dense.down]);
                let outputs = &mut [(&dense.gate, &mut self.gate), (&dense.up, &mut self.up)];
                self.device.linear(&self.normed, outputs);
                self.device.glu(dense.activation, &mut self.gate, &self.up);
                self.device.expect(next);
                self.device.linear(&self.gate, &mut [(&dense.down, &mut self.branch)]);
            }
        }
        if let Some(norm) = &layer.ff_post_norm {
            self.device.norm_in_place(norm, hidden, &mut self.branch);
        }
        self.device.add(&mut self.x, &self.branch);
    }

    /// Narrows the stream and its queries to the rows of `wanted`.
    fn keep(&mut self, wanted: &[usize]) {
        for buffer in [&mut self.x, &mut self.q] {
            self.device.pick(buffer, wanted, &mut self.picked);
            mem::swap(buffer, &mut self.picked);
        }
    }
}

/// The weights that a layer reads first.
fn first_of_mixer(layer: &Layer) -> Vec<&Linear> {
    match &layer.mixer {
        Mixer::Attention(a) => vec![&a.q, &a.k, &a.v],
    }
}

/// The weights that a feed-forward reads first.
fn first_of_feed_forward(feed_forward: &FeedForward) -> Vec<&Linear> {
    match feed_forward {
        FeedForward::Dense(d) => vec![&d.gate, &d.up],
    }
}
