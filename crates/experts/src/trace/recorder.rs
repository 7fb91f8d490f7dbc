//! Writing a trace while a model runs.
//!
//! Invariant: the file ends with a whole record after every pass through the layers, so a killed process loses one token at most.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{TraceError, TraceHeader, wire};
use crate::{RouteBatch, RouteSink};

/// Bytes that are gathered at most.
const BUFFER: usize = 1 << 16;

/// Writes routes to a file.
pub struct Recorder {
    path: PathBuf,
    file: File,
    header: TraceHeader,
    buffer: Vec<u8>,
    last_layer: u32,
    /// What went wrong first: a forward pass can't be told.
    failed: Option<TraceError>,
}

impl Recorder {
    /// Makes the file, or empties it, and writes the header.
    ///
    /// # Errors
    /// A file that can't be written; a header of more than a trace may have.
    pub fn create(path: &Path, header: TraceHeader) -> Result<Recorder, TraceError> {
        if let Some(what) = header.fault() {
            return Err(TraceError::Misfit { what });
        }
        if header.model.len() > wire::LONGEST_NAME as usize {
            return Err(TraceError::Misfit {
                what: format!("a model's name of {} bytes", header.model.len()),
            });
        }
        let file = File::create(path).map_err(|source| TraceError::Io {
            doing: "create",
            path: path.to_owned(),
            source,
        })?;
        let mut buffer = Vec::with_capacity(BUFFER);
        buffer.extend_from_slice(wire::MAGIC);
        for n in [wire::VERSION, header.model.len() as u32] {
            buffer.extend_from_slice(&n.to_le_bytes());
        }
        buffer.extend_from_slice(header.model.as_bytes());
        for n in [header.top_k, header.layers.len() as u32] {
            buffer.extend_from_slice(&n.to_le_bytes());
        }
        for layer in &header.layers {
            buffer.extend_from_slice(&layer.n_experts.to_le_bytes());
            buffer.extend_from_slice(&layer.expert_bytes.to_le_bytes());
        }
        let mut recorder =
            Recorder { path: path.to_owned(), file, header, buffer, last_layer: 0, failed: None };
        recorder.flush()?;
        Ok(recorder)
    }

    /// Adds a batch.
    ///
    /// # Errors
    /// A batch that doesn't fit the header; a file that can't be written.
    pub fn record(&mut self, batch: &RouteBatch<'_>) -> Result<(), TraceError> {
        if let Some(what) = self.header.misfit(batch) {
            return Err(TraceError::Misfit { what });
        }
        if batch.layer <= self.last_layer || self.buffer.len() > BUFFER / 2 {
            self.flush()?;
        }
        self.last_layer = batch.layer;
        wire::record(&mut self.buffer, batch);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), TraceError> {
        let written = self.file.write_all(&self.buffer);
        self.buffer.clear();
        written.map_err(|source| TraceError::Io { doing: "write", path: self.path.clone(), source })
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// The first thing that went wrong, also of what [`RouteSink::routed`] was told.
    pub fn finish(mut self) -> Result<(), TraceError> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.flush(),
        }
    }
}

impl RouteSink for Recorder {
    fn routed(&mut self, batch: &RouteBatch<'_>) {
        if self.failed.is_none() {
            self.failed = self.record(batch).err();
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _: io::Result<()> = self.file.write_all(&self.buffer);
    }
}
