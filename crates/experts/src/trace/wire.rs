//! The bytes of a trace.
//!
//! ```text
//! header   "TSROUTES"  version u32  name: length u32, UTF-8  top_k u32
//!          layers u32, and for each: experts u32 (0: none), bytes of an expert u64
//! record   'P' (prefill) or 'D' (decode)  layer  n_rows  n_experts
//!          the experts: the first, then each one's distance to the one before
//!          with n_rows > 1: each expert's rows
//! ```
//!
//! Fixed numbers are little-endian; those of a record are LEB128. Records follow one another to the end of the file; one that the end
//! cuts off is what a killed process leaves, and is not an error.

use crate::{Phase, RouteBatch};

pub(super) const MAGIC: &[u8; 8] = b"TSROUTES";
pub(super) const VERSION: u32 = 1;
/// Bytes of a model's name.
pub(super) const LONGEST_NAME: u32 = 4096;
/// Layers times the most experts of one: several times the largest models there are. What a cache of them takes stays small.
pub(super) const MOST_KEYS: u64 = 1 << 18;

pub(super) fn tag(phase: Phase) -> u8 {
    match phase {
        Phase::Prefill => b'P',
        Phase::Decode => b'D',
    }
}

pub(super) fn phase(tag: u8) -> Option<Phase> {
    match tag {
        b'P' => Some(Phase::Prefill),
        b'D' => Some(Phase::Decode),
        _ => None,
    }
}

fn number(out: &mut Vec<u8>, mut n: u32) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

pub(super) fn record(out: &mut Vec<u8>, batch: &RouteBatch<'_>) {
    out.push(tag(batch.phase));
    for n in [batch.layer, batch.n_rows, batch.experts.len() as u32] {
        number(out, n);
    }
    let mut before = 0;
    for &expert in batch.experts {
        number(out, expert - before);
        before = expert;
    }
    if batch.n_rows > 1 {
        batch.rows.iter().for_each(|&n| number(out, n));
    }
}
