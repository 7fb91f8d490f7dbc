//! Few rows, many positions: the pages of all rows are shared out among the threads.
//!
//! Parts go to memory and are merged afterwards, each query's in page order, so the result is that of one thread that
//! walks the pages. Rounds keep the memory for parts independent of the context's length.

use super::{AttnScratch, BUFFERS, Call, page_range};
use crate::kv::PAGE;
use crate::pool::SharedMut;
use smallvec::SmallVec;
use std::ops::Range;

/// A page for the queries of a block under one KV head; its parts go to `at`.
pub(super) struct Piece {
    block: usize,
    head: usize,
    page: usize,
    at: usize,
}

/// Floats of a round's parts per thread: they stay in the processor's caches between the two halves of a round.
pub(super) const ROUND_FLOATS: usize = 1 << 18;
/// Queries that a thread merges at a time.
const MERGED: usize = 8;

impl Call<'_> {
    pub(super) fn pages_in_parallel(&self, scratch: &mut AttnScratch) {
        scratch.totals.resize(self.rows.len() * self.params.n_heads * self.part_len, 0.0);
        let (mut pieces, mut len) = (std::mem::take(&mut scratch.pieces), 0);
        pieces.clear();
        for (b, block) in self.blocks.iter().enumerate() {
            let size = block.len() * self.group * self.part_len;
            for head in 0..self.n_kv {
                for page in page_range(self.params, &self.rows[block.clone()]) {
                    if len + size > ROUND_FLOATS * self.cpu.threads() && len > 0 {
                        self.round(&pieces, len, scratch);
                        pieces.clear();
                        len = 0;
                    }
                    pieces.push(Piece { block: b, head, page, at: len });
                    len += size;
                }
            }
        }
        self.round(&pieces, len, scratch);
        scratch.pieces = pieces;
    }

    /// Computes the parts of `pieces`, `len` floats, and adds them to the totals.
    fn round(&self, pieces: &[Piece], len: usize, scratch: &mut AttnScratch) {
        if scratch.parts.len() < len {
            scratch.parts.resize(len, 0.0);
        }
        let parts = SharedMut::new(&mut scratch.parts);
        let per_task = pieces.len().div_ceil(4 * self.cpu.threads());
        self.cpu.pool.run(pieces.len().div_ceil(per_task), &|i| {
            BUFFERS.with_borrow_mut(|b| {
                for piece in &pieces[i * per_task..((i + 1) * per_task).min(pieces.len())] {
                    self.page(&self.blocks[piece.block], piece.head, piece.page, b, &mut |query, part| {
                        // SAFETY: each piece has its own place in the buffer.
                        unsafe { parts.slice(piece.at + query * self.part_len, self.part_len) }
                            .copy_from_slice(part);
                    });
                }
            });
        });
        let (parts, totals) = (&scratch.parts[..len], SharedMut::new(&mut scratch.totals));
        let mut tasks: SmallVec<[(&[Piece], Range<usize>); 64]> = SmallVec::new();
        for run in pieces.chunk_by(|a, b| (a.block, a.head) == (b.block, b.head)) {
            let queries = self.blocks[run[0].block].len() * self.group;
            tasks.extend((0..queries).step_by(MERGED).map(|from| (run, from..(from + MERGED).min(queries))));
        }
        self.cpu.split(tasks.len(), 8192_usize.div_ceil(len / tasks.len()), &|range| {
            for (run, queries) in &tasks[range] {
                for query in queries.clone() {
                    // SAFETY: a query under a head belongs to one task.
                    unsafe { self.merge_query(run, query, parts, &totals) };
                }
            }
        });
    }

    /// Adds a query's parts of `run`, pages of one block and head, to its total; after the last page it is finished.
    ///
    /// # Safety
    /// No other thread uses this query's total or output meanwhile.
    unsafe fn merge_query(&self, run: &[Piece], query: usize, parts: &[f32], totals: &SharedMut<f32>) {
        let Piece { block, head, .. } = run[0];
        let block = &self.blocks[block];
        let index = block.start * self.params.n_heads + head * block.len() * self.group + query;
        // SAFETY: the caller's promise.
        let total = unsafe { totals.slice(index * self.part_len, self.part_len) };
        for piece in run {
            let part = &parts[piece.at + query * self.part_len..][..self.part_len];
            self.add(block, query, piece.page, total, part);
        }
        let last = self.rows[block.clone()].iter().map(|r| r.position / PAGE).max();
        if run.last().map(|p| p.page) == last {
            self.finish(total, block, head, query);
        }
    }
}
