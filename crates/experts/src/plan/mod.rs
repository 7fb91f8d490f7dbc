//! The plan: from what a model needs and the memory that it may take, to where each byte goes.
//!
//! Invariant: the parts of a plan add up to no more than its budget, and more memory never gives fewer slots. Only sizes are known
//! here, no model and no machine: the engine computes [`Needs`] and then does what the plan says.
//!
//! ```text
//! fixed = resident weights + their f32 copies + tokenizer + program + KV cache
//! floor = fixed + activations of the fewest rows + read buffers + slots of one layer's experts for one token, and those read ahead
//! ```
//!
//! Models without routed experts have layers in their place: the first ones stay, the rest pass through two buffers (`dense.rs`).
//!
//! Of what a budget has beyond the floor a tenth goes to activations, until a batch is so large that each expert is read once for
//! thousands of rows, and the rest to slots. A budget that holds every expert needs no slots at all: they stay where they are mapped.

mod dense;
mod machine;
#[cfg(test)]
mod tests;

pub use dense::{DensePlan, LayerNeeds};
pub use machine::{Available, available, available_under};

/// Slots beyond those that a layer's row holds: while the last of its experts are computed, the next can be read.
pub const READ_AHEAD: usize = 2;
/// Most rows fed at a time where nothing is read from the disk: more don't make products faster.
pub const RESIDENT_ROWS: usize = 512;
/// A budget's share that activations may take.
const ACTIVATION_SHARE: u64 = 10;

/// What a model takes, in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Needs {
    /// Weights that every token reads, by what they are for.
    pub resident: Vec<(String, u64)>,
    /// Vectors that are held as f32 beside the file's own.
    pub vectors: u64,
    /// The file's metadata and the tokenizer made of them.
    pub tokenizer: u64,
    /// The program, its threads' stacks and buffers, logits and sampling.
    pub overhead: u64,
    /// Buffers and bookkeeping of reads; taken only where something is streamed.
    pub read_buffers: u64,
    /// What feeding so many rows at a time takes, fewest first; the engine works with any of these numbers. Never empty.
    pub batches: Vec<Batch>,
    /// Layers with routed experts.
    pub layers: Vec<ExpertNeeds>,
    /// A slot: room for any expert of any layer.
    pub slot: u64,
    /// Matrices of each layer of a model without routed experts, in the order they are used; empty for others. They are part of `resident`.
    pub dense_layers: Vec<LayerNeeds>,
}

/// What feeding a number of rows at a time takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// Rows.
    pub rows: usize,
    /// The KV cache at the asked context: windowed layers hold the rows of a batch beyond their window.
    pub kv: u64,
    /// Activations and the scratch of the kernels.
    pub activations: u64,
}

/// One layer's routed experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpertNeeds {
    /// Experts.
    pub n_experts: usize,
    /// Experts that a row uses.
    pub top_k: usize,
    /// Bytes of one.
    pub bytes: u64,
    /// Bytes that are read to have one.
    pub read: u64,
}

/// Where the weights are that need not stay in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// The model has no routed experts, and all of it is in memory, where the file is mapped.
    Dense,
    /// So are all routed experts.
    Resident {
        /// Their bytes.
        bytes: u64,
    },
    /// Routed experts are in slots, as many as there are; the others on disk.
    Experts {
        /// Slots.
        slots: usize,
        /// Bytes of a slot.
        slot: u64,
    },
    /// The model has no routed experts, and its last layers are read each time they are used.
    Layers(DensePlan),
}

/// Where each byte of a budget goes.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryPlan {
    /// What the process may take.
    pub budget: u64,
    /// Weights that every token reads, by what they are for.
    pub resident: Vec<(String, u64)>,
    /// Vectors that are held as f32 beside the file's own.
    pub vectors: u64,
    /// The file's metadata and the tokenizer.
    pub tokenizer: u64,
    /// The program, its threads' stacks and buffers, logits and sampling.
    pub overhead: u64,
    /// Buffers and bookkeeping of reads.
    pub read_buffers: u64,
    /// Rows of a prompt that are fed at a time.
    pub rows: usize,
    /// The KV cache at the asked context.
    pub kv: u64,
    /// Activations of that many rows, and the scratch of the kernels.
    pub activations: u64,
    /// What need not stay.
    pub placement: Placement,
    /// The smallest budget that opens.
    pub floor: u64,
    /// The smallest budget in which a token's experts stay while the next token's are read. Below it a cache has next to no hits.
    pub comfortable: u64,
    /// The smallest budget that holds every expert.
    pub whole: u64,
    layers: Vec<ExpertNeeds>,
}

/// A budget in which the model can't be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// Less than one token's working set.
    #[error(
        "{} of memory is not enough for this model: {arithmetic} = {}; the smallest that opens is {}, the smallest that is comfortable {}: give --memory as much, or ask for a shorter --context",
        mib_down(*budget), mib(*floor), mib(*floor), mib(*comfortable)
    )]
    BelowFloor {
        /// What may be taken.
        budget: u64,
        /// The smallest budget that opens.
        floor: u64,
        /// The smallest budget that is comfortable.
        comfortable: u64,
        /// The floor's parts.
        arithmetic: String,
    },
}

/// Whole MiB, rounded up: what can be given as a budget.
fn mib(bytes: u64) -> String {
    format!("{}MiB", bytes.div_ceil(1 << 20))
}

fn mib_down(bytes: u64) -> String {
    if bytes < 1 << 20 { format!("{bytes} bytes") } else { format!("{}MiB", bytes >> 20) }
}

/// Makes the plan for `budget` bytes.
///
/// # Errors
/// A budget below the floor, with the floor's parts.
///
/// # Panics
/// Where `needs` has no batch.
pub fn plan(needs: &Needs, budget: u64) -> Result<MemoryPlan, PlanError> {
    let limits = needs.limits();
    if budget < limits.floor {
        return Err(needs.refusal(budget, &limits));
    }
    let (batch, placement) = if budget >= limits.whole {
        let left = budget - limits.whole;
        let spend = |b: &Batch| needs.spend(b).saturating_sub(needs.spend(needs.least()));
        let fits = |b: &&Batch| b.rows <= RESIDENT_ROWS && spend(b) <= left;
        let batch = needs.batches.iter().rev().find(fits).unwrap_or(needs.least());
        let bytes = needs.expert_bytes();
        (batch, if needs.layers.is_empty() { Placement::Dense } else { Placement::Resident { bytes } })
    } else {
        let (placement, taken) = if needs.layers.is_empty() {
            let dense = needs.dense(budget);
            (Placement::Layers(dense), needs.dense_base().saturating_add(dense.held()))
        } else {
            let slots = needs.slots(budget);
            let taken = needs.streamed_base().saturating_add(needs.slot.saturating_mul(slots as u64));
            (Placement::Experts { slots, slot: needs.slot }, taken)
        };
        let most = budget.saturating_sub(taken).min(needs.share(budget));
        (needs.batches.iter().rev().find(|b| needs.spend(b) <= most).unwrap_or(needs.least()), placement)
    };
    let mut resident = needs.resident.clone();
    if let Placement::Layers(dense) = &placement {
        // What passes through buffers is no part of any role.
        resident = vec![
            ("outside the layers".to_owned(), needs.resident_bytes().saturating_sub(needs.dense_bytes())),
            (format!("{} of {} layers", dense.pinned, dense.layers), dense.pinned_bytes),
        ];
    }
    Ok(MemoryPlan {
        budget,
        resident,
        vectors: needs.vectors,
        tokenizer: needs.tokenizer,
        overhead: needs.overhead,
        read_buffers: if placement.is_streamed() { needs.read_buffers } else { 0 },
        rows: batch.rows,
        kv: batch.kv,
        activations: batch.activations,
        placement,
        floor: limits.floor,
        comfortable: limits.comfortable,
        whole: limits.whole,
        layers: needs.layers.clone(),
    })
}

impl Placement {
    /// Whether weights are read while the model runs.
    pub fn is_streamed(&self) -> bool {
        matches!(self, Placement::Experts { .. } | Placement::Layers(_))
    }
}

/// The budgets that matter.
struct Limits {
    floor: u64,
    comfortable: u64,
    whole: u64,
}

impl Needs {
    /// Weights that every token reads.
    pub fn resident_bytes(&self) -> u64 {
        sum(self.resident.iter().map(|(_, bytes)| *bytes))
    }

    /// All routed experts.
    pub fn expert_bytes(&self) -> u64 {
        sum(self.layers.iter().map(|l| l.bytes.saturating_mul(l.n_experts as u64)))
    }

    /// Routed experts of all layers.
    pub fn n_experts(&self) -> usize {
        self.layers.iter().fold(0, |n, l| n.saturating_add(l.n_experts))
    }

    fn least(&self) -> &Batch {
        self.batches.first().expect("needs have a batch")
    }

    /// What is taken whatever the budget, but for batches and what streaming adds.
    fn base(&self) -> u64 {
        self.base_with(self.resident_bytes())
    }

    fn base_with(&self, resident: u64) -> u64 {
        sum([resident, self.vectors, self.tokenizer, self.overhead, self.least().kv])
    }

    fn streamed_base(&self) -> u64 {
        self.base().saturating_add(self.read_buffers)
    }

    /// What a batch takes beyond the KV cache of the smallest one.
    fn spend(&self, batch: &Batch) -> u64 {
        batch.activations.saturating_add(batch.kv.saturating_sub(self.least().kv))
    }

    /// What batches may take of a budget.
    fn share(&self, budget: u64) -> u64 {
        let most = self.batches.iter().map(|b| self.spend(b)).max().unwrap_or(0);
        (budget / ACTIVATION_SHARE).min(most).max(self.spend(self.least()))
    }

    /// Slots without which a row's experts of one layer can't be in memory together.
    fn least_slots(&self) -> usize {
        let row = self.layers.iter().map(|l| l.top_k).max().unwrap_or(0);
        row.saturating_add(READ_AHEAD).min(self.n_experts())
    }

    /// Slots of a budget that is at least the floor. It grows with the budget because the share of batches is reserved whether or
    /// not a batch uses all of it.
    fn slots(&self, budget: u64) -> usize {
        let left = budget.saturating_sub(self.streamed_base()).saturating_sub(self.share(budget));
        let slots = usize::try_from(left / self.slot.max(1)).unwrap_or(usize::MAX);
        slots.max(self.least_slots()).min(self.n_experts())
    }

    fn limits(&self) -> Limits {
        let least = self.spend(self.least());
        let whole = sum([self.base(), least, self.expert_bytes()]);
        if self.layers.is_empty() {
            let floor = sum([self.dense_base(), least, self.least_dense().buffers]).min(whole);
            return Limits { floor, comfortable: whole, whole };
        }
        let slots = self.slot.saturating_mul(self.least_slots() as u64);
        let floor = sum([self.streamed_base(), least, slots]).min(whole);
        // A token's experts of all layers, and room for those that are read meanwhile.
        let token = self.layers.iter().fold(self.least_slots(), |n, l| n.saturating_add(l.top_k));
        let token = token.min(self.n_experts());
        let (mut low, mut high) = (floor, whole);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.slots(middle) >= token {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Limits { floor, comfortable: low, whole }
    }

    fn refusal(&self, budget: u64, limits: &Limits) -> PlanError {
        let batch = self.least();
        let layers = self.layers.is_empty() && limits.floor < limits.whole;
        let outside = if layers { self.dense_bytes() } else { 0 };
        let mut parts = vec![
            ("resident weights".to_owned(), self.resident_bytes().saturating_sub(outside)),
            ("f32 copies of vectors".to_owned(), self.vectors),
            ("KV cache".to_owned(), batch.kv),
            (format!("activations of {} rows", batch.rows), batch.activations),
            ("metadata and tokenizer".to_owned(), self.tokenizer),
            ("program and buffers".to_owned(), self.overhead),
        ];
        if layers {
            parts.push(("read buffers".to_owned(), self.read_buffers));
            parts.push(("two layers on their way".to_owned(), self.least_dense().buffers));
        } else if limits.floor < limits.whole {
            let slots = self.least_slots();
            parts.push(("read buffers".to_owned(), self.read_buffers));
            parts.push((format!("{slots} expert slots"), self.slot.saturating_mul(slots as u64)));
        } else if !self.layers.is_empty() {
            parts.push(("experts".to_owned(), self.expert_bytes()));
        }
        parts.retain(|(_, bytes)| *bytes > 0);
        let parts =
            parts.iter().map(|(name, bytes)| format!("{name} {:.1}", *bytes as f64 / (1 << 20) as f64));
        let arithmetic = parts.collect::<Vec<_>>().join(" + ");
        let Limits { floor, comfortable, .. } = *limits;
        PlanError::BelowFloor { budget, floor, comfortable, arithmetic }
    }
}

impl MemoryPlan {
    /// Every part with what it is, in the order people read it.
    pub fn parts(&self) -> Vec<(String, u64)> {
        let mut parts: Vec<(String, u64)> =
            self.resident.iter().map(|(role, bytes)| (format!("weights: {role}"), *bytes)).collect();
        parts.push(("f32 copies of vectors".to_owned(), self.vectors));
        parts.push(("KV cache".to_owned(), self.kv));
        parts.push((format!("activations of {} rows", self.rows), self.activations));
        parts.push(("metadata and tokenizer".to_owned(), self.tokenizer));
        parts.push(("program and buffers".to_owned(), self.overhead));
        match self.placement {
            Placement::Dense => {}
            Placement::Resident { bytes } => parts.push(("weights: all experts".to_owned(), bytes)),
            Placement::Experts { slots, slot } => {
                parts.push(("read buffers".to_owned(), self.read_buffers));
                parts.push((format!("{slots} expert slots"), slot.saturating_mul(slots as u64)));
            }
            Placement::Layers(dense) => {
                parts.push(("read buffers".to_owned(), self.read_buffers));
                parts.push(("layers on their way".to_owned(), dense.buffers));
            }
        }
        parts
    }

    /// What the process takes at most.
    pub fn total(&self) -> u64 {
        sum(self.parts().into_iter().map(|(_, bytes)| bytes))
    }

    /// What nothing is made of.
    pub fn unused(&self) -> u64 {
        self.budget.saturating_sub(self.total())
    }

    /// Routed experts that are in memory at a time.
    pub fn slots(&self) -> usize {
        match self.placement {
            Placement::Experts { slots, .. } => slots,
            Placement::Dense | Placement::Resident { .. } | Placement::Layers(_) => self.n_experts(),
        }
    }

    /// Routed experts of all layers.
    pub fn n_experts(&self) -> usize {
        self.layers.iter().fold(0, |n, l| n.saturating_add(l.n_experts))
    }

    /// Layers with routed experts.
    pub fn layers(&self) -> &[ExpertNeeds] {
        &self.layers
    }

    /// Whether everything stays in memory.
    pub fn all_in_memory(&self) -> bool {
        !self.placement.is_streamed()
    }

    /// The share of hits if every expert were as likely as any other: the least that a cache of this size gives. Routing of
    /// trained models has favourites and gives more.
    pub fn uniform_hit_rate(&self) -> f64 {
        match self.n_experts() {
            0 => 1.0,
            n => self.slots() as f64 / n as f64,
        }
    }

    /// Bytes that a token uses of the weights that need not stay.
    pub fn used_per_token(&self) -> u64 {
        if let Placement::Layers(dense) = &self.placement {
            return dense.pinned_bytes.saturating_add(dense.read_per_token);
        }
        sum(self.layers.iter().map(|l| l.read.saturating_mul(l.top_k as u64)))
    }

    /// Bytes that are read for a token when this share of its experts is in memory. Layers are read whatever the share.
    pub fn read_per_token(&self, hit_rate: f64) -> f64 {
        match self.placement {
            Placement::Dense | Placement::Resident { .. } => 0.0,
            Placement::Layers(dense) => dense.read_per_token as f64,
            Placement::Experts { .. } => self.used_per_token() as f64 * (1.0 - hit_rate.clamp(0.0, 1.0)),
        }
    }

    /// Tokens per second that a disk of `rate` bytes per second allows at a share of hits, arithmetic aside; `None` where nothing
    /// is read.
    pub fn tokens_per_second(&self, hit_rate: f64, rate: f64) -> Option<f64> {
        let read = self.read_per_token(hit_rate);
        (read > 0.0 && rate > 0.0).then(|| rate / read)
    }

    /// Bytes that are read for a prompt of `rows` tokens at most: every expert once for each batch.
    pub fn read_per_prompt(&self, rows: usize) -> u64 {
        match self.placement {
            Placement::Dense | Placement::Resident { .. } => return 0,
            Placement::Layers(dense) => {
                return dense.read_per_token.saturating_mul(rows.div_ceil(self.rows.max(1)) as u64);
            }
            Placement::Experts { .. } => {}
        }
        let all = sum(self.layers.iter().map(|l| l.read.saturating_mul(l.n_experts as u64)));
        let rest = rows % self.rows.max(1);
        let some = |rows: usize| {
            let most = |l: &ExpertNeeds| l.n_experts.min(l.top_k.saturating_mul(rows)) as u64;
            sum(self.layers.iter().map(|l| l.read.saturating_mul(most(l))))
        };
        all.saturating_mul((rows / self.rows.max(1)) as u64).saturating_add(some(rest))
    }
}

/// The sum, or the largest number where there is none.
fn sum(parts: impl IntoIterator<Item = u64>) -> u64 {
    parts.into_iter().fold(0, u64::saturating_add)
}
