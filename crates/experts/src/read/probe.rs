//! Choosing how to read: by trying.
//!
//! Which way is fastest depends on the disk, its driver and the machine's cores, and none is fastest everywhere (see
//! "ways of reading experts" in docs/findings.md). So the ways are tried on the file's own experts for a fraction of a
//! second, each with bursts like those that a layer's misses are.
//!
//! Invariant: trying leaves every slot free, and takes no longer than [`TRIAL`] and the burst in flight at its end.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Engine, Files, Method, ReadError, ReadPart, Reader, Wait, Window};
use crate::{SlotState, Slots};

/// How long all trials together may take.
const TRIAL: Duration = Duration::from_millis(300);

/// Bytes of a file that are read together, such as one tensor's part of an expert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The file's index in [`Files`].
    pub file: usize,
    /// Offset of its first byte.
    pub offset: u64,
    /// Its bytes.
    pub len: usize,
}

/// What was chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct IoChoice {
    /// The way of reading.
    pub method: Method,
    /// Its speed in the trial, in megabytes (10^6) a second; `None` if there was none.
    pub mb_per_s: Option<f64>,
    /// For people: what was chosen and why.
    pub text: String,
}

/// The ways that [`choose`] tries, the most likely first.
const CANDIDATES: [Method; 6] = [
    Method { engine: Engine::Threads(8), request_bytes: 8 << 20 },
    Method { engine: Engine::Threads(4), request_bytes: 4 << 20 },
    Method { engine: Engine::Uring(16), request_bytes: 1 << 20 },
    Method { engine: Engine::Threads(8), request_bytes: 1 << 20 },
    Method { engine: Engine::Uring(8), request_bytes: 4 << 20 },
    Method { engine: Engine::Threads(2), request_bytes: 4 << 20 },
];

/// Opens the fastest way to read `segments` of `files` into `slots`, none of which may be in use.
///
/// # Errors
/// No way works; a read of a trial that fails.
pub fn choose(
    files: &Arc<Files>,
    slots: &Arc<Slots>,
    segments: &[Segment],
) -> Result<(Box<dyn Reader>, IoChoice), ReadError> {
    choose_among(&CANDIDATES, files, slots, segments)
}

/// As [`choose`], among `methods`. With nothing to read or nowhere to read to, it is the first that can be opened.
///
/// # Errors
/// As [`choose`].
///
/// # Panics
/// Where `methods` is empty.
pub fn choose_among(
    methods: &[Method],
    files: &Arc<Files>,
    slots: &Arc<Slots>,
    segments: &[Segment],
) -> Result<(Box<dyn Reader>, IoChoice), ReadError> {
    choose_with(methods, files, slots, segments, |method| method.open(files, slots))
}

fn choose_with(
    methods: &[Method],
    files: &Arc<Files>,
    slots: &Arc<Slots>,
    segments: &[Segment],
    open: impl Fn(Method) -> Result<Box<dyn Reader>, ReadError>,
) -> Result<(Box<dyn Reader>, IoChoice), ReadError> {
    let deadline = Instant::now() + TRIAL;
    let mut failures = Vec::new();
    let mut runners = Vec::new();
    for &method in methods {
        match open(method) {
            Ok(reader) => runners.push(Runner { method, reader, bytes: 0, time: Duration::ZERO }),
            Err(error) => failures.push(error),
        }
    }
    let mut bursts = Bursts::new(slots, segments);
    if bursts.room() && runners.first_mut().is_some_and(|first| first.warm_up(&mut bursts).is_ok()) {
        race(&mut runners, &mut failures, &bursts, deadline);
        keep_to_the_first(&mut runners, methods[0]);
    }
    if runners.is_empty() {
        assert!(!failures.is_empty(), "no way of reading to choose among");
        return Err(failures.swap_remove(0));
    }
    let second = runners.get(1).filter(|runner| runner.bytes > 0).map(Runner::told);
    let best = runners.swap_remove(0);
    let mut text = format!("{}, {}", best.told(), files.describe());
    if let Some(second) = second {
        text += &format!("; tried also {second}");
    }
    if let Some(refused) = failures.first() {
        text += &format!("; {refused}");
    }
    let mb_per_s = (best.bytes > 0).then(|| best.rate());
    Ok((best.reader, IoChoice { method: best.method, mb_per_s, text }))
}

/// Lets the runners take turns, the slower half of each round out, until two are left, and these until the time is over.
/// The fastest is first in the end; those that fail are out.
fn race(runners: &mut Vec<Runner>, failures: &mut Vec<ReadError>, bursts: &Bursts, deadline: Instant) {
    let mut running = runners.len();
    while Instant::now() < deadline && running > 0 {
        let mut at = 0;
        while at < running && Instant::now() < deadline {
            match runners[at].burst(bursts) {
                Ok(()) => at += 1,
                Err(error) => {
                    failures.push(error);
                    drop(runners.remove(at));
                    running -= 1;
                }
            }
        }
        runners[..running].sort_by(|a, b| b.rate().total_cmp(&a.rate()));
        running = running.div_ceil(2).max(running.min(2));
    }
}

/// Puts the runner of `first` to the front if it is nearly as fast as the fastest: differences of a tenth are noise, and a
/// choice that changes from run to run helps nobody.
fn keep_to_the_first(runners: &mut [Runner], first: Method) {
    let at = runners.iter().position(|runner| runner.method == first);
    if let Some(at) = at.filter(|&at| runners[at].rate() > 0.9 * runners[0].rate()) {
        runners[..=at].rotate_right(1);
    }
}

/// Reads `bytes` or more of random `segments`, as many as the free slots have room for, and gives the speed in megabytes
/// (10^6) a second of what came.
///
/// # Errors
/// A read that fails.
pub fn measure(
    reader: &mut dyn Reader,
    slots: &Arc<Slots>,
    segments: &[Segment],
    bytes: usize,
) -> Result<f64, ReadError> {
    let mut bursts = Bursts::new(slots, segments);
    bursts.bytes = bytes;
    let (came, time) = bursts.run(reader)?;
    Ok(came as f64 / 1e6 / time.as_secs_f64())
}

/// A way that takes part.
struct Runner {
    method: Method,
    reader: Box<dyn Reader>,
    bytes: u64,
    time: Duration,
}

impl Runner {
    /// Megabytes a second, none before the first burst.
    fn rate(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.time.as_secs_f64().max(1e-9)
    }

    fn told(&self) -> String {
        match self.bytes {
            0 => format!("{}, untried", self.method),
            _ => format!("{} at {:.0} MB/s", self.method, self.rate()),
        }
    }

    fn burst(&mut self, bursts: &Bursts) -> Result<(), ReadError> {
        let (bytes, time) = bursts.run(&mut *self.reader)?;
        self.bytes += bytes;
        self.time += time;
        Ok(())
    }

    /// A first read, of which the size of a burst follows.
    fn warm_up(&mut self, bursts: &mut Bursts) -> Result<(), ReadError> {
        let (bytes, time) = bursts.run(&mut *self.reader)?;
        let share = TRIAL.as_secs_f64() / 12.0 / time.as_secs_f64().max(1e-6);
        bursts.bytes = ((bytes as f64 * share) as usize).min(64 << 20);
        Ok(())
    }
}

/// Bursts of reads of random segments.
struct Bursts<'a> {
    slots: &'a Arc<Slots>,
    segments: &'a [Segment],
    /// Slots that hold nothing that is in use.
    idle: Vec<usize>,
    /// Bytes of a burst.
    bytes: usize,
    random: RandomState,
}

impl<'a> Bursts<'a> {
    fn new(slots: &'a Arc<Slots>, segments: &'a [Segment]) -> Self {
        let idle = (0..slots.len())
            .filter(|&slot| matches!(slots.state(slot), SlotState::Free | SlotState::Ready { leases: 0 }))
            .collect();
        Bursts { slots, segments, idle, bytes: 1, random: RandomState::new() }
    }

    /// Whether there is anything to read and a place for it.
    fn room(&self) -> bool {
        let fits = |s: &Segment| s.len > 0 && Window::of(s.offset, s.len).len <= self.slots.slot_bytes();
        !self.idle.is_empty() && !self.segments.is_empty() && self.segments.iter().all(fits)
    }

    /// Reads so much at once, if the idle slots have the room: the bytes that came and the time they took.
    fn run(&self, reader: &mut dyn Reader) -> Result<(u64, Duration), ReadError> {
        let before = reader.bytes_read();
        let mut left = self.bytes;
        let mut reads = Vec::new();
        let at_random = |nth: usize| {
            // Repeated offsets would measure the disk's cache, so no seed is used twice.
            self.segments[self.random.hash_one((before, nth)) as usize % self.segments.len()]
        };
        let mut next = at_random(0);
        for &slot in &self.idle {
            let mut parts = Vec::new();
            let mut at = 0;
            while left > 0 && at + Window::of(next.offset, next.len).len <= self.slots.slot_bytes() {
                let Segment { file, offset, len } = next;
                parts.push(ReadPart { file, offset, len, slot, at });
                at += Window::of(offset, len).len;
                left = left.saturating_sub(len);
                next = at_random(reads.len() * 64 + parts.len());
            }
            if parts.is_empty() {
                break;
            }
            reads.push(parts);
        }
        let start = Instant::now();
        for (id, parts) in reads.iter().enumerate() {
            reader.submit(id as u64, parts);
        }
        let mut done = Vec::new();
        while reader.in_flight() > 0 {
            reader.finished(Wait::Forever, &mut done);
        }
        let time = start.elapsed();
        for slot in reads.iter().map(|parts| parts[0].slot) {
            if self.slots.state(slot) != SlotState::Reading {
                drop(self.slots.fill(slot));
            }
        }
        done.into_iter().try_for_each(|(_, result)| result)?;
        Ok((reader.bytes_read() - before, time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{Finished, IoMode};

    const THREADS: Method = Method { engine: Engine::Threads(2), request_bytes: 1 << 20 };
    const URING: Method = Method { engine: Engine::Uring(4), request_bytes: 1 << 20 };

    fn file() -> (tempfile::NamedTempFile, Arc<Files>, Vec<Segment>) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![5; 1 << 20]).unwrap();
        let files = Files::open(&[file.path()], IoMode::Auto).unwrap();
        let segments = (0..64).map(|i| Segment { file: 0, offset: 32 + i * 16_000, len: 16_000 }).collect();
        (file, files, segments)
    }

    fn reads(reader: &mut dyn Reader, slots: &Arc<Slots>) {
        reader.submit(7, &[ReadPart { file: 0, offset: 100, len: 9000, slot: 0, at: 0 }]);
        let mut done = Finished::new();
        reader.finished(Wait::Forever, &mut done);
        assert!(matches!(done[..], [(7, Ok(()))]), "{done:?}");
        assert!(slots.lease(0)[100..9100].iter().all(|&byte| byte == 5));
    }

    #[test]
    fn the_choice_says_what_and_how_fast_it_is_and_leaves_slots_free() {
        let (_file, files, segments) = file();
        let slots = Slots::new(4, 3 * 20_480).unwrap();
        let (mut reader, choice) = choose(&files, &slots, &segments).unwrap();
        assert!(choice.mb_per_s.is_some_and(|rate| rate > 0.0));
        let says = format!("{} at {:.0} MB/s, {}", choice.method, choice.mb_per_s.unwrap(), files.describe());
        assert!(choice.text.starts_with(&says), "{}", choice.text);
        assert!((0..4).all(|slot| slots.state(slot) == SlotState::Free));
        reads(&mut *reader, &slots);
    }

    #[test]
    fn where_io_uring_is_refused_threads_read_and_the_choice_says_why() {
        let (_file, files, segments) = file();
        let slots = Slots::new(2, 3 * 20_480).unwrap();
        let refuse = |method: Method| match method.engine {
            Engine::Uring(_) => {
                Err(ReadError::Unavailable { what: "io_uring", reason: "not permitted".to_owned() })
            }
            Engine::Threads(_) => method.open(&files, &slots),
        };
        let (mut reader, choice) = choose_with(&[URING, THREADS], &files, &slots, &segments, refuse).unwrap();
        assert_eq!(choice.method, THREADS);
        assert!(choice.text.ends_with("; io_uring can't be had: not permitted"), "{}", choice.text);
        reads(&mut *reader, &slots);
        let error = choose_with(&[URING], &files, &slots, &segments, refuse).err().unwrap();
        assert_eq!(error.to_string(), "io_uring can't be had: not permitted");
    }

    #[test]
    fn with_nothing_to_try_the_first_way_is_taken_untried() {
        let (_file, files, segments) = file();
        let slots = Slots::new(1, 12_288).unwrap();
        for segments in [&segments[..], &[]] {
            let (mut reader, choice) = choose_among(&[THREADS, URING], &files, &slots, segments).unwrap();
            assert_eq!((choice.method, choice.mb_per_s), (THREADS, None));
            assert!(choice.text.contains("untried"), "{}", choice.text);
            reads(&mut *reader, &slots);
        }
    }

    #[test]
    fn a_choice_that_is_nearly_as_fast_as_the_fastest_stays_the_first() {
        let (_file, files, _) = file();
        let slots = Slots::new(1, 4096).unwrap();
        let order = |first: u64| {
            let runner = |method: Method, bytes| {
                let reader = method.open(&files, &slots).unwrap();
                Runner { method, reader, bytes, time: Duration::from_secs(1) }
            };
            let mut runners = [runner(URING, 1000), runner(THREADS, first)];
            keep_to_the_first(&mut runners, THREADS);
            runners.map(|runner| runner.method)
        };
        assert_eq!((order(950), order(850)), ([THREADS, URING], [URING, THREADS]));
    }
}
