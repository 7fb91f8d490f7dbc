//! The tokenizer, built on its own thread while the engine opens.
//!
//! Invariant: opening never waits for it; who asks first waits, and a failure is reported to everyone who asks.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

use turbospark_format::Gguf;
use turbospark_text::{TextError, Tokenizer};

use crate::EngineError;

type Built = Result<Tokenizer, TextError>;

pub(crate) struct TokenizerTask {
    gguf: Arc<Gguf>,
    thread: Mutex<Option<JoinHandle<Built>>>,
    /// The error as text: it is handed out more than once.
    built: OnceLock<Result<Tokenizer, String>>,
}

impl TokenizerTask {
    pub(crate) fn start(gguf: &Arc<Gguf>) -> TokenizerTask {
        let file = gguf.clone();
        let build = move || Tokenizer::from_metadata(file.metadata());
        // Where no thread can be had, the first to ask builds it.
        let thread = std::thread::Builder::new().name("tokenizer".to_owned()).spawn(build).ok();
        TokenizerTask { gguf: gguf.clone(), thread: Mutex::new(thread), built: OnceLock::new() }
    }

    pub(crate) fn get(&self) -> Result<&Tokenizer, EngineError> {
        let built = self.built.get_or_init(|| {
            let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
            let built = match thread.map(JoinHandle::join) {
                Some(Ok(built)) => built,
                // None was started, or it died of something that building here will show.
                Some(Err(_)) | None => Tokenizer::from_metadata(self.gguf.metadata()),
            };
            built.map_err(|e| e.to_string())
        });
        built.as_ref().map_err(|e| EngineError::Tokenizer(e.clone()))
    }
}
