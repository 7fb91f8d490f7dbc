//! [`App`]: what all APIs share. Handlers take it as axum's state.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use turbospark_engine::scheduler::Shutdown;

use crate::metrics::Metrics;
use crate::model::{Embedding, ModelInfo};
use crate::models::Models;
use crate::openai::Stored;
use crate::{Answer, Ask, Prompt, Refusal};

/// The server's state. Clones share it.
#[derive(Clone)]
pub struct App(Arc<Shared>);

struct Shared {
    models: Arc<Models>,
    metrics: Arc<Metrics>,
    stored: Stored,
    started: Instant,
}

/// Who asks, for fairness between clients. The server puts it into each request's extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Client(pub u64);

impl App {
    pub(crate) fn new(models: Models) -> App {
        let shared = Shared {
            models: Arc::new(models),
            metrics: Arc::default(),
            stored: Stored::default(),
            started: Instant::now(),
        };
        App(Arc::new(shared))
    }

    /// Starts an answer by the model of that name, which is loaded if need be; an empty name means the first model.
    ///
    /// # Errors
    /// Whatever keeps the request from being queued.
    pub async fn answer(&self, model: &str, ask: Ask, client: u64) -> Result<Answer, Refusal> {
        let model = self.0.models.get(model).await?;
        model.model().clone().answer(ask, client, self.0.metrics.clone()).await
    }

    /// All models, in the order in which they were given.
    pub fn models(&self) -> Vec<ModelInfo> {
        self.0.models.infos()
    }

    /// One model.
    ///
    /// # Errors
    /// [`Refusal::NotFound`].
    pub fn model_info(&self, name: &str) -> Result<ModelInfo, Refusal> {
        self.0.models.info(name)
    }

    /// Tokens of a prompt.
    ///
    /// # Errors
    /// A model or prompt that can't be used.
    pub async fn count_tokens(&self, model: &str, prompt: &Prompt) -> Result<usize, Refusal> {
        let model = self.0.models.get(model).await?;
        model.model().clone().count_tokens(prompt.clone()).await
    }

    /// The vectors of texts or token lists, each of length 1.
    ///
    /// # Errors
    /// A model that is not made for it; an input that can't be read.
    pub async fn embed(&self, model: &str, inputs: Vec<Prompt>) -> Result<Vec<Embedding>, Refusal> {
        if !self.model_info(model)?.embeds {
            let why = "this model makes no embeddings: its file names no way of pooling that is supported";
            return Err(Refusal::bad("model", why));
        }
        let model = self.0.models.get(model).await?;
        model.model().clone().embed(inputs).await
    }

    /// Loads a model.
    ///
    /// # Errors
    /// As [`App::answer`].
    pub async fn load(&self, model: &str) -> Result<(), Refusal> {
        self.0.models.get(model).await.map(|_| ())
    }

    /// What is counted.
    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// Responses that later ones can go on from.
    pub(crate) fn stored(&self) -> &Stored {
        &self.0.stored
    }

    pub(crate) fn unload_idle(&self, least: Duration) {
        self.0.models.unload_idle(least);
    }

    pub(crate) fn shutdown(&self, how: Shutdown) {
        self.0.models.shutdown(how);
    }

    /// The state in short, for people.
    pub fn stats(&self) -> Value {
        let loaded = self.0.models.loaded();
        let mut stats = turbospark_experts::Stats::default();
        let (mut running, mut queued, mut memory) = (0, 0, 0);
        for model in &loaded {
            let metrics = model.handle.metrics();
            running += metrics.running;
            queued += model.handle.queued();
            memory += model.planned_bytes();
            let experts = model.engine().expert_stats();
            stats.requests += experts.requests;
            stats.hits += experts.hits;
        }
        json!({
            "model": loaded.first().map(|m| m.name.clone()).or_else(|| self.models().first().map(|m| m.name.clone())),
            "tokens_per_second": self.metrics().tokens_per_second(),
            "expert_hit_rate": (stats.requests > 0).then(|| stats.hit_rate()),
            "memory_bytes": memory,
            "budget_bytes": self.0.models.budget(),
            "running": running,
            "queued": queued,
            "uptime_seconds": self.0.started.elapsed().as_secs(),
        })
    }

    /// Everything that is counted, in Prometheus' text format.
    pub(crate) fn prometheus(&self) -> String {
        let mut out = String::new();
        self.metrics().write(&mut out);
        crate::exposition::models(&mut out, &self.0.models.loaded(), self.0.models.budget());
        out
    }
}
