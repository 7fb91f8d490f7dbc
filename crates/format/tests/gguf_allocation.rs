//! Opening a file never holds more memory than a small multiple of the file, whatever its fields claim.
//!
//! A test binary of its own: the allocator counts what the whole process holds, so nothing may run beside it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use turbospark_format::{Array, BlockType, Gguf, GgufWriter, Value};

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(held, Relaxed);
        // SAFETY: the caller's promise about `layout` is the one needed here.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: `at` came from `alloc` above with this layout.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that parsing holds at its peak beyond the file itself.
fn peak_of_opening(file: Vec<u8>) -> usize {
    let before = HELD.load(Relaxed);
    PEAK.store(before, Relaxed);
    let _ = std::hint::black_box(Gguf::from_bytes(file));
    PEAK.load(Relaxed) - before
}

fn file_of(build: impl FnOnce(&mut GgufWriter<'_>)) -> Vec<u8> {
    let mut writer = GgufWriter::new();
    build(&mut writer);
    let mut file = Vec::new();
    writer.write(&mut file).unwrap();
    file
}

#[test]
fn opening_holds_a_small_multiple_of_the_file() {
    // The densest contents: what takes the fewest bytes in the file for what it takes in memory.
    let dense = [
        file_of(|w| _ = w.set("k", vec![String::new(); 10_000])),
        file_of(|w| _ = w.set("k", Value::Array(Array::Array(vec![Array::U8(vec![]); 10_000])))),
        file_of(|w| {
            for i in 0..5_000 {
                w.set(format!("{i}"), 1u8);
            }
        }),
        file_of(|w| {
            for i in 0..5_000 {
                w.set("general.alignment", 1u32);
                w.tensor(format!("{i}"), &[1], BlockType::F16, vec![0; 2]);
            }
        }),
    ];
    for (i, file) in dense.into_iter().enumerate() {
        let len = file.len();
        let peak = peak_of_opening(file);
        assert!(peak <= 16 * len, "file {i}: {peak} bytes for {len}");
    }

    // Every 8-byte field of a small file in turn claims an enormous number.
    let small = file_of(|w| {
        w.set("strings", vec!["a".to_owned(), "b".to_owned()]).set("numbers", vec![1u64, 2]);
        w.tensor("w", &[32, 4], BlockType::Q8_0, vec![0; 136]);
    });
    for at in 0..small.len() - 8 {
        for claim in [1u64 << 60, u64::MAX, 1 << 32, 1 << 20] {
            let mut file = small.clone();
            file[at..at + 8].copy_from_slice(&claim.to_le_bytes());
            let peak = peak_of_opening(file);
            assert!(peak <= 16 * small.len() + 4096, "{claim} at {at}: {peak} bytes");
        }
    }
}
