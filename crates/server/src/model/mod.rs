//! [`Model`]: an opened model with everything that answers need: engine, scheduler, template, output format, grammars.
//!
//! Invariant: whatever a request asks for gives an answer or a refusal that names the field; compiling, rendering and tokenising
//! never run on a thread of the runtime.

mod constraint;
mod embed;
mod info;
mod prompt;
mod taking;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use tokio::sync::mpsc;
use turbospark_engine::scheduler::{Handle, Request, Scheduler, SchedulerOptions, SubmitError};
use turbospark_engine::{Engine, EngineError, EngineOptions};
use turbospark_text::{ChatTemplate, Constraints, Dialect, OutputFormat, Tokenizer};

pub use embed::Embedding;
pub use info::ModelInfo;
pub(crate) use taking::Taking;

use crate::metrics::Metrics;
use crate::{Answer, Ask, Prompt, Refusal};

/// Events that may wait for a reader before its answer is given up.
const BACKLOG: usize = 8192;

/// An opened model.
pub(crate) struct Model {
    pub(crate) name: String,
    pub(crate) handle: Handle,
    /// Ends when the model does.
    _scheduler: Scheduler,
    pub(crate) template: Option<ChatTemplate>,
    format: OutputFormat,
    constraints: OnceLock<Result<Constraints, String>>,
    users: AtomicUsize,
    last_used: Mutex<Instant>,
    /// Embeddings take turns, so that they don't crowd out answers.
    embedding: tokio::sync::Semaphore,
}

/// Keeps a model loaded while it lives.
pub(crate) struct InUse(Arc<Model>);

impl InUse {
    pub(crate) fn new(model: Arc<Model>) -> InUse {
        model.users.fetch_add(1, Ordering::SeqCst);
        InUse(model)
    }

    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    pub(crate) fn model(&self) -> &Arc<Model> {
        &self.0
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        *self.0.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.0.users.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Model {
    /// Opens a model; takes as long as its file does.
    pub(crate) fn open(
        name: &str,
        path: &Path,
        options: EngineOptions,
        scheduling: SchedulerOptions,
        kv_memory: Option<u64>,
    ) -> Result<Model, EngineError> {
        let engine = Engine::open(path, options)?;
        let tokenizer = engine.tokenizer()?;
        let template = ChatTemplate::from_metadata(engine.gguf().metadata())?;
        let source = template.as_ref().map(ChatTemplate::source);
        let architecture = engine.spec().architecture.clone();
        let dialect = Dialect::detect(source, &architecture, |t| tokenizer.id_of(t).is_some());
        let format = OutputFormat::new(dialect, tokenizer);
        // What the plan leaves over may hold the caches of more requests; of that, some is left for what no plan counts.
        let spare = engine.plan().map_or(0, |plan| plan.unused() / 10 * 9);
        let one = engine.kv_bytes(engine.context());
        let kv = one.saturating_add(kv_memory.unwrap_or(spare));
        let scheduling = SchedulerOptions { kv_bytes: Some(kv), ..scheduling };
        let scheduler = Scheduler::start(engine, scheduling)?;
        Ok(Model {
            name: name.to_owned(),
            handle: scheduler.handle(),
            _scheduler: scheduler,
            template,
            format,
            constraints: OnceLock::new(),
            users: AtomicUsize::new(0),
            last_used: Mutex::new(Instant::now()),
            embedding: tokio::sync::Semaphore::new(1),
        })
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.handle.engine()
    }

    /// The tokenizer, which was there when the model was opened.
    pub(crate) fn tokenizer(&self) -> &Tokenizer {
        match self.engine().tokenizer() {
            Ok(tokenizer) => tokenizer,
            Err(_) => unreachable!("a model without a tokenizer does not open"),
        }
    }

    /// Since when nobody uses it; `None` while somebody does.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let idle = self.users.load(Ordering::SeqCst) == 0;
        idle.then(|| *self.last_used.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Bytes that it may come to take, by the plan and the caches of all requests.
    pub(crate) fn planned_bytes(&self) -> u64 {
        self.engine().plan().map_or(0, turbospark_experts::plan::MemoryPlan::total)
    }

    /// Submits a request.
    pub(crate) async fn answer(
        self: Arc<Model>,
        ask: Ask,
        client: u64,
        metrics: Arc<Metrics>,
    ) -> Result<Answer, Refusal> {
        let submitted = Instant::now();
        let in_use = InUse::new(self.clone());
        let model = self.clone();
        let ready = blocking(move || prompt::ready(&model, ask)).await??;
        let (sender, events) = mpsc::channel(BACKLOG);
        let on_event = Box::new(move |event| sender.try_send((Instant::now(), event)).is_ok());
        let request = Request { prompt: ready.tokens, options: ready.options, client, on_event };
        let ticket = self.handle.submit(request).map_err(|e| submit_refusal(&e))?;
        Ok(Answer::new(events, ready.taking, ticket, submitted, metrics, in_use))
    }

    /// Tokens of a prompt.
    pub(crate) async fn count_tokens(self: Arc<Model>, prompt: Prompt) -> Result<usize, Refusal> {
        let in_use = InUse::new(self);
        blocking(move || prompt::rendered(in_use.model(), &prompt).map(|r| r.tokens.len())).await?
    }

    fn constraints(&self) -> Result<&Constraints, Refusal> {
        let built =
            self.constraints.get_or_init(|| Constraints::new(self.tokenizer()).map_err(|e| e.to_string()));
        built
            .as_ref()
            .map_err(|e| Refusal::Internal(format!("this model's vocabulary takes no constraint: {e}")))
    }
}

/// Runs what takes long off the runtime's threads.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    let span = tracing::Span::current();
    let done = tokio::task::spawn_blocking(move || span.in_scope(work)).await;
    done.map_err(|_| Refusal::Internal("the server failed at this request; its log says where".to_owned()))
}

fn submit_refusal(error: &SubmitError) -> Refusal {
    match error {
        SubmitError::QueueFull { retry_after } => Refusal::Busy { retry_after: *retry_after },
        SubmitError::Closed => Refusal::Unavailable("the server is shutting down".to_owned()),
        SubmitError::TooLong { .. } => Refusal::bad("messages", error.to_string()),
        SubmitError::TooLarge { .. } => Refusal::bad("max_tokens", error.to_string()),
        SubmitError::Invalid(error) => refusal_of(error),
        _ => Refusal::Internal(error.to_string()),
    }
}

/// What an engine's error is to a client.
pub(crate) fn refusal_of(error: &EngineError) -> Refusal {
    match error {
        EngineError::BadSampling { field, .. } => Refusal::bad(*field, error.to_string()),
        EngineError::TokenOutOfRange { .. }
        | EngineError::EmptyPrompt
        | EngineError::ContextFull { .. }
        | EngineError::NothingToSample
        | EngineError::Text(_)
        | EngineError::Constraint(_) => Refusal::Bad { field: None, message: error.to_string() },
        EngineError::Cancelled { .. } => Refusal::Unavailable("the request was cancelled".to_owned()),
        _ => Refusal::Internal(error.to_string()),
    }
}
