//! The front door: a thread pool and the instruction set its operations use.

use crate::pool::Pool;

/// The instruction set that the kernels use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isa {
    /// Portable Rust: the reference for the others.
    Scalar,
    /// x86-64 with AVX2, FMA and F16C.
    Avx2,
}

impl Isa {
    /// The best instruction set of this machine.
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c")
        {
            return Self::Avx2;
        }
        Self::Scalar
    }
}

impl std::fmt::Display for Isa {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "AVX2",
        })
    }
}

/// The processor: threads and their instruction set. One per engine.
pub struct Cpu {
    pub(crate) pool: Pool,
    pub(crate) isa: Isa,
}

impl Cpu {
    /// A processor of `threads` threads (at least one, the caller's) with the best instruction set of the machine.
    pub fn new(threads: usize) -> Self {
        Self { pool: Pool::new(threads.max(1)), isa: Isa::detect() }
    }

    /// The reference: the same operations in portable Rust, with the same results bit for bit.
    pub fn scalar(threads: usize) -> Self {
        Self { pool: Pool::new(threads.max(1)), isa: Isa::Scalar }
    }

    /// The instruction set in use.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Threads in use.
    pub fn threads(&self) -> usize {
        self.pool.threads()
    }

    /// Calls `task` for each of `parts` even parts `start..end` of `0..len`, on all threads; parts are multiples of `step`.
    /// Short work stays on the calling thread: a region costs about a microsecond.
    pub(crate) fn split(&self, len: usize, step: usize, task: &(dyn Fn(std::ops::Range<usize>) + Sync)) {
        let steps = len.div_ceil(step.max(1));
        let parts = steps.min(self.threads() * 4);
        if parts <= 1 {
            if len > 0 {
                task(0..len);
            }
            return;
        }
        self.pool.run(parts, &|i| {
            let (start, end) = (steps * i / parts * step, (steps * (i + 1) / parts * step).min(len));
            if start < end {
                task(start..end);
            }
        });
    }
}

/// Threads to use unless told: the physical cores this process may run on, at most its cgroup's processor quota.
pub fn default_threads() -> usize {
    let allowed = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    physical_cores().map_or(allowed, |cores| cores.min(allowed)).max(1)
}

/// Distinct (package, core) pairs that the system lists, or `None` where it lists none.
fn physical_cores() -> Option<usize> {
    let mut cores = std::collections::BTreeSet::new();
    for entry in std::fs::read_dir("/sys/devices/system/cpu").ok()?.flatten() {
        let topology = entry.path().join("topology");
        let read = |name: &str| std::fs::read_to_string(topology.join(name)).ok();
        if let (Some(package), Some(core)) = (read("physical_package_id"), read("core_id")) {
            cores.insert((package, core));
        }
    }
    (!cores.is_empty()).then_some(cores.len())
}
