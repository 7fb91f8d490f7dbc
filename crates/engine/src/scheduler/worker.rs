//! [`Worker`]: the scheduler's thread. Admits what fits, feeds a batch, tells what was chosen; again, until it is told to end.
//!
//! Invariant: no lock is held while the engine computes or a receiver is told, and no more is reserved than the KV caches may take.

use std::sync::PoisonError;

use super::Shared;
use super::metrics::SchedulerMetrics;
use super::prefix::{PrefixCache, common};
use super::queue::Verdict;
use super::request::Waiting;
use super::running::{Farewell, Running};
use super::share::{Want, share};
use crate::forward::Watch;
use crate::{Engine, EngineError, FinishReason, Part, Piece, Wanted};

/// Positions that a prompt must have in common with another one before it is worth waiting for them, or keeping them apart.
const WORTH: usize = 64;

/// The thread's state.
pub(super) struct Worker<'e> {
    shared: &'e Shared,
    engine: &'e Engine,
    running: Vec<Running<'e>>,
    prefixes: PrefixCache,
    /// Bytes that the running requests may take.
    reserved: u64,
    max_running: usize,
    /// Whether sequences can be forked anywhere: no layer is recurrent or windowed.
    anywhere: bool,
    metrics: SchedulerMetrics,
}

/// Where the beginning of a prompt is.
enum Source {
    Kept(usize),
    Running(usize),
}

type Chosen = Result<(u32, Option<Piece>), EngineError>;

impl<'e> Worker<'e> {
    pub(super) fn new(shared: &'e Shared) -> Self {
        let engine = &shared.engine;
        Worker {
            shared,
            engine,
            running: Vec::new(),
            prefixes: PrefixCache::new(shared.options.prefix_bytes),
            reserved: 0,
            max_running: shared.options.max_running.clamp(1, engine.prefill_chunk()),
            anywhere: engine.keeps_all_positions(),
            metrics: SchedulerMetrics::default(),
        }
    }

    pub(super) fn run(mut self) {
        while self.admit() {
            self.retire();
            self.step();
            self.retire();
            self.publish();
        }
        self.publish();
    }

    /// Starts what fits, and waits where nothing runs; `false` where nothing more will come.
    fn admit(&mut self) -> bool {
        let shared = self.shared;
        let mut inbox = shared.inbox();
        loop {
            let cancel = shared.is_cancelling();
            let gone = inbox.queue.remove(|w| cancel || w.stop.is_raised());
            let taken = inbox.queue.pop(|w| self.verdict(w));
            if gone.is_empty() && taken.is_none() {
                if !self.running.is_empty() {
                    return true;
                }
                if inbox.closed {
                    return false;
                }
                self.publish();
                inbox = shared.wake.wait(inbox).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            drop(inbox);
            self.metrics.cancelled += gone.len() as u64;
            self.publish();
            gone.into_iter().for_each(Waiting::give_up);
            if let Some(waiting) = taken {
                self.start(waiting);
            }
            inbox = shared.inbox();
        }
    }

    /// Whether a request can run now.
    fn verdict(&mut self, waiting: &Waiting) -> Verdict {
        if self.running.len() >= self.max_running || self.reserved + waiting.bytes > self.shared.kv_bytes {
            return Verdict::Stop;
        }
        let prompt = &waiting.request.prompt;
        let have = self.source(prompt).map_or(0, |(len, _)| len);
        let mut soon = false;
        if !self.prefixes.is_off() {
            // What another prompt has in common with this one is being fed: it need not be fed twice.
            for other in &mut self.running {
                let len = common(&other.tokens, prompt).min(prompt.len() - 1);
                if len >= have + WORTH && other.sequence.len() < len {
                    other.mark(len);
                    soon = true;
                }
            }
        }
        if soon { Verdict::Skip } else { Verdict::Take }
    }

    /// The sequence from which the most of `prompt` can be had, and how much.
    fn source(&self, prompt: &[u32]) -> Option<(usize, Source)> {
        let kept = self.prefixes.find(prompt).map(|(i, len)| (len, Source::Kept(i)));
        let running = self.running.iter().enumerate().filter_map(|(i, r)| {
            let len = common(&r.tokens[..r.sequence.len()], prompt).min(prompt.len() - 1);
            (len > 0 && r.sequence.can_fork(len)).then_some((len, Source::Running(i)))
        });
        running.chain(kept).max_by_key(|(len, _)| *len)
    }

    fn start(&mut self, waiting: Waiting) {
        let prompt = waiting.request.prompt.clone();
        let found = self.source(&prompt).and_then(|(len, source)| match source {
            Source::Kept(i) => self.prefixes.fork(i, len),
            Source::Running(i) => self.running[i].sequence.fork(len),
        });
        let sequence = found.unwrap_or_else(|| self.engine.sequence());
        let (cached, bytes) = (sequence.len(), waiting.bytes);
        let recurrent = sequence.is_recurrent();
        self.metrics.requests += 1;
        self.metrics.prompt_tokens += prompt.len() as u64;
        self.metrics.cached_tokens += cached as u64;
        self.metrics.prefix_hits += u64::from(cached > 0);
        let Some(mut running) = Running::start(self.engine, waiting, sequence) else {
            self.metrics.failed += 1;
            return;
        };
        // A recurrent layer can't take back the last token, which is fed again in any case.
        running.mark(prompt.len() - usize::from(recurrent));
        if !self.anywhere {
            // A third prompt may begin as this one and an earlier one do.
            let others = self.running.iter().map(|r| common(&r.tokens, &prompt)).max().unwrap_or(0);
            let len = self.prefixes.longest_common(&prompt).max(others).min(prompt.len() - 1);
            if len >= cached + WORTH {
                running.mark(len);
            }
        }
        self.running.push(running);
        self.reserved += bytes;
        self.prefixes.shrink(self.shared.kv_bytes - self.reserved);
    }

    /// Ends what has ended.
    fn retire(&mut self) {
        let all = self.shared.is_cancelling();
        let mut farewells = Vec::new();
        let mut i = 0;
        while i < self.running.len() {
            if !self.running[i].is_over(all) {
                i += 1;
                continue;
            }
            // In order: who came first is the oldest.
            let ended = self.running.remove(i);
            self.reserved -= ended.bytes;
            self.metrics.failed += u64::from(ended.failed.is_some());
            match ended.answer.finish_reason() {
                None | Some(FinishReason::Cancelled) => {
                    self.metrics.cancelled += u64::from(ended.failed.is_none());
                }
                Some(_) => self.metrics.ended(ended.age()),
            }
            let (left, farewell) = ended.end();
            if let Some((tokens, sequence)) = left {
                self.prefixes.insert(&tokens, sequence, self.shared.kv_bytes - self.reserved);
            }
            farewells.push(farewell);
        }
        // Who hears of an end finds it counted.
        if !farewells.is_empty() {
            self.publish();
            farewells.into_iter().for_each(Farewell::tell);
        }
    }

    /// Feeds one batch.
    fn step(&mut self) {
        let chunk = self.engine.prefill_chunk();
        let generating = self.running.iter().filter(|r| r.unfed() == 1).count();
        // Where nobody waits for a token, a prompt is fed as fast as the engine can.
        let room = chunk.saturating_sub(generating);
        let budget =
            if generating == 0 { room } else { room.min(self.shared.options.prompt_rows_per_step.max(1)) };
        let prompts: Vec<usize> = (0..self.running.len()).filter(|&i| self.running[i].unfed() > 1).collect();
        let wants: Vec<Want> = prompts
            .iter()
            .map(|&i| Want { client: self.running[i].client, rows: self.running[i].most_rows() })
            .collect();
        let mut rows: Vec<usize> = self.running.iter().map(|r| usize::from(r.unfed() == 1)).collect();
        for (i, given) in prompts.into_iter().zip(share(&wants, budget)) {
            rows[i] = given;
        }
        let batch: Vec<(usize, usize)> = rows.into_iter().enumerate().filter(|&(_, n)| n > 0).collect();
        if !batch.is_empty() {
            self.feed(&batch);
        }
    }

    /// Feeds `(request, rows)` as one batch; where that fails, each alone, so that only who is to blame fails.
    fn feed(&mut self, batch: &[(usize, usize)]) {
        let (result, chosen) = self.pass(batch);
        self.metrics.steps += 1;
        self.metrics.last_rows = batch.iter().map(|m| m.1).sum();
        match result {
            Ok(()) => {
                self.metrics.fed_rows += self.metrics.last_rows as u64;
                for (&(i, _), chosen) in batch.iter().zip(chosen) {
                    self.fed(i, chosen);
                }
            }
            Err(error) if error.is_cancel() => {}
            Err(error) => match batch {
                [(i, _)] => self.running[*i].failed = Some(error),
                _ => batch.iter().for_each(|&one| self.feed(&[one])),
            },
        }
    }

    /// One pass; with what was chosen for each member whose last row was in it.
    fn pass(&mut self, batch: &[(usize, usize)]) -> (Result<(), EngineError>, Vec<Option<Chosen>>) {
        let context = self.engine.context();
        let mut chosen: Vec<Option<Chosen>> = batch.iter().map(|_| None).collect();
        let (mut parts, mut answers) = (Vec::with_capacity(batch.len()), Vec::with_capacity(batch.len()));
        let mut stops = Vec::with_capacity(batch.len());
        let mut members = batch.iter().peekable();
        for (i, running) in self.running.iter_mut().enumerate() {
            let Some(&(_, rows)) = members.next_if(|member| member.0 == i) else { continue };
            let Running { tokens, sequence, answer, stop, .. } = running;
            let end = sequence.len() + rows;
            let wanted = if end == tokens.len() { Wanted::Last } else { Wanted::Nothing };
            parts.push(Part { tokens: &tokens[sequence.len()..end], sequence, wanted });
            answers.push((answer, end < context));
            stops.push(&*stop);
        }
        // Others wait for the pass as long as one of its members is wanted.
        let cancelled = || self.shared.is_cancelling() || stops.iter().all(|s| s.is_raised());
        let mut watch = Watch { cancelled: &cancelled, layers_done: &mut |_, _| {} };
        let result = self.engine.pass(&mut parts, &mut watch, |part, _, logits| {
            let (answer, room) = &mut answers[part];
            chosen[part] = Some(answer.next(logits, *room));
        });
        (result, chosen)
    }

    /// Goes on with a request whose rows have been fed.
    fn fed(&mut self, i: usize, chosen: Option<Chosen>) {
        let room = self.shared.kv_bytes.saturating_sub(self.reserved);
        let running = &mut self.running[i];
        running.report(self.engine);
        if running.take_mark() {
            let len = running.sequence.len();
            if let Some(kept) = running.sequence.fork(len) {
                self.prefixes.insert(&running.tokens[..len], kept, room);
            }
        }
        match chosen {
            Some(Ok((token, piece))) => {
                self.metrics.generated_tokens += 1;
                running.chosen(token, piece);
            }
            Some(Err(error)) => running.failed = Some(error),
            None => {}
        }
    }

    /// Lets others see the counts.
    fn publish(&mut self) {
        self.metrics.running = self.running.len();
        self.metrics.kv_reserved = self.reserved;
        self.metrics.prefix_bytes = self.prefixes.bytes();
        *self.shared.metrics.lock().unwrap_or_else(PoisonError::into_inner) = self.metrics;
    }
}

impl Drop for Worker<'_> {
    /// However it ends, nobody waits for it any more.
    fn drop(&mut self) {
        let mut inbox = self.shared.inbox();
        inbox.closed = true;
        inbox.queue.remove(|_| true);
    }
}
