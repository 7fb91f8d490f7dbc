//! A thread pool for regions that last microseconds.
//!
//! A region is `tasks` calls of one closure. Its tickets are handed out by one atomic word that holds the number
//! of tasks and the next free one, so a thread that was descheduled by the operating system delays nobody: the others
//! take its share, and a region ends when its tasks are done, not when every thread has looked in. Idle workers
//! spin for a moment, since the next region usually starts at once, then park.

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, Thread};

/// Bits of the ticket word that hold the next task; as many hold the number of tasks.
const BITS: u32 = 24;
const MASK: u64 = (1 << BITS) - 1;
/// Looks at the ticket word before an idle worker parks: some hundred microseconds.
const SPINS: u32 = 20_000;

type Task<'a> = dyn Fn(usize) + Sync + 'a;

struct Shared {
    /// `epoch << 2 BITS | tasks << BITS | next`: every field of the open region changes at once.
    ticket: AtomicU64,
    done: AtomicU32,
    sleepers: AtomicU32,
    panicked: AtomicBool,
    stop: AtomicBool,
    task: UnsafeCell<Option<*const Task<'static>>>,
}

// SAFETY: `task` is written only by the thread that opens a region, while no ticket is open, and read only by
// holders of a ticket; the release and acquire on `ticket` order the two.
unsafe impl Sync for Shared {}
// SAFETY: the raw pointer in `task` points to a `Sync` closure and is only ever called through a shared reference.
unsafe impl Send for Shared {}

impl Shared {
    /// Takes tickets until none is left.
    fn work(&self) {
        loop {
            let seen = self.ticket.load(Ordering::Acquire);
            if seen & MASK >= (seen >> BITS) & MASK {
                return;
            }
            let mine = self.ticket.fetch_add(1, Ordering::AcqRel);
            let (next, tasks) = (mine & MASK, (mine >> BITS) & MASK);
            if next >= tasks {
                return;
            }
            // SAFETY: this ticket belongs to an open region, which can't close before `done` counts it, so the
            // closure that the region's opener stored is alive and is not replaced meanwhile.
            let task = unsafe { (*self.task.get()).map(|t| &*t) };
            if let Some(task) = task
                && catch_unwind(AssertUnwindSafe(|| task(next as usize))).is_err()
            {
                self.panicked.store(true, Ordering::Release);
            }
            self.done.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn worker(&self) {
        let mut spins = 0;
        while !self.stop.load(Ordering::Acquire) {
            let seen = self.ticket.load(Ordering::Acquire);
            if seen & MASK < (seen >> BITS) & MASK {
                self.work();
                spins = 0;
            } else if spins < SPINS {
                spins += 1;
                std::hint::spin_loop();
            } else {
                self.sleepers.fetch_add(1, Ordering::SeqCst);
                let seen = self.ticket.load(Ordering::SeqCst);
                if seen & MASK >= (seen >> BITS) & MASK && !self.stop.load(Ordering::SeqCst) {
                    thread::park();
                }
                self.sleepers.fetch_sub(1, Ordering::SeqCst);
                spins = 0;
            }
        }
    }
}

/// A fixed set of threads, the caller's included, that run the tasks of one region at a time.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<Thread>,
    handles: Vec<JoinHandle<()>>,
    region: Mutex<()>,
}

impl Pool {
    /// A pool of `threads` threads, of which the caller of [`Pool::run`] is one. Where the system refuses to
    /// start a thread, the pool is that much smaller.
    pub fn new(threads: usize) -> Self {
        let shared = Arc::new(Shared {
            ticket: AtomicU64::new(0),
            done: AtomicU32::new(0),
            sleepers: AtomicU32::new(0),
            panicked: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            task: UnsafeCell::new(None),
        });
        let handles: Vec<_> = (1..threads)
            .map_while(|i| {
                let shared = Arc::clone(&shared);
                thread::Builder::new().name(format!("kernel-{i}")).spawn(move || shared.worker()).ok()
            })
            .collect();
        let workers = handles.iter().map(|h| h.thread().clone()).collect();
        Self { shared, workers, handles, region: Mutex::new(()) }
    }

    /// Threads that share the work, the caller's included.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Calls `task(0)` to `task(tasks - 1)`, each once, in any order and on any thread, and returns when all are done.
    ///
    /// Must not be called from inside a task.
    ///
    /// # Panics
    /// If a task panicked.
    pub fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        if tasks <= 1 || self.workers.is_empty() {
            (0..tasks).for_each(task);
            return;
        }
        // A region holds at most 2^BITS - 1 tasks and a few late tickets; larger ones run in parts.
        let most = (MASK >> 1) as usize;
        if tasks > most {
            self.run(most, task);
            self.run(tasks - most, &|i| task(most + i));
            return;
        }
        let guard = self.region.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = &*self.shared;
        shared.done.store(0, Ordering::Relaxed);
        // SAFETY: only the lifetime is erased; the closure outlives the region because this call waits for `done`.
        let erased: *const Task<'static> = unsafe { std::mem::transmute(std::ptr::from_ref(task)) };
        // SAFETY: no region is open and `guard` excludes other openers, so nobody reads `task` now.
        unsafe { *shared.task.get() = Some(erased) };
        let epoch = (shared.ticket.load(Ordering::Relaxed) >> (2 * BITS)).wrapping_add(1);
        shared.ticket.store((epoch << (2 * BITS)) | ((tasks as u64) << BITS), Ordering::SeqCst);
        if shared.sleepers.load(Ordering::SeqCst) > 0 {
            self.workers.iter().for_each(Thread::unpark);
        }
        shared.work();
        let mut spins = 0_u32;
        while shared.done.load(Ordering::Acquire) as usize != tasks {
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
