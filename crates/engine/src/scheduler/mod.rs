//! Many requests through one engine: continuous batching.
//!
//! A [`Scheduler`] owns a thread. Each of its steps feeds one batch: the last token of every running request, and a bounded number of
//! prompt rows, so that a long prompt does not stall the others; weights, and experts that are read from the disk, then serve
//! all rows of the step. Requests come in through a [`Handle`] and are told of their tokens by [`Event`]s.
//!
//! ```no_run
//! use turbospark_engine::scheduler::{Event, Request, Scheduler, SchedulerOptions};
//! use turbospark_engine::{Engine, EngineOptions, GenerateOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = Engine::open("model.gguf", EngineOptions::default())?;
//! let prompt = engine.encode("Once upon a time")?;
//! let scheduler = Scheduler::start(engine, SchedulerOptions::default())?;
//! let (sender, events) = std::sync::mpsc::channel();
//! let on_event = Box::new(move |event| sender.send(event).is_ok());
//! let request = Request { prompt, options: GenerateOptions::default(), client: 0, on_event };
//! let ticket = scheduler.handle().submit(request)?;
//! for event in events {
//!     if let Event::Piece(piece) = event {
//!         print!("{}", piece.text);
//!     }
//! }
//! # drop(ticket);
//! # Ok(()) }
//! ```
//!
//! Invariants: what a request is answered does not depend on what else runs, as rows don't depend on each other; a request that
//! fails or is cancelled ends alone; the KV caches of all that run, and the prefixes that are kept, take no more than they may.

mod metrics;
mod prefix;
mod queue;
mod request;
mod running;
mod share;
mod worker;

pub use metrics::SchedulerMetrics;
pub use request::{Event, OnEvent, Request, RequestStats, SubmitError, Ticket};

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::{CancelFlag, Engine, EngineError};
use queue::FairQueue;
use request::{Stop, Waiting};
use worker::Worker;

/// Bounds of a scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchedulerOptions {
    /// Requests that run at once, no more than rows are fed at a time ([`Engine::prefill_chunk`]).
    pub max_running: usize,
    /// Requests that wait, at least one.
    pub max_queued: usize,
    /// Prompt rows of a step while others generate.
    pub prompt_rows_per_step: usize,
    /// Bytes of the prefixes that are kept for later prompts, within `kv_bytes`; 0 keeps none.
    pub prefix_bytes: u64,
    /// Bytes that the KV caches of running requests and kept prefixes may take together; default: what the memory plan has for them
    /// ([`Engine::kv_budget`]).
    pub kv_bytes: Option<u64>,
}

impl Default for SchedulerOptions {
    fn default() -> Self {
        SchedulerOptions {
            max_running: 32,
            max_queued: 256,
            prompt_rows_per_step: 128,
            prefix_bytes: 1 << 30,
            kv_bytes: None,
        }
    }
}

/// How a scheduler ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shutdown {
    /// Once all requests that it has are answered.
    Finish,
    /// Within one step: all requests are cancelled.
    Cancel,
}

/// A running scheduler. Dropping it cancels what runs and waits for the end.
pub struct Scheduler {
    handle: Handle,
}

/// A way to a scheduler. Clones lead to the same one.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
}

/// What handles and the thread share.
struct Shared {
    engine: Engine,
    options: SchedulerOptions,
    kv_bytes: u64,
    inbox: Mutex<Inbox>,
    /// Told of requests and of the end.
    wake: Condvar,
    metrics: Mutex<SchedulerMetrics>,
    /// Ends the pass that runs.
    cancelling: AtomicBool,
    next_id: AtomicU64,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Requests that wait, and whether more are taken.
struct Inbox {
    queue: FairQueue<Waiting>,
    closed: bool,
}

impl Shared {
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_cancelling(&self) -> bool {
        self.cancelling.load(Ordering::Relaxed)
    }
}

impl Scheduler {
    /// Starts a scheduler on `engine`, which others may use beside it: they take turns with its steps.
    ///
    /// # Errors
    /// A model without a tokenizer; a thread that can't be had.
    pub fn start(engine: Engine, options: SchedulerOptions) -> Result<Scheduler, EngineError> {
        engine.tokenizer()?;
        let shared = Arc::new(Shared {
            kv_bytes: options.kv_bytes.unwrap_or_else(|| engine.kv_budget()),
            engine,
            options,
            inbox: Mutex::new(Inbox { queue: FairQueue::new(), closed: false }),
            wake: Condvar::new(),
            metrics: Mutex::default(),
            cancelling: AtomicBool::new(false),
            next_id: AtomicU64::new(0),
            thread: Mutex::new(None),
        });
        let worker = shared.clone();
        let thread = std::thread::Builder::new()
            .name("scheduler".to_owned())
            .spawn(move || Worker::new(&worker).run())
            .map_err(EngineError::Thread)?;
        *shared.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(Scheduler { handle: Handle { shared } })
    }

    /// A way in for requests, to be given to other threads.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.handle.shutdown(Shutdown::Cancel);
    }
}

impl Handle {
    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    /// Puts a request into the queue.
    ///
    /// # Errors
    /// One that can never run, a full queue, a scheduler that ends.
    pub fn submit(&self, request: Request) -> Result<Ticket, SubmitError> {
        let Shared { engine, options, kv_bytes: limit, .. } = &*self.shared;
        let (context, tokens) = (engine.context(), request.prompt.len());
        if tokens > context {
            return Err(SubmitError::TooLong { tokens, context });
        }
        engine.check(0, &request.prompt)?;
        request.options.sampling.check(engine.spec().n_vocab)?;
        let answer = request.options.max_tokens.unwrap_or(context);
        let bytes = engine.kv_bytes(tokens.saturating_add(answer).min(context));
        if bytes > *limit {
            return Err(SubmitError::TooLarge { bytes, limit: *limit });
        }
        let dropped = CancelFlag::new();
        let stop = Stop { cancel: request.options.cancel.clone(), dropped: dropped.clone() };
        let mut inbox = self.shared.inbox();
        if inbox.closed {
            return Err(SubmitError::Closed);
        }
        if inbox.queue.len() >= options.max_queued.max(1) {
            return Err(SubmitError::QueueFull { retry_after: self.retry_after(inbox.queue.len()) });
        }
        let client = request.client;
        inbox.queue.push(client, Waiting { request, stop, bytes, submitted: Instant::now() });
        drop(inbox);
        self.shared.wake.notify_one();
        Ok(Ticket { id: self.shared.next_id.fetch_add(1, Ordering::Relaxed), dropped, detached: false })
    }

    /// About when a queue of this length will have moved on by one place.
    fn retry_after(&self, queued: usize) -> Duration {
        let metrics = self.metrics();
        let turns = queued as f64 / metrics.running.max(1) as f64;
        Duration::from_secs_f64((metrics.mean_request.as_secs_f64() * turns).ceil().clamp(1.0, 60.0))
    }

    /// Counts so far; cheap.
    pub fn metrics(&self) -> SchedulerMetrics {
        let metrics = *self.shared.metrics.lock().unwrap_or_else(PoisonError::into_inner);
        SchedulerMetrics { kv_limit: self.shared.kv_bytes, ..metrics }
    }

    /// Requests that wait.
    pub fn queued(&self) -> usize {
        self.shared.inbox().queue.len()
    }

    /// Takes no more requests, ends those that are there as `how` says, and waits for that. A second call may turn
    /// [`Shutdown::Finish`] into [`Shutdown::Cancel`]. Called from an [`OnEvent`] it does not wait.
    pub fn shutdown(&self, how: Shutdown) {
        if how == Shutdown::Cancel {
            self.shared.cancelling.store(true, Ordering::Relaxed);
        }
        self.shared.inbox().closed = true;
        self.shared.wake.notify_all();
        let own = std::thread::current().id();
        let mut thread = self.shared.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.as_ref().is_some_and(|t| t.thread().id() != own)
            && let Some(thread) = thread.take()
        {
            // A panic of the thread, which can only be an event's receiver's, has been reported where it happened.
            let _ = thread.join();
        }
    }
}
