//! The one forward pass: reads a [`ModelSpec`] and calls a [`Device`], for every family.
//!
//! Invariant: nothing here knows a family's name or a device's kind, and a row's logits don't depend on the other
//! rows of its batch.

mod account;
mod feed_forward;
mod mixer;

use smallvec::{SmallVec, smallvec};
use turbospark_experts::{Residency, RouteSink, Stats, StreamedLayers};
use turbospark_kernels::Routes;
use turbospark_model::{FeedForward, Layer, Linear, Mixer, ModelSpec, Moe, SideEmbedding};

use crate::EngineError;
use crate::device::Device;
pub(crate) use account::buffer_bytes;

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

/// What is wanted of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// Logits `[n_vocab]`.
    Logits,
    /// What the head's matrix would read, `[hidden]`: the stream through the last norm.
    Hidden,
}

/// What is wanted of a pass.
#[derive(Clone, Copy)]
pub(crate) struct Outputs<'a> {
    /// Rows, ascending.
    pub(crate) rows: &'a [usize],
    /// What of each of them.
    pub(crate) of: &'a dyn Fn(usize) -> Output,
}

/// Rows of logits computed at a time: what a large vocabulary takes stays small.
const HEAD_ROWS: usize = 16;

/// Weights that are read together.
type Together<'a> = SmallVec<[&'a Linear; 4]>;
/// One entry for each expert of a layer; those of a single row need no memory of the system.
pub(crate) type PerExpert<T> = SmallVec<[T; 32]>;

/// What the caller of a pass sees and says while it runs.
pub(crate) struct Watch<'a> {
    /// Whether to stop: asked between layers and while reads are awaited.
    pub(crate) cancelled: &'a dyn Fn() -> bool,
    /// Told how many layers are done, and what the experts' reads came to.
    pub(crate) layers_done: &'a mut dyn FnMut(usize, Stats),
}

/// A device, where experts come from, and the activations that are kept from batch to batch.
pub(crate) struct Forward<D: Device> {
    device: D,
    experts: Box<dyn Residency>,
    /// Where layers come from that are not mapped.
    layers: Option<StreamedLayers>,
    /// Told of each layer's routing.
    sink: Option<Box<dyn RouteSink>>,
    /// Whether a single row's next experts are guessed.
    look_ahead: bool,
    buffers: Buffers<D::Buffer>,
    routes: Routes,
    guessed: Routes,
}

/// Activations, each `[rows, width]`.
#[derive(Default)]
struct Buffers<B> {
    /// The residual stream.
    x: B,
    /// What a branch reads.
    normed: B,
    /// What a branch adds to the stream.
    branch: B,
    q: B,
    k: B,
    v: B,
    attended: B,
    gate: B,
    up: B,
    /// Router logits, and other narrow outputs.
    narrow: B,
    /// The shared expert's input and output.
    shared_in: B,
    shared: B,
    /// Every layer's side vectors.
    side: B,
    picked: B,
    logits: B,
}

/// The rows that a layer works on.
struct Batch<'a, 'c, C> {
    rows: &'a [Row],
    caches: &'a mut [&'c mut C],
    /// In the last layer the rows whose logits are wanted, if not all are: past its cache only they matter.
    keep: Option<&'a [usize]>,
    /// The next layer with experts and their number, where the batch is so large that it will need about all of them.
    ahead: Option<(usize, usize)>,
    /// Otherwise the next layer with experts, where its choice is worth guessing.
    guess: Option<(usize, &'a Layer)>,
    cancelled: &'a dyn Fn() -> bool,
}

impl<D: Device> Forward<D> {
    pub(crate) fn new(
        device: D,
        experts: Box<dyn Residency>,
        layers: Option<StreamedLayers>,
        look_ahead: bool,
    ) -> Self {
        Forward {
            device,
            experts,
            layers,
            sink: None,
            look_ahead,
            buffers: Buffers::default(),
            routes: Routes::default(),
            guessed: Routes::default(),
        }
    }

    /// Runs `rows` through all layers, appends to their caches and calls `sink(row, output)` for each output.
    ///
    /// # Errors
    /// A router whose logits are not numbers, weights that can't be had, a caller who cancels. The caches then hold part of the
    /// rows.
    pub(crate) fn run(
        &mut self,
        spec: &ModelSpec,
        rows: &[Row],
        caches: &mut [&mut D::Cache],
        outputs: Outputs<'_>,
        watch: &mut Watch<'_>,
        sink: &mut dyn FnMut(usize, &mut [f32]),
    ) -> Result<(), EngineError> {
        let result = self.pass(spec, rows, caches, outputs, watch, sink);
        // Also where it ended early: a slot that stays lent can't be read into.
        self.let_go();
        result
    }

    fn pass(
        &mut self,
        spec: &ModelSpec,
        rows: &[Row],
        caches: &mut [&mut D::Cache],
        outputs: Outputs<'_>,
        watch: &mut Watch<'_>,
        sink: &mut dyn FnMut(usize, &mut [f32]),
    ) -> Result<(), EngineError> {
        let wanted = outputs.rows;
        if let Some((layer, experts)) = needed_in_full(spec, 0, rows.len()) {
            self.hint(layer, experts);
        }
        self.device.begin(rows);
        self.device.embed(&spec.embedding, spec.hidden, rows, &mut self.buffers.x);
        if let Some(side) = &spec.side {
            self.side_embedding(side, spec.layers.len(), rows);
        }
        for (index, layer) in spec.layers.iter().enumerate() {
            if (watch.cancelled)() {
                return Err(EngineError::Cancelled { fed: 0, tokens: rows.len() });
            }
            if let Some(layers) = &mut self.layers {
                let held = layers.take(index, watch.cancelled)?;
                self.device.hold(held);
            }
            let last = index + 1 == spec.layers.len() && wanted.len() < rows.len();
            let mut batch = Batch {
                rows,
                caches: &mut *caches,
                keep: last.then_some(wanted),
                ahead: needed_in_full(spec, index + 1, rows.len()),
                guess: next_mixture(spec, index + 1)
                    .filter(|_| self.look_ahead && rows.len() == 1)
                    .map(|(next, layer, _)| (next, layer)),
                cancelled: watch.cancelled,
            };
            self.mixer(layer, index, &mut batch);
            if last && wanted.is_empty() {
                return Ok(());
            }
            let next = spec.layers.get(index + 1);
            let next = next.map_or_else(|| smallvec![&spec.head.projection], first_of_mixer);
            self.feed_forward(layer, index, &batch, &next)?;
            if let Some(side) = &layer.side {
                self.side_branch(side, index);
            }
            if let Some(scale) = layer.output_scale {
                self.device.scale_by(&mut self.buffers.x, scale);
            }
            self.let_go();
            (watch.layers_done)(index + 1, self.stream_stats());
        }
        self.head(spec, outputs, sink);
        Ok(())
    }

    fn head(&mut self, spec: &ModelSpec, outputs: Outputs<'_>, sink: &mut dyn FnMut(usize, &mut [f32])) {
        let b = &mut self.buffers;
        let mut start = 0;
        let same = outputs.rows.chunk_by(|&a, &b| (outputs.of)(a) == (outputs.of)(b));
        for group in same.flat_map(|rows| rows.chunks(HEAD_ROWS)) {
            let at: SmallVec<[usize; HEAD_ROWS]> = (start..start + group.len()).collect();
            start += group.len();
            self.device.pick(&b.x, &at, &mut b.picked);
            self.device.norm(&spec.head.norm, &b.picked, &mut b.normed);
            let (output, width) = match (outputs.of)(group[0]) {
                Output::Hidden => (&mut b.normed, spec.hidden),
                Output::Logits => {
                    self.device.linear(&b.normed, &mut [(&spec.head.projection, &mut b.logits)]);
                    self.device.scale(&mut b.logits, spec.head.logit_scale);
                    if let Some(cap) = spec.head.soft_cap {
                        self.device.soft_cap(cap, &mut b.logits);
                    }
                    (&mut b.logits, spec.n_vocab)
                }
            };
            let output = self.device.read(output);
            for (&row, output) in group.iter().zip(output.chunks_exact_mut(width)) {
                sink(row, output);
            }
        }
    }

    /// Every layer's side vectors, from the tokens and the embedded rows.
    fn side_embedding(&mut self, side: &SideEmbedding, n_layers: usize, rows: &[Row]) {
        let b = &mut self.buffers;
        self.device.embed(&side.embedding, n_layers * side.width, rows, &mut b.up);
        self.device.linear(&b.x, &mut [(&side.projection, &mut b.side)]);
        self.device.scale(&mut b.side, side.projection_scale);
        self.device.norm_in_place(&side.norm, &mut b.side);
        self.device.add(&mut b.side, &b.up, 1.0);
        self.device.scale(&mut b.side, side.scale);
    }

    /// Lets all experts of a layer be read while what comes before them is computed.
    fn hint(&mut self, layer: usize, experts: usize) {
        let experts: Vec<u32> = (0..experts as u32).collect();
        self.experts.hint(layer, &experts);
    }

    /// Sets who is told of each layer's routing; gives back who was told before.
    pub(crate) fn set_sink(&mut self, sink: Option<Box<dyn RouteSink>>) -> Option<Box<dyn RouteSink>> {
        std::mem::replace(&mut self.sink, sink)
    }

    /// Gives a layer's slot back, so that the next one is read into it.
    fn let_go(&mut self) {
        if let Some(layers) = &mut self.layers {
            self.device.hold(None);
            layers.read_on();
        }
    }

    /// What the reads and hits of experts or layers came to so far.
    pub(crate) fn stream_stats(&self) -> Stats {
        self.layers.as_ref().map_or_else(|| self.experts.stats(), StreamedLayers::stats)
    }
}

/// The first layer from `from` on that has experts.
fn next_mixture(spec: &ModelSpec, from: usize) -> Option<(usize, &Layer, &Moe)> {
    spec.layers.iter().enumerate().skip(from).find_map(|(index, layer)| match &layer.feed_forward {
        FeedForward::Moe(moe) => Some((index, layer, moe)),
        FeedForward::Dense(_) => None,
    })
}

/// That layer and its number of experts, if `rows` rows will choose about all of them.
fn needed_in_full(spec: &ModelSpec, from: usize, rows: usize) -> Option<(usize, usize)> {
    let (index, _, moe) = next_mixture(spec, from)?;
    (rows * moe.top_k >= 2 * moe.n_experts).then_some((index, moe.n_experts))
}

/// The weights that a layer reads first.
fn first_of_mixer(layer: &Layer) -> Together<'_> {
    match &layer.mixer {
        Mixer::Attention(a) => mixer::projections(a),
        Mixer::Latent(a) => smallvec![&a.kv],
        Mixer::Delta(d) => smallvec![&d.qkv, &d.z],
    }
}

/// The weights that a feed-forward reads first, as far as they are known before it runs.
fn first_of_feed_forward(feed_forward: &FeedForward) -> Together<'_> {
    match feed_forward {
        FeedForward::Dense(d) => smallvec![&d.gate, &d.up],
        FeedForward::Moe(m) => smallvec![&m.router.projection],
    }
}
