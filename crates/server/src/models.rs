//! [`Models`]: several models by name, loaded when asked for and unloaded when idle, in one budget.
//!
//! Invariant: the plans of all loaded models together stay within the budget; a model that somebody uses is never unloaded.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use turbospark_engine::scheduler::{SchedulerOptions, Shutdown};
use turbospark_engine::{EngineError, EngineOptions};

use crate::Refusal;
use crate::model::{InUse, Model, ModelInfo, blocking};

/// A model that may be asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelSource {
    /// Its name in requests.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
}

impl ModelSource {
    /// Reads `PATH` or `NAME=PATH`; without a name it is the file's, less `.gguf`.
    pub fn parse(text: &str) -> ModelSource {
        if let Some((name, path)) = text.split_once('=')
            && !name.is_empty()
            && !name.contains(['/', '\\'])
        {
            return ModelSource { name: name.to_owned(), path: path.into() };
        }
        let path = PathBuf::from(text);
        let name = path.file_stem().map_or_else(|| text.to_owned(), |n| n.to_string_lossy().into_owned());
        ModelSource { name, path }
    }
}

/// All models of a server.
pub(crate) struct Models {
    entries: Vec<Entry>,
    options: EngineOptions,
    scheduling: SchedulerOptions,
    kv_memory: Option<u64>,
    budget: Option<u64>,
    /// One model loads at a time, so that each sees what the others take.
    loading: tokio::sync::Mutex<()>,
}

struct Entry {
    info: ModelInfo,
    loaded: Mutex<Option<Arc<Model>>>,
}

impl Entry {
    fn get(&self) -> Option<Arc<Model>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes the model out if nobody uses it.
    fn take_idle(&self, least: Duration) -> Option<Arc<Model>> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = loaded.as_ref().and_then(|m| m.idle_since()).is_some_and(|at| at.elapsed() >= least);
        if idle { loaded.take() } else { None }
    }
}

impl Models {
    /// Reads the headers of all models.
    pub(crate) fn new(
        sources: &[ModelSource],
        options: EngineOptions,
        scheduling: SchedulerOptions,
        kv_memory: Option<u64>,
    ) -> Result<Models, String> {
        let mut names = BTreeMap::new();
        let mut entries = Vec::new();
        for source in sources {
            if let Some(other) = names.insert(source.name.clone(), &source.path) {
                let (name, path) = (&source.name, source.path.display());
                return Err(format!(
                    "{path} and {} are both named {name}: name one by NAME=PATH",
                    other.display()
                ));
            }
            let info = ModelInfo::read(&source.name, &source.path).map_err(|e| e.to_string())?;
            entries.push(Entry { info, loaded: Mutex::new(None) });
        }
        if entries.is_empty() {
            return Err("a server needs at least one model".to_owned());
        }
        let budget = options.memory.or_else(|| turbospark_experts::plan::available().map(|a| a.bytes));
        let loading = tokio::sync::Mutex::new(());
        Ok(Models { entries, options, scheduling, kv_memory, budget, loading })
    }

    /// What all models together may take; `None` where nobody says.
    pub(crate) fn budget(&self) -> Option<u64> {
        self.budget
    }

    /// Descriptions of all, in the order in which they were given.
    pub(crate) fn infos(&self) -> Vec<ModelInfo> {
        self.entries.iter().map(describe).collect()
    }

    pub(crate) fn info(&self, name: &str) -> Result<ModelInfo, Refusal> {
        self.entry(name).map(describe)
    }

    /// Models in memory.
    pub(crate) fn loaded(&self) -> Vec<Arc<Model>> {
        self.entries.iter().filter_map(Entry::get).collect()
    }

    fn entry(&self, name: &str) -> Result<&Entry, Refusal> {
        if name.is_empty() || name == "default" {
            return Ok(&self.entries[0]);
        }
        self.entries.iter().find(|e| e.info.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.entries.iter().map(|e| e.info.name.as_str()).collect();
            Refusal::NotFound(format!("there is no model {name:?}; there are: {}", names.join(", ")))
        })
    }

    /// The model, loaded if need be.
    pub(crate) async fn get(self: &Arc<Self>, name: &str) -> Result<InUse, Refusal> {
        let entry = self.entry(name)?;
        let used = |entry: &Entry| {
            let loaded = entry.loaded.lock().unwrap_or_else(PoisonError::into_inner);
            loaded.as_ref().map(|model| InUse::new(model.clone()))
        };
        if let Some(model) = used(entry) {
            return Ok(model);
        }
        let _one = self.loading.lock().await;
        if let Some(model) = used(entry) {
            return Ok(model);
        }
        let (models, name) = (self.clone(), entry.info.name.clone());
        // The lock is held by this future: where it is dropped, the load goes on and its result is kept.
        blocking(move || models.load(&name)).await?
    }

    fn load(&self, name: &str) -> Result<InUse, Refusal> {
        let entry = self.entry(name)?;
        loop {
            let taken: u64 = self.loaded().iter().map(|m| m.planned_bytes()).sum();
            let kv = self.kv_memory.unwrap_or(0);
            let memory = self.budget.map(|budget| budget.saturating_sub(taken).saturating_sub(kv));
            let options = EngineOptions { memory, ..self.options };
            tracing::info!(model = name, memory, "loading");
            match Model::open(name, &entry.info.path, options, self.scheduling, self.kv_memory) {
                Ok(model) => {
                    let model = Arc::new(model);
                    let in_use = InUse::new(model.clone());
                    *entry.loaded.lock().unwrap_or_else(PoisonError::into_inner) = Some(model);
                    return Ok(in_use);
                }
                Err(error @ EngineError::Plan(_)) => {
                    let Some(idle) = self.longest_idle() else {
                        let others = self.loaded().len();
                        let beside = if others > 0 { " beside the models that are in use" } else { "" };
                        return Err(Refusal::Unavailable(format!("{name} does not fit{beside}: {error}")));
                    };
                    unload(&idle);
                }
                Err(error) => {
                    tracing::error!(model = name, %error, "can't be loaded");
                    return Err(Refusal::Internal(format!("{name} can't be loaded: {error}")));
                }
            }
        }
    }

    /// Takes out the model that has been idle longest.
    fn longest_idle(&self) -> Option<Arc<Model>> {
        let since = |e: &Entry| e.get().and_then(|m| m.idle_since());
        let mut idle: Vec<_> = self.entries.iter().filter_map(|e| Some((since(e)?, e))).collect();
        idle.sort_by_key(|(at, _)| *at);
        idle.into_iter().find_map(|(_, entry)| entry.take_idle(Duration::ZERO))
    }

    /// Unloads the models that have been idle that long.
    pub(crate) fn unload_idle(&self, least: Duration) {
        self.entries.iter().filter_map(|e| e.take_idle(least)).for_each(|model| unload(&model));
    }

    /// Ends all schedulers and waits for them.
    pub(crate) fn shutdown(&self, how: Shutdown) {
        for model in self.loaded() {
            model.handle.shutdown(how);
        }
    }
}

fn describe(entry: &Entry) -> ModelInfo {
    let mut info = entry.info.clone();
    if let Some(model) = entry.get() {
        info.loaded = true;
        info.context = model.engine().context();
    }
    info
}

fn unload(model: &Arc<Model>) {
    tracing::info!(model = model.name, "unloading");
    model.handle.shutdown(Shutdown::Cancel);
}
