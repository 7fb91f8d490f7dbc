//! [`PrefixCache`]: sequences that were fed before, for prompts that begin as they do.
//!
//! Invariant: entries are never written, only forked, so the memory that they share is counted once and stays as it was counted. What
//! they take together is at most what they may; who was used longest ago leaves first.

use std::collections::HashMap;

use crate::Sequence;

/// One sequence that was fed.
struct Entry {
    tokens: Vec<u32>,
    sequence: Sequence,
    used: u64,
}

/// Sequences and their tokens, within a number of bytes.
pub(super) struct PrefixCache {
    entries: Vec<Entry>,
    /// By address: how many entries hold a block of memory, and its bytes.
    blocks: HashMap<usize, (u32, usize)>,
    bytes: u64,
    limit: u64,
    clock: u64,
}

/// Tokens that `a` and `b` begin with.
pub(super) fn common(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

impl PrefixCache {
    /// A cache of at most `limit` bytes.
    pub(super) fn new(limit: u64) -> Self {
        PrefixCache { entries: Vec::new(), blocks: HashMap::new(), bytes: 0, limit, clock: 0 }
    }

    /// Whether nothing can be kept.
    pub(super) fn is_off(&self) -> bool {
        self.limit == 0
    }

    /// Bytes of caches held, shared ones once.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The entry from which the most of `prompt` can be had, and how much: not its last token, whose logits are wanted.
    pub(super) fn find(&self, prompt: &[u32]) -> Option<(usize, usize)> {
        let last = prompt.len().saturating_sub(1);
        let found = self.entries.iter().enumerate().filter_map(|(i, entry)| {
            let len = common(&entry.tokens, prompt).min(last);
            (len > 0 && entry.sequence.can_fork(len)).then_some((i, len))
        });
        found.max_by_key(|&(_, len)| len)
    }

    /// Tokens that `prompt` has in common with any entry, whether they can be had or not.
    pub(super) fn longest_common(&self, prompt: &[u32]) -> usize {
        self.entries.iter().map(|e| common(&e.tokens, prompt)).max().unwrap_or(0)
    }

    /// The first `len` positions of an entry that was found.
    pub(super) fn fork(&mut self, entry: usize, len: usize) -> Option<Sequence> {
        self.clock += 1;
        let entry = self.entries.get_mut(entry)?;
        entry.used = self.clock;
        entry.sequence.fork(len)
    }

    /// Keeps `sequence`, which holds `tokens`, if it fits `room` bytes with what is kept.
    pub(super) fn insert(&mut self, tokens: &[u32], sequence: Sequence, room: u64) {
        let n = tokens.len();
        if n == 0 || self.is_off() {
            return;
        }
        self.clock += 1;
        let known = |e: &Entry| common(&e.tokens, tokens) == n && e.sequence.can_fork(n);
        if let Some(entry) = self.entries.iter_mut().find(|e| known(e)) {
            entry.used = self.clock;
            return;
        }
        let within = |e: &Entry| tokens.starts_with(&e.tokens) && sequence.can_fork(e.tokens.len());
        while let Some(i) = self.entries.iter().position(within) {
            self.remove(i);
        }
        let entry = Entry { tokens: tokens.to_vec(), sequence, used: self.clock };
        entry.sequence.each_block(&mut |address, bytes| {
            let block = self.blocks.entry(address).or_insert((0, bytes));
            block.0 += 1;
            self.bytes += if block.0 == 1 { bytes as u64 } else { 0 };
        });
        self.entries.push(entry);
        self.shrink(room);
    }

    /// Lets entries go until the rest takes no more than `room` bytes, nor more than it may.
    pub(super) fn shrink(&mut self, room: u64) {
        while self.bytes > room.min(self.limit) {
            let oldest = self.entries.iter().enumerate().min_by_key(|(_, e)| e.used);
            let Some((oldest, _)) = oldest else { break };
            self.remove(oldest);
        }
    }

    fn remove(&mut self, entry: usize) {
        let entry = self.entries.swap_remove(entry);
        entry.sequence.each_block(&mut |address, bytes| {
            if let Some(block) = self.blocks.get_mut(&address) {
                block.0 -= 1;
                if block.0 == 0 {
                    self.blocks.remove(&address);
                    self.bytes -= bytes as u64;
                }
            }
        });
    }
}
