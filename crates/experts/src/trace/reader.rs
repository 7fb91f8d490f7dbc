//! Reading traces, which may come from strangers.
//!
//! Invariant: every batch of a [`Trace`] fits its header: its layer has all of its experts, which ascend, with rows from 1 to the batch's.
//! Memory grows with the bytes that were read, not with what they promise.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use super::{TraceError, wire};
use crate::{CacheShape, Phase, RouteBatch};

/// What a trace was recorded from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceHeader {
    /// The model.
    pub model: String,
    /// Experts that a row is routed to.
    pub top_k: u32,
    /// All layers of the model.
    pub layers: Vec<TraceLayer>,
}

/// A layer's experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceLayer {
    /// How many it has; 0: none.
    pub n_experts: u32,
    /// Bytes of one.
    pub expert_bytes: u64,
}

impl TraceHeader {
    /// Experts of all layers.
    pub fn n_experts(&self) -> usize {
        self.layers.iter().map(|layer| layer.n_experts as usize).sum()
    }

    /// The shape of a cache of `slots` experts for this model.
    pub fn cache(&self, slots: usize) -> CacheShape {
        let experts = self.layers.iter().map(|layer| layer.n_experts as usize).max().unwrap_or_default();
        CacheShape { layers: self.layers.len(), experts, slots }
    }

    /// Bytes of a slot: it has to hold any layer's expert.
    pub fn slot_bytes(&self) -> u64 {
        self.layers.iter().map(|layer| layer.expert_bytes).max().unwrap_or_default()
    }

    /// What is wrong with `batch` under this header.
    pub(super) fn misfit(&self, batch: &RouteBatch<'_>) -> Option<String> {
        let RouteBatch { layer, n_rows, experts, rows, .. } = *batch;
        let Some(has) = self.layers.get(layer as usize) else {
            return Some(format!("layer {layer} of {}", self.layers.len()));
        };
        if experts.is_empty() || n_rows == 0 || rows.len() != experts.len() {
            return Some(format!("{n_rows} rows, {} experts, {} counts", experts.len(), rows.len()));
        }
        if let Some(expert) = experts.iter().find(|&&expert| expert >= has.n_experts) {
            return Some(format!("expert {expert} of the {} of layer {layer}", has.n_experts));
        }
        if !experts.is_sorted_by(|a, b| a < b) {
            return Some("experts that don't ascend".to_owned());
        }
        let bad = rows.iter().find(|&&n| n == 0 || n > n_rows);
        bad.map(|n| format!("an expert with {n} of {n_rows} rows"))
    }

    /// What is wrong with the header itself.
    pub(super) fn fault(&self) -> Option<String> {
        let CacheShape { layers, experts, .. } = self.cache(0);
        let keys = layers as u64 * experts as u64;
        (keys > wire::MOST_KEYS).then(|| format!("{layers} layers of {experts} experts are too many"))
    }
}

/// A trace in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    header: TraceHeader,
    batches: Vec<Batch>,
    /// Of all batches, one after the other.
    experts: Vec<u32>,
    rows: Vec<u32>,
    cut_off: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Batch {
    phase: Phase,
    layer: u32,
    n_rows: u32,
    /// Where its experts end.
    end: usize,
}

impl Trace {
    /// A trace without batches.
    ///
    /// # Errors
    /// A header of more layers and experts than a trace may have.
    pub fn new(header: TraceHeader) -> Result<Trace, TraceError> {
        match header.fault() {
            Some(what) => Err(TraceError::Misfit { what }),
            None => Ok(Trace { header, batches: vec![], experts: vec![], rows: vec![], cut_off: false }),
        }
    }

    /// Adds a batch at the end.
    ///
    /// # Errors
    /// A batch that doesn't fit the header.
    pub fn push(&mut self, batch: &RouteBatch<'_>) -> Result<(), TraceError> {
        if let Some(what) = self.header.misfit(batch) {
            return Err(TraceError::Misfit { what });
        }
        self.experts.extend_from_slice(batch.experts);
        self.rows.extend_from_slice(batch.rows);
        let RouteBatch { phase, layer, n_rows, .. } = *batch;
        self.batches.push(Batch { phase, layer, n_rows, end: self.experts.len() });
        Ok(())
    }

    /// Reads a file.
    ///
    /// # Errors
    /// What can't be read or is no whole trace. A last record that the file's end cuts off is left out, see
    /// [`Trace::cut_off`].
    pub fn open(path: &Path) -> Result<Trace, TraceError> {
        let file = File::open(path).map_err(|source| TraceError::Io {
            doing: "open",
            path: path.to_owned(),
            source,
        })?;
        Trace::read(BufReader::with_capacity(1 << 16, file), path)
    }

    /// Reads from `source`, which errors call `path`.
    ///
    /// # Errors
    /// As [`Trace::open`].
    pub fn read(source: impl BufRead, path: &Path) -> Result<Trace, TraceError> {
        let mut bytes = Bytes { source, offset: 0 };
        let mut begin = 0;
        let result = read_header(&mut bytes).and_then(|header| {
            let mut trace = Trace::new(header).map_err(|e| Fault::Damaged(e.to_string()))?;
            loop {
                begin = bytes.offset;
                match trace.read_record(&mut bytes) {
                    Ok(true) => {}
                    Ok(false) => return Ok(trace),
                    Err(Fault::End) => {
                        trace.cut_off = true;
                        return Ok(trace);
                    }
                    Err(other) => return Err(other),
                }
            }
        });
        let path = path.to_owned();
        result.map_err(|fault| match fault {
            Fault::Io(source) => TraceError::Io { doing: "read", path, source },
            Fault::Magic => TraceError::NotATrace { path },
            Fault::Version(version) => TraceError::Version { path, version },
            Fault::End => {
                TraceError::Damaged { path, offset: begin, what: "the header is cut off".to_owned() }
            }
            Fault::Damaged(what) => TraceError::Damaged { path, offset: begin, what },
        })
    }

    /// False: there is none.
    fn read_record(&mut self, bytes: &mut Bytes<impl BufRead>) -> Result<bool, Fault> {
        let Some(tag) = bytes.byte()? else { return Ok(false) };
        let phase =
            wire::phase(tag).ok_or_else(|| Fault::Damaged(format!("no record begins with {tag:#04x}")))?;
        let [layer, n_rows, n_experts] = [bytes.number()?, bytes.number()?, bytes.number()?];
        let begin = self.experts.len();
        let mut expert = 0_u32;
        for i in 0..n_experts {
            let step = bytes.number()?;
            let next = expert.checked_add(step).filter(|_| i == 0 || step > 0);
            let known =
                next.filter(|_| self.header.layers.get(layer as usize).is_some_and(|l| i < l.n_experts));
            expert = known
                .ok_or_else(|| Fault::Damaged(format!("{n_experts} experts that layer {layer} has not")))?;
            self.experts.push(expert);
        }
        for _ in 0..n_experts {
            let rows = if n_rows > 1 { bytes.number()? } else { 1 };
            self.rows.push(rows);
        }
        let (experts, rows) = (&self.experts[begin..], &self.rows[begin..]);
        if let Some(what) = self.header.misfit(&RouteBatch { phase, layer, n_rows, experts, rows }) {
            return Err(Fault::Damaged(what));
        }
        self.batches.push(Batch { phase, layer, n_rows, end: self.experts.len() });
        Ok(true)
    }

    /// What it was recorded from.
    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// Whether the end of the file cut off a record, which is left out then.
    pub fn cut_off(&self) -> bool {
        self.cut_off
    }

    /// The batches in their order.
    pub fn batches(&self) -> impl Iterator<Item = RouteBatch<'_>> {
        let mut begin = 0;
        self.batches.iter().map(move |&Batch { phase, layer, n_rows, end }| {
            let range = begin..end;
            begin = end;
            let (experts, rows) = (&self.experts[range.clone()], &self.rows[range]);
            RouteBatch { phase, layer, n_rows, experts, rows }
        })
    }

    /// Experts asked for, by all batches together.
    pub fn requests(&self) -> usize {
        self.experts.len()
    }
}

enum Fault {
    Io(io::Error),
    Magic,
    Version(u32),
    /// The bytes end within something.
    End,
    Damaged(String),
}

fn read_header(bytes: &mut Bytes<impl BufRead>) -> Result<TraceHeader, Fault> {
    let magic: [u8; 8] = bytes.array().map_err(|e| if matches!(e, Fault::End) { Fault::Magic } else { e })?;
    if magic != *wire::MAGIC {
        return Err(Fault::Magic);
    }
    let version = bytes.u32()?;
    if version != wire::VERSION {
        return Err(Fault::Version(version));
    }
    let length = bytes.u32()?;
    if length > wire::LONGEST_NAME {
        return Err(Fault::Damaged(format!("a model's name of {length} bytes")));
    }
    let mut name = vec![0; length as usize];
    bytes.fill(&mut name)?;
    let model =
        String::from_utf8(name).map_err(|_| Fault::Damaged("the model's name is not UTF-8".to_owned()))?;
    let (top_k, n_layers) = (bytes.u32()?, bytes.u32()?);
    let mut layers = Vec::new();
    for _ in 0..n_layers {
        if layers.len() as u64 >= wire::MOST_KEYS {
            return Err(Fault::Damaged(format!("{n_layers} layers")));
        }
        layers.push(TraceLayer { n_experts: bytes.u32()?, expert_bytes: u64::from_le_bytes(bytes.array()?) });
    }
    Ok(TraceHeader { model, top_k, layers })
}

struct Bytes<R> {
    source: R,
    offset: u64,
}

impl<R: BufRead> Bytes<R> {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), Fault> {
        self.source.read_exact(out).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => Fault::End,
            _ => Fault::Io(e),
        })?;
        self.offset += out.len() as u64;
        Ok(())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let mut out = [0; N];
        self.fill(&mut out)?;
        Ok(out)
    }

    fn u32(&mut self) -> Result<u32, Fault> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// `None` at the end.
    fn byte(&mut self) -> Result<Option<u8>, Fault> {
        match self.array::<1>() {
            Ok([byte]) => Ok(Some(byte)),
            Err(Fault::End) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// LEB128.
    fn number(&mut self) -> Result<u32, Fault> {
        let mut n = 0_u64;
        for shift in (0..35).step_by(7) {
            let byte = self.byte()?.ok_or(Fault::End)?;
            n |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return u32::try_from(n).map_err(|_| Fault::Damaged(format!("the number {n}")));
            }
        }
        Err(Fault::Damaged("a number of more than five bytes".to_owned()))
    }
}
