//! A thread pool for regions that last microseconds.
//!
//! A region is `tasks` calls of one closure. Each thread owns an even share of consecutive tasks and takes them in order, so
//! that what it reads is sequential; who has finished takes tasks from the far ends of the others' shares. A thread that was descheduled by the
//! operating system delays nobody: the others take its share, and a region ends when its tasks are done, not when every
//! thread has looked in. Idle workers spin for a moment, since the next region usually starts at once, then park.

use std::cell::UnsafeCell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, Thread};

/// Bits of a cursor that hold the next task; as many hold the end of the share.
const BITS: u32 = 24;
const MASK: u64 = (1 << BITS) - 1;
/// Looks at the region's number before an idle worker parks: some hundred microseconds.
const SPINS: u32 = 20_000;

type Task<'a> = dyn Fn(Range<usize>, Place) + Sync + 'a;

/// Where tasks stand among those that their thread runs.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    /// The thread will probably go on with the tasks up to this one.
    pub(crate) until: usize,
    /// Whether the thread does not come from the task before them.
    pub(crate) first: bool,
}

/// What one thread writes often, on lines of its own.
#[repr(align(128))]
#[derive(Default)]
struct Line<T>(T);

struct Shared {
    /// A thread's share: `region << 2 BITS | end << BITS | next`, so that all fields change at once.
    cursors: Vec<Line<AtomicU64>>,
    /// Number of the open region, or of the last one.
    region: Line<AtomicU64>,
    done: Line<AtomicU32>,
    sleepers: AtomicU32,
    panicked: AtomicBool,
    stop: AtomicBool,
    /// What each worker fetches into its cache while it has no task: address and length.
    wanted: Vec<Line<(AtomicPtr<u8>, AtomicUsize)>>,
    task: UnsafeCell<Option<*const Task<'static>>>,
}

// SAFETY: `task` is written only by the thread that opens a region, while no task is to be had, and read only by
// holders of a task; the release and acquire on the cursors order the two.
unsafe impl Sync for Shared {}
// SAFETY: the raw pointer in `task` points to a `Sync` closure and is only ever called through a shared reference.
unsafe impl Send for Shared {}

impl Shared {
    /// The share of thread `index` in `tasks` tasks.
    fn share(&self, index: usize, tasks: usize) -> Range<usize> {
        let threads = self.cursors.len();
        tasks * index / threads..tasks * (index + 1) / threads
    }

    /// Takes tasks, those of thread `index` first, until none is left.
    fn work(&self, index: usize) {
        let threads = self.cursors.len();
        let mut finished = 0;
        for owner in (index..threads).chain(0..index) {
            let mut first = true;
            while let Some((tasks, end)) = take(&self.cursors[owner].0, owner == index) {
                let until = if owner == index { end } else { tasks.end };
                finished += tasks.len() as u32;
                // SAFETY: these tasks belong to an open region, which can't close before `done` counts them, so the
                // closure that the region's opener stored is alive and is not replaced meanwhile.
                let closure = unsafe { (*self.task.get()).map(|t| &*t) };
                if let Some(closure) = closure
                    && catch_unwind(AssertUnwindSafe(|| closure(tasks, Place { until, first }))).is_err()
                {
                    self.panicked.store(true, Ordering::Release);
                }
                first = owner != index;
            }
        }
        if finished > 0 {
            self.done.0.fetch_add(finished, Ordering::AcqRel);
        }
    }

    /// Fetches what worker `index` is expected to read next, until another region than `seen` opens.
    fn fetch(&self, index: usize, seen: u64) {
        let (start, len) = &self.wanted[index].0;
        let start = start.swap(std::ptr::null_mut(), Ordering::Relaxed);
        if start.is_null() {
            return;
        }
        for line in (0..len.load(Ordering::Relaxed)).step_by(64) {
            if line % 1024 == 0 && self.region.0.load(Ordering::Relaxed) != seen {
                return;
            }
            prefetch(start.wrapping_add(line));
        }
    }

    fn worker(&self, index: usize) {
        let (mut spins, mut seen) = (0, 0);
        while !self.stop.load(Ordering::Acquire) {
            let region = self.region.0.load(Ordering::Acquire);
            if region != seen {
                seen = region;
                self.work(index);
                self.fetch(index, seen);
                spins = 0;
            } else if spins < SPINS {
                spins += 1;
                std::hint::spin_loop();
            } else {
                self.sleepers.fetch_add(1, Ordering::SeqCst);
                if self.region.0.load(Ordering::SeqCst) == seen && !self.stop.load(Ordering::SeqCst) {
                    thread::park();
                }
                self.sleepers.fetch_sub(1, Ordering::SeqCst);
                spins = 0;
            }
        }
    }
}

/// Takes the next tasks of a share, or for another thread than its owner the last ones: a quarter of what is left, so that there
/// are few takings and yet the threads finish together. With them comes the share's end.
fn take(cursor: &AtomicU64, owner: bool) -> Option<(Range<usize>, usize)> {
    let mut seen = cursor.load(Ordering::Acquire);
    loop {
        let (next, end) = (seen & MASK, (seen >> BITS) & MASK);
        if next >= end {
            return None;
        }
        let part = (end - next).div_ceil(4);
        let less = if owner { seen + part } else { seen - (part << BITS) };
        match cursor.compare_exchange_weak(seen, less, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                let taken = if owner { next..next + part } else { end - part..end };
                return Some((taken.start as usize..taken.end as usize, end as usize));
            }
            Err(now) => seen = now,
        }
    }
}

/// A fixed set of threads, the caller's included, that run the tasks of one region at a time.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<Thread>,
    handles: Vec<JoinHandle<()>>,
    opener: Mutex<()>,
}

impl Pool {
    /// A pool of `threads` threads, of which the caller of [`Pool::run`] is one. Where the system refuses to
    /// start a thread, the others do its work.
    pub fn new(threads: usize) -> Self {
        let threads = threads.max(1);
        let shared = Arc::new(Shared {
            cursors: (0..threads).map(|_| Line::default()).collect(),
            region: Line::default(),
            done: Line::default(),
            sleepers: AtomicU32::new(0),
            panicked: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            wanted: (0..threads).map(|_| Line::default()).collect(),
            task: UnsafeCell::new(None),
        });
        let handles: Vec<_> = (1..threads)
            .map_while(|i| {
                let shared = Arc::clone(&shared);
                thread::Builder::new().name(format!("kernel-{i}")).spawn(move || shared.worker(i)).ok()
            })
            .collect();
        let workers = handles.iter().map(|h| h.thread().clone()).collect();
        Self { shared, workers, handles, opener: Mutex::new(()) }
    }

    /// Threads that share the work, the caller's included.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Tells each thread, in order, what memory it will probably read in the region after the next one. Workers fetch it
    /// while they have nothing else to do; results never depend on it.
    pub(crate) fn expect<'a>(&self, parts: impl Iterator<Item = &'a [u8]>) {
        for (Line((start, len)), part) in self.shared.wanted.iter().zip(parts) {
            len.store(part.len(), Ordering::Relaxed);
            start.store(part.as_ptr().cast_mut(), Ordering::Relaxed);
        }
    }

    /// Calls `task(0)` to `task(tasks - 1)`, each once, in any order and on any thread, and returns when all are done.
    ///
    /// Must not be called from inside a task.
    ///
    /// # Panics
    /// If a task panicked.
    pub fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        self.run_shares(tasks, &|part, _| part.for_each(task));
    }

    /// As [`Pool::run`], but consecutive tasks come in runs.
    pub(crate) fn run_shares(&self, tasks: usize, task: &(dyn Fn(Range<usize>, Place) + Sync)) {
        if tasks <= 1 || self.workers.is_empty() {
            if tasks > 0 {
                task(0..tasks, Place { until: tasks, first: true });
            }
            return;
        }
        // A cursor's fields hold no more; larger regions run in parts.
        let most = MASK as usize;
        if tasks > most {
            self.run_shares(most, task);
            self.run_shares(tasks - most, &|part, p| {
                task(most + part.start..most + part.end, Place { until: most + p.until, ..p });
            });
            return;
        }
        let guard = self.opener.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = &*self.shared;
        shared.done.0.store(0, Ordering::Relaxed);
        // SAFETY: only the lifetime is erased; the closure outlives the region because this call waits for `done`.
        let erased: *const Task<'static> = unsafe { std::mem::transmute(std::ptr::from_ref(task)) };
        // SAFETY: no task is to be had and `guard` excludes other openers, so nobody reads `task` now.
        unsafe { *shared.task.get() = Some(erased) };
        let region = shared.region.0.load(Ordering::Relaxed).wrapping_add(1);
        for (i, cursor) in shared.cursors.iter().enumerate() {
            let share = shared.share(i, tasks);
            let fields = (region << (2 * BITS)) | ((share.end as u64) << BITS) | share.start as u64;
            cursor.0.store(fields, Ordering::Release);
        }
        shared.region.0.store(region, Ordering::SeqCst);
        if shared.sleepers.load(Ordering::SeqCst) > 0 {
            self.workers.iter().for_each(Thread::unpark);
        }
        shared.work(0);
        let mut spins = 0_u32;
        while shared.done.0.load(Ordering::Acquire) as usize != tasks {
            std::hint::spin_loop();
            spins += 1;
            if spins.is_multiple_of(4096) {
                // The thread that holds the last task may need this very processor.
                thread::yield_now();
            }
        }
        let panicked = shared.panicked.swap(false, Ordering::AcqRel);
        drop(guard);
        if panicked {
            resume_unwind(Box::new("a task of the thread pool panicked"));
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.workers.iter().for_each(Thread::unpark);
        for handle in self.handles.drain(..) {
            // A worker catches its tasks' panics, so there is none to report here.
            let _ = handle.join();
        }
    }
}

/// Fetches the line at `address` into this core's cache, where the processor has an instruction for it. Any address will do.
fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no effect but on caches, and faults are ignored.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// A mutable slice that tasks write at disjoint places.
#[derive(Clone, Copy)]
pub(crate) struct SharedMut<T>(*mut T, usize);

// SAFETY: tasks get disjoint parts only (the contract of `slice`), which is what sending `&mut [T]` parts would be.
unsafe impl<T: Send> Send for SharedMut<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for SharedMut<T> {}

impl<T> SharedMut<T> {
    pub(crate) fn new(slice: &mut [T]) -> Self {
        Self(slice.as_mut_ptr(), slice.len())
    }

    /// Elements in all.
    pub(crate) fn len(&self) -> usize {
        self.1
    }

    /// The part `start..start + len`.
    ///
    /// # Safety
    /// The slice given to `new` is still borrowed, and no part that overlaps this one is in use.
    ///
    /// # Panics
    /// If the part leaves the slice.
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn slice(&self, start: usize, len: usize) -> &mut [T] {
        assert!(start <= self.1 && len <= self.1 - start, "part leaves the slice");
        // SAFETY: inside the slice by the assertion, unaliased by this function's contract.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(start), len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn every_task_runs_once_over_many_regions() {
        for threads in [1, 2, 3, 8] {
            let pool = Pool::new(threads);
            for tasks in [0, 1, 2, 7, 100] {
                for _ in 0..200 {
                    let hits: Vec<_> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
                    pool.run(tasks, &|i| {
                        hits[i].fetch_add(1, Ordering::Relaxed);
                    });
                    assert!(hits.iter().all(|h| h.load(Ordering::Relaxed) == 1));
                }
            }
        }
    }

    #[test]
    fn parked_workers_wake_for_the_next_region() {
        let pool = Pool::new(3);
        for _ in 0..3 {
            thread::sleep(std::time::Duration::from_millis(30));
            let hits = AtomicUsize::new(0);
            pool.run(64, &|_| {
                hits.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(hits.load(Ordering::Relaxed), 64);
        }
    }

    #[test]
    fn a_panicking_task_reaches_the_caller_and_the_pool_survives() {
        let pool = Pool::new(2);
        let caught = catch_unwind(AssertUnwindSafe(|| pool.run(10, &|i| assert_ne!(i, 5))));
        assert!(caught.is_err());
        let hits = AtomicUsize::new(0);
        pool.run(10, &|_| {
            hits.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(hits.load(Ordering::Relaxed), 10);
    }
}
