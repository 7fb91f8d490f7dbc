//! [`Engine`]: an opened model that any number of sequences share.
//!
//! Invariant: requests are checked before anything is computed, so a refused one leaves its sequences as they were.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;
use turbospark_experts::plan::MemoryPlan;
use turbospark_experts::read::{IoChoice, Method};
use turbospark_experts::{IoMode, LayerExperts, RouteSink, Stats};
use turbospark_format::Gguf;
use turbospark_kernels::default_threads;
use turbospark_model::{FeedForward, ModelSpec, Role};
use turbospark_text::{Specials, Tokenizer};

use crate::device::{CpuCache, CpuDevice};
use crate::forward::{Forward, Output, Outputs, Row, Watch};
use crate::opening::{Sources, Streaming, plan_memory, sources};
use crate::{CancelFlag, EngineError, KvKind, Session, tokenizer::TokenizerTask};

/// Rows of a prompt that are fed at a time where there is no plan.
const PREFILL_CHUNK: usize = 512;
/// Positions are exact in f32 up to here.
const MAX_CONTEXT: usize = 1 << 24;

/// How an engine is opened. `EngineOptions::default()` suits a model that fits in memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct EngineOptions {
    /// Threads that compute; default: the physical cores this process may use.
    pub threads: Option<usize>,
    /// Positions a sequence can hold; default: what the model was trained for, or as much of it as an eighth of the memory
    /// holds. Memory is taken as they are used.
    pub context: Option<usize>,
    /// Number format of the KV cache.
    pub kv: KvKind,
    /// Bytes that the caches of all sequences may take together, for callers with many; default: what one of the whole context takes.
    pub kv_bytes: Option<u64>,
    /// Prompt rows fed at a time; default: as the plan says.
    pub prefill_chunk: Option<usize>,
    /// Bytes that the whole process may take; default: what the machine and its control groups have free. Experts that don't
    /// fit are read from the file when a layer needs them, and so are the layers of a model without experts.
    pub memory: Option<u64>,
    /// How they are read.
    pub io: IoMode,
    /// A way of reading to use instead of the fastest that is tried.
    pub reads: Option<Method>,
    /// Whether the next layer's experts are guessed and read while the disk is idle; default: yes.
    pub look_ahead: Option<bool>,
    /// Experts that are held at once, whatever `memory` allows: for tests and measurements.
    pub expert_slots: Option<usize>,
    /// Layers of a dense model that stay in memory, the others being read for each pass, whatever `memory` allows: for tests and
    /// measurements.
    pub pinned_layers: Option<usize>,
}

/// An opened model. Clones share it.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    gguf: Arc<Gguf>,
    spec: ModelSpec,
    forward: Mutex<Forward<CpuDevice>>,
    /// Held while `forward` is awaited, so that who has just had it does not get it again before others.
    turn: Mutex<()>,
    tokenizer: TokenizerTask,
    threads: usize,
    context: usize,
    chunk: usize,
    kv: KvKind,
    kv_bytes: Option<u64>,
    streaming: Option<Streaming>,
    /// For passes that nobody stops.
    never: CancelFlag,
    plan: Option<MemoryPlan>,
}

/// One sequence's keys, values and recurrent states.
pub struct Sequence {
    cache: CpuCache,
    len: usize,
}

impl Sequence {
    /// Positions in the cache.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing has been fed.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Forgets everything from position `len` on; does nothing where the sequence is shorter. Returns how many positions
    /// are left: fewer than asked for where a recurrent or windowed layer no longer has what it had then. It can go back to
    /// where [`Sequence::save`] was called last.
    pub fn truncate(&mut self, len: usize) -> usize {
        if len < self.len {
            self.len = self.cache.rewind(Some(self.len), len);
        }
        self.len
    }

    /// Keeps what [`Sequence::truncate`] needs to come back to this point. The point before is forgotten.
    pub fn save(&mut self) {
        self.cache.save(self.len);
    }

    /// Another sequence with the first `len` positions; `None` where the sequence is shorter or a recurrent or windowed layer no
    /// longer has what it had then, unless that is where [`Sequence::save`] was called last. Both go on independently. They share the
    /// memory of what they have in common, but for recurrent states, which are copied.
    pub fn fork(&self, len: usize) -> Option<Sequence> {
        let cache = if len <= self.len { self.cache.fork(self.len, len) } else { None };
        cache.map(|cache| Sequence { cache, len })
    }

    /// Whether [`Sequence::fork`] gives a sequence.
    pub(crate) fn can_fork(&self, len: usize) -> bool {
        len <= self.len && self.cache.can_fork(self.len, len)
    }

    /// Calls `visit(address, bytes)` for each block of memory in use; sequences that share one give the same address.
    pub(crate) fn each_block(&self, visit: &mut dyn FnMut(usize, usize)) {
        self.cache.each_block(visit);
    }

    /// Whether only a saved point can be gone back to.
    pub(crate) fn is_recurrent(&self) -> bool {
        self.cache.is_recurrent()
    }
}

/// Rows of a [`Part`] whose logits or hidden values are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// None: the tokens only fill the cache.
    Nothing,
    /// The last row: what follows the tokens.
    Last,
    /// Every row.
    All,
    /// Every row, and not its logits: what the head's matrix would read, `[hidden]`.
    Hidden,
}

/// Tokens to feed to one sequence as part of a batch.
pub struct Part<'a> {
    /// Where they go; each sequence appears once in a batch.
    pub sequence: &'a mut Sequence,
    /// The tokens, at least one.
    pub tokens: &'a [u32],
    /// Which of their rows are turned to logits.
    pub wanted: Wanted,
}

impl Engine {
    /// Opens a GGUF file, or the split set that the named shard belongs to.
    ///
    /// The tokenizer is built on another thread meanwhile; [`Engine::tokenizer`] waits for it.
    ///
    /// # Errors
    /// A file that can't be read, is no GGUF, or is of an architecture that can't be run; a context of 0.
    pub fn open(path: impl AsRef<Path>, options: EngineOptions) -> Result<Engine, EngineError> {
        Engine::from_gguf(Gguf::open(path)?, options)
    }

    /// As [`Engine::open`], with a file that is open already.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn from_gguf(gguf: Gguf, options: EngineOptions) -> Result<Engine, EngineError> {
        let gguf = Arc::new(gguf);
        let tokenizer = TokenizerTask::start(&gguf);
        let spec = ModelSpec::from_gguf(&gguf)?;
        Engine::start(gguf, spec, tokenizer, options)
    }

    /// As [`Engine::from_gguf`], with a spec that the caller has changed: to run a model whose file says something else
    /// than what it was trained with, or to see what a part of it is for.
    ///
    /// # Errors
    /// As [`Engine::open`]. The spec must be one that was read from `gguf`; only its numbers and options may differ.
    pub fn with_spec(gguf: Gguf, spec: ModelSpec, options: EngineOptions) -> Result<Engine, EngineError> {
        let gguf = Arc::new(gguf);
        let tokenizer = TokenizerTask::start(&gguf);
        Engine::start(gguf, spec, tokenizer, options)
    }

    fn start(
        gguf: Arc<Gguf>,
        spec: ModelSpec,
        tokenizer: TokenizerTask,
        options: EngineOptions,
    ) -> Result<Engine, EngineError> {
        let (context, plan) = plan_memory(&spec, &gguf, &options)?;
        let Sources { experts, layers, streaming, mapped } = sources(&gguf, &spec, &options, plan.as_ref())?;
        let streamed = streaming.is_some();
        for ((tensor, role), mapped) in gguf.tensors().iter().zip(&spec.roles).zip(mapped) {
            if mapped && !(streamed && *role == Role::Embedding) {
                gguf.prefetch(tensor);
            }
        }
        let chunk = plan.as_ref().map_or(PREFILL_CHUNK, |p| p.rows);
        let device = CpuDevice::new(gguf.clone(), &spec, options.threads.unwrap_or_else(default_threads))?;
        let shared = Shared {
            gguf,
            spec,
            tokenizer,
            threads: device.threads(),
            forward: Mutex::new(Forward::new(
                device,
                experts,
                layers,
                streamed && options.look_ahead.unwrap_or(true),
            )),
            turn: Mutex::new(()),
            context,
            chunk: options.prefill_chunk.unwrap_or(chunk).max(1),
            kv: options.kv,
            kv_bytes: options.kv_bytes,
            streaming,
            plan,
            never: CancelFlag::new(),
        };
        Ok(Engine { shared: Arc::new(shared) })
    }

    /// The model as data.
    pub fn spec(&self) -> &ModelSpec {
        &self.shared.spec
    }

    /// The file.
    pub fn gguf(&self) -> &Gguf {
        &self.shared.gguf
    }

    /// Threads that compute.
    pub fn threads(&self) -> usize {
        self.shared.threads
    }

    /// Positions a sequence can hold.
    pub fn context(&self) -> usize {
        self.shared.context
    }

    /// Prompt rows that are fed at a time.
    pub fn prefill_chunk(&self) -> usize {
        self.shared.chunk
    }

    /// Bytes that the KV cache of one sequence of `positions` positions takes.
    pub fn kv_bytes(&self, positions: usize) -> u64 {
        CpuCache::bytes_for(self.spec(), self.shared.kv, positions, self.shared.chunk)
    }

    /// Whether each layer keeps all positions, so that a sequence can be cut anywhere.
    pub(crate) fn keeps_all_positions(&self) -> bool {
        CpuCache::checkpoint_bytes_for(self.spec(), self.shared.kv, 1, 1) == 0
    }

    /// Bytes that the plan has for the caches of all sequences: at least what one of the whole context takes.
    pub fn kv_budget(&self) -> u64 {
        self.kv_bytes(self.context()).max(self.shared.kv_bytes.unwrap_or(0))
    }

    /// Sets who is told of each layer's routing, as for a trace; gives back who was told before.
    pub fn set_route_sink(&self, sink: Option<Box<dyn RouteSink>>) -> Option<Box<dyn RouteSink>> {
        self.shared.forward.lock().unwrap_or_else(PoisonError::into_inner).set_sink(sink)
    }

    /// Where each byte of memory goes; `None` where neither the options nor the system say how much there is.
    pub fn plan(&self) -> Option<&MemoryPlan> {
        self.shared.plan.as_ref()
    }

    /// How experts or layers are read, where they are.
    pub fn io(&self) -> Option<&IoChoice> {
        self.shared.streaming.as_ref().map(|s| &s.io)
    }

    /// Experts that the cache holds where they are streamed, without those that are read ahead.
    pub fn cached_experts(&self) -> Option<usize> {
        self.shared.streaming.as_ref().and_then(|s| s.cached)
    }

    /// What the reads of experts and their hits came to since the engine was opened. Of a dense model whose layers are read it counts
    /// layers, those that stay in memory as hits.
    pub fn expert_stats(&self) -> Stats {
        self.shared.forward.lock().unwrap_or_else(PoisonError::into_inner).stream_stats()
    }

    /// Bytes that buffers and scratch hold.
    #[cfg(test)]
    pub(crate) fn held_bytes(&self) -> (u64, u64) {
        self.shared.forward.lock().unwrap_or_else(PoisonError::into_inner).held_bytes()
    }

    /// The file's tokenizer.
    ///
    /// # Errors
    /// Metadata that makes no tokenizer. A model without one can still be fed token ids.
    pub fn tokenizer(&self) -> Result<&Tokenizer, EngineError> {
        self.shared.tokenizer.get()
    }

    /// Tokens of `text`, with BOS and EOS as the file's rules say; text that looks like a special token stays text.
    ///
    /// # Errors
    /// As [`Engine::tokenizer`].
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, EngineError> {
        Ok(self.tokenizer()?.encode(text, Specials { add_bos_eos: true, parse: false })?)
    }

    /// A conversation that keeps its prefix in the KV cache.
    pub fn session(&self) -> Session {
        Session::new(self.clone())
    }

    /// An empty sequence, for callers that feed tokens themselves.
    pub fn sequence(&self) -> Sequence {
        Sequence { cache: CpuCache::new(self.spec(), self.shared.kv), len: 0 }
    }

    /// Feeds the parts as one batch and calls `sink(part, row, logits)` for each wanted row, in order; rows count from
    /// 0 in each part. A row's logits `[n_vocab]` are the same bits whatever stands beside it.
    ///
    /// # Errors
    /// A part without tokens, a token outside the vocabulary, more tokens than the context has room for: nothing is
    /// fed then. A router whose logits are not numbers: sequences are as before then, or shorter where
    /// [`Sequence::truncate`] couldn't go back so far.
    pub fn forward(
        &self,
        parts: &mut [Part<'_>],
        sink: impl FnMut(usize, usize, &mut [f32]),
    ) -> Result<(), EngineError> {
        self.forward_watched(parts, &self.shared.never, &mut |_, _| {}, sink)
    }

    /// As [`Engine::forward`]; ends with [`EngineError::Cancelled`] soon after the flag is raised, and tells `layers_done` how many
    /// layers are done, with the counts of the experts' cache then.
    ///
    /// # Errors
    /// As [`Engine::forward`]. After a cancelled pass the sequences are as after any other error.
    pub fn forward_watched(
        &self,
        parts: &mut [Part<'_>],
        cancel: &CancelFlag,
        layers_done: &mut dyn FnMut(usize, Stats),
        sink: impl FnMut(usize, usize, &mut [f32]),
    ) -> Result<(), EngineError> {
        self.pass(parts, &mut Watch { cancelled: &|| cancel.is_cancelled(), layers_done }, sink)
    }

    /// As [`Engine::forward_watched`].
    pub(crate) fn pass(
        &self,
        parts: &mut [Part<'_>],
        watch: &mut Watch<'_>,
        mut sink: impl FnMut(usize, usize, &mut [f32]),
    ) -> Result<(), EngineError> {
        if parts.is_empty() {
            return Ok(());
        }
        for part in parts.iter() {
            self.check(part.sequence.len, part.tokens)?;
        }
        // A single row needs no memory of the system.
        let mut rows: SmallVec<[Row; 8]> = SmallVec::new();
        let (mut wanted, mut starts) = (SmallVec::<[usize; 8]>::new(), SmallVec::<[usize; 8]>::new());
        for (sequence, part) in parts.iter().enumerate() {
            let start = rows.len();
            starts.push(start);
            let first = part.sequence.len;
            rows.extend(part.tokens.iter().zip(first..).map(|(&token, position)| Row {
                token,
                sequence,
                position,
            }));
            match part.wanted {
                Wanted::Nothing => {}
                Wanted::Last => wanted.push(rows.len() - 1),
                Wanted::All | Wanted::Hidden => wanted.extend(start..rows.len()),
            }
        }
        let kinds: SmallVec<[Output; 8]> = parts
            .iter()
            .map(|p| if p.wanted == Wanted::Hidden { Output::Hidden } else { Output::Logits })
            .collect();
        let outputs = Outputs { rows: &wanted, of: &|row: usize| kinds[rows[row].sequence] };
        let mut caches: SmallVec<[&mut CpuCache; 8]> =
            parts.iter_mut().map(|p| &mut p.sequence.cache).collect();
        let turn = self.shared.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut forward = self.shared.forward.lock().unwrap_or_else(PoisonError::into_inner);
        drop(turn);
        let mut to_part = |row: usize, logits: &mut [f32]| {
            let part = rows[row].sequence;
            sink(part, row - starts[part], logits);
        };
        let result = forward.run(self.spec(), &rows, &mut caches, outputs, watch, &mut to_part);
        drop(caches);
        for Part { sequence, tokens, .. } in parts {
            match result {
                Ok(()) => sequence.len += tokens.len(),
                Err(_) => sequence.len = sequence.cache.rewind(None, sequence.len),
            }
        }
        result
    }

    /// Feeds `tokens` to one sequence, `chunk` rows at a time ([`Engine::prefill_chunk`] if `None`), and calls
    /// `sink(row, logits)` for each wanted row.
    ///
    /// # Errors
    /// As [`Engine::forward`].
    pub fn feed(
        &self,
        sequence: &mut Sequence,
        tokens: &[u32],
        chunk: Option<usize>,
        wanted: Wanted,
        mut sink: impl FnMut(usize, &mut [f32]),
    ) -> Result<(), EngineError> {
        self.check(sequence.len, tokens)?;
        let chunk = chunk.unwrap_or(self.shared.chunk).max(1);
        for start in (0..tokens.len()).step_by(chunk) {
            let end = (start + chunk).min(tokens.len());
            let wanted = if wanted == Wanted::Last && end < tokens.len() { Wanted::Nothing } else { wanted };
            let part = Part { sequence: &mut *sequence, tokens: &tokens[start..end], wanted };
            self.forward(&mut [part], |_, row, logits| sink(start + row, logits))?;
        }
        Ok(())
    }

    /// Whether `tokens` can follow `used` positions.
    pub(crate) fn check(&self, used: usize, tokens: &[u32]) -> Result<(), EngineError> {
        let (n_vocab, context) = (self.spec().n_vocab, self.context());
        if tokens.is_empty() {
            return Err(EngineError::EmptyPrompt);
        }
        if let Some(&token) = tokens.iter().find(|&&t| t as usize >= n_vocab) {
            return Err(EngineError::TokenOutOfRange { token, n_vocab });
        }
        let used = used.saturating_add(tokens.len());
        if used > context {
            return Err(EngineError::ContextFull { tokens: used, context });
        }
        Ok(())
    }
}

/// Positions that a sequence can hold.
pub(crate) fn context_of(spec: &ModelSpec, options: &EngineOptions) -> Result<usize, EngineError> {
    let context = options.context.unwrap_or(spec.context_length.min(MAX_CONTEXT));
    if context == 0 || context > MAX_CONTEXT {
        return Err(EngineError::BadContext { context, limit: MAX_CONTEXT });
    }
    Ok(context)
}

/// Where each layer's routed experts lie in the file.
pub(crate) fn experts_of(spec: &ModelSpec) -> Vec<Option<LayerExperts>> {
    let layer = |feed_forward: &FeedForward| match feed_forward {
        FeedForward::Dense(_) => None,
        FeedForward::Moe(moe) => {
            Some(LayerExperts { n_experts: moe.n_experts, tensors: moe.tensors().map(|t| t.index).collect() })
        }
    };
    spec.layers.iter().map(|l| layer(&l.feed_forward)).collect()
}
