//! Every way of reading against the file's bytes, and against the faults that disks and users make.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use super::*;
use crate::{SlotState, Slots};

type Meddle = dyn Fn(u64, io::Result<usize>) -> io::Result<usize> + Send + Sync;

/// What changes the results of reads, by their offset.
#[derive(Clone)]
pub(super) struct Meddler(pub(super) Arc<Meddle>);

impl fmt::Debug for Meddler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a meddler")
    }
}

fn meddle(files: &Files, with: impl Fn(u64, io::Result<usize>) -> io::Result<usize> + Send + Sync + 'static) {
    *files.meddler.lock().unwrap() = Some(Meddler(Arc::new(with)));
}

/// Holds reads up after they were performed and before anyone knows.
#[derive(Default)]
struct Gate {
    reached: AtomicUsize,
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn before(files: &Files) -> Arc<Gate> {
        let gate = Arc::new(Gate::default());
        let of_reads = Arc::clone(&gate);
        meddle(files, move |_, result| {
            of_reads.reached.fetch_add(1, Ordering::Relaxed);
            let open = of_reads.open.lock().unwrap();
            drop(of_reads.opened.wait_while(open, |open| !*open).unwrap());
            result
        });
        gate
    }

    /// Waits until a read is held up.
    fn reached(&self) {
        soon(|| self.reached.load(Ordering::Relaxed) > 0);
    }

    fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

fn methods() -> Vec<Method> {
    let mut methods = vec![
        Method { engine: Engine::Threads(1), request_bytes: 1 << 20 },
        Method { engine: Engine::Threads(4), request_bytes: 10_000 },
    ];
    for (depth, request_bytes) in [(1, 1 << 20), (8, 10_000)] {
        let method = Method { engine: Engine::Uring(depth), request_bytes };
        let files = Files::open::<&Path>(&[], IoMode::Auto).unwrap();
        match method.open(&files, &Slots::new(0, 1).unwrap()) {
            Ok(_) => methods.push(method),
            Err(error) => eprintln!("NOT TESTED: {error}"),
        }
    }
    methods
}

/// A disk's folder, and one in memory where there is such.
fn folders() -> Vec<tempfile::TempDir> {
    let mut folders = vec![tempfile::tempdir().unwrap()];
    match tempfile::tempdir_in("/dev/shm") {
        Ok(folder) => folders.push(folder),
        Err(error) => eprintln!("NOT TESTED: /dev/shm: {error}"),
    }
    folders
}

fn content(len: usize, seed: u32) -> Vec<u8> {
    (0..len as u32).map(|i| (i.wrapping_add(seed).wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

struct Case {
    folder: tempfile::TempDir,
    bytes: Vec<u8>,
    files: Arc<Files>,
    slots: Arc<Slots>,
}

impl Case {
    /// Two files of the same content, the second to see that a reader still works; eight slots of 100 KB.
    fn new(folder: tempfile::TempDir) -> Case {
        let bytes = content(300_001, 1);
        let paths = ["a", "b"].map(|name| folder.path().join(name));
        for path in &paths {
            std::fs::write(path, &bytes).unwrap();
        }
        let files = Files::open(&paths, IoMode::Auto).unwrap();
        Case { folder, bytes, files, slots: Slots::new(8, 100_000).unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("a")
    }

    fn assert_reads(&self, reader: &mut dyn Reader, file: usize) {
        let slot = (0..8).find(|&slot| self.slots.state(slot) != SlotState::Reading).unwrap();
        reader.submit(u64::MAX, &[part(file, 5000, 60_000, slot)]);
        let done = all(reader);
        assert!(matches!(done[..], [(u64::MAX, Ok(()))]), "{done:?}");
        assert!(self.slots.lease(slot)[904..][..60_000] == self.bytes[5000..65_000]);
    }
}

fn part(file: usize, offset: u64, len: usize, slot: usize) -> ReadPart {
    ReadPart { file, offset, len, slot, at: 0 }
}

fn all(reader: &mut dyn Reader) -> Finished {
    let mut done = Vec::new();
    while reader.in_flight() > 0 {
        reader.finished(Wait::Forever, &mut done);
    }
    done
}

fn in_every_way(test: impl Fn(&Case, Box<dyn Reader>)) {
    for method in methods() {
        for folder in folders() {
            let case = Case::new(folder);
            let reader = method.open(&case.files, &case.slots).unwrap();
            eprintln!("{}", reader.describe());
            test(&case, reader);
        }
    }
}

/// Waits for what another thread does.
fn soon(what: impl Fn() -> bool) {
    let start = Instant::now();
    while !what() {
        assert!(start.elapsed() < Duration::from_secs(20), "it never came");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn bytes_are_the_files_wherever_they_begin_and_end() {
    in_every_way(|case, mut reader| {
        let end = case.bytes.len();
        let ranges =
            [(0, 1), (4095, 2), (4096, 4096), (32, 99_000), (end - 1, 1), (end - 4097, 4097), (7777, 81_000)];
        for (slot, (offset, len)) in ranges.into_iter().enumerate() {
            reader.submit(slot as u64, &[part(slot % 2, offset as u64, len, slot)]);
        }
        assert_eq!(reader.in_flight(), ranges.len());
        let mut done = all(&mut *reader);
        done.sort_by_key(|(id, _)| *id);
        for ((id, result), (offset, len)) in done.into_iter().zip(ranges) {
            result.unwrap();
            let leased = case.slots.lease(id as usize);
            assert!(
                leased[offset % BLOCK..][..len] == case.bytes[offset..][..len],
                "{len} bytes at {offset}"
            );
        }
        assert!(reader.bytes_read() >= ranges.iter().map(|(_, len)| *len as u64).sum());
    });
}

#[test]
fn parts_of_one_read_lie_where_the_caller_laid_them_out() {
    in_every_way(|case, mut reader| {
        let mut at = 0;
        let mut parts = Vec::new();
        for (file, offset, len) in [(0, 31, 20_000), (1, 100_032, 5), (0, 270_001, 30_000)] {
            parts.push(ReadPart { file, offset, len, slot: 3, at });
            at += Window::of(offset, len).len;
        }
        parts.push(part(1, 9, 9, 5));
        reader.submit(1, &parts);
        assert!(matches!(all(&mut *reader)[..], [(1, Ok(()))]));
        for ReadPart { offset, len, slot, at, .. } in parts {
            let skip = Window::of(offset, len).skip;
            assert!(case.slots.lease(slot)[at + skip..][..len] == case.bytes[offset as usize..][..len]);
        }
    });
}

#[test]
fn a_slot_is_read_into_again_and_again() {
    in_every_way(|case, mut reader| {
        for turn in 0..40_u64 {
            for slot in 0..8 {
                reader.submit(turn * 8 + slot, &[part(0, turn * 5000 + slot * 11, 70_000, slot as usize)]);
            }
            for (_, result) in all(&mut *reader) {
                result.unwrap();
            }
            for slot in 0..8 {
                let offset = (turn * 5000 + slot * 11) as usize;
                let leased = case.slots.lease(slot as usize);
                assert!(leased[offset % BLOCK..][..70_000] == case.bytes[offset..][..70_000]);
            }
        }
    });
}

#[test]
fn short_and_interrupted_reads_go_on() {
    in_every_way(|case, mut reader| {
        let count = AtomicUsize::new(0);
        meddle(&case.files, move |_, result| match count.fetch_add(1, Ordering::Relaxed) % 4 {
            0 => Err(io::ErrorKind::Interrupted.into()),
            1 => result.map(|more| if more > 2 * BLOCK { more - BLOCK - 17 } else { more }),
            2 => Err(io::ErrorKind::WouldBlock.into()),
            _ => result,
        });
        case.assert_reads(&mut *reader, 0);
    });
}

#[test]
fn an_error_of_the_disk_names_the_place_and_harms_no_other_read() {
    in_every_way(|case, mut reader| {
        meddle(&case.files, |offset, result| match offset {
            98_304..106_496 => Err(io::Error::from_raw_os_error(5)),
            _ => result,
        });
        reader.submit(1, &[part(0, 60_000, 80_000, 0)]);
        reader.submit(2, &[part(1, 150_000, 80_000, 1)]);
        reader.submit(3, &[part(1, 98_304, 2000, 2)]);
        let mut done = all(&mut *reader);
        done.sort_by_key(|(id, _)| *id);
        assert!(done[1].1.is_ok());
        let error = done.pop().unwrap().1.unwrap_err();
        assert!(
            matches!(&error, ReadError::Io { offset: 98_304, path, .. } if path.ends_with("b")),
            "{error}"
        );
        // Where the read is cut decides which of its pieces fails.
        if let Err(error) = &done[0].1 {
            assert!(matches!(error, ReadError::Io { path, .. } if path.ends_with("a")), "{error}");
            assert_eq!(case.slots.state(0), SlotState::Free);
        }
        assert_eq!(
            (case.slots.state(1), case.slots.state(2)),
            (SlotState::Ready { leases: 0 }, SlotState::Free)
        );
        case.assert_reads(&mut *reader, 0);
    });
}

#[test]
fn a_truncated_file_is_an_error_and_the_reader_stays_usable() {
    in_every_way(|case, mut reader| {
        std::fs::File::options().write(true).open(case.path()).unwrap().set_len(70_000).unwrap();
        reader.submit(1, &[part(0, 50_000, 90_000, 0)]);
        let error = all(&mut *reader).pop().unwrap().1.unwrap_err().to_string();
        assert!(error.contains("changed its size from 300001 to 70000 bytes while it was in use"), "{error}");
        assert!(error.contains(&*case.path().to_string_lossy()), "{error}");
        assert_eq!(case.slots.state(0), SlotState::Free);
        case.assert_reads(&mut *reader, 1);
    });
}

#[test]
fn a_file_that_was_replaced_or_written_to_is_noticed_though_reads_succeed() {
    let replace = |path: &Path| {
        let other = path.with_extension("new");
        std::fs::copy(path, &other).unwrap();
        std::fs::rename(other, path).unwrap();
    };
    for replaced in [true, false] {
        let case = Case::new(tempfile::tempdir().unwrap());
        let mut reader = methods()[0].open(&case.files, &case.slots).unwrap();
        case.assert_reads(&mut *reader, 0);
        let what = if replaced {
            replace(&case.path());
            "was replaced"
        } else {
            std::fs::write(case.path(), content(300_001, 2)).unwrap();
            "was written to"
        };
        std::thread::sleep(Duration::from_millis(1100));
        reader.submit(1, &[part(0, 0, 10, 0)]);
        let error = all(&mut *reader).pop().unwrap().1.unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
        case.assert_reads(&mut *reader, 1);
    }
}

#[test]
fn a_file_that_lost_its_name_is_read_on() {
    in_every_way(|case, mut reader| {
        std::fs::remove_file(case.path()).unwrap();
        case.assert_reads(&mut *reader, 0);
    });
}

#[test]
fn bytes_beyond_the_end_are_an_error_of_that_read() {
    in_every_way(|case, mut reader| {
        case.assert_reads(&mut *reader, 0);
        reader.submit(1, &[part(0, 300_000, 2, 0)]);
        reader.submit(2, &[part(0, u64::MAX, 2, 0)]);
        assert_eq!(case.slots.state(0), SlotState::Free);
        for (_, result) in all(&mut *reader) {
            assert!(matches!(result, Err(ReadError::BeyondEnd { size: 300_001, .. })), "{result:?}");
        }
        case.assert_reads(&mut *reader, 0);
    });
}

#[test]
fn a_cancelled_storm_returns_at_once_and_leaves_no_slot_to_a_late_read() {
    // Of all ways the shortest, for a busy machine may stop any one of them.
    let shortest = std::cell::Cell::new(Duration::MAX);
    in_every_way(|case, mut reader| {
        // The gate stands for a disk that takes its time: nothing that was started ends before it opens.
        let gate = Gate::before(&case.files);
        for slot in 0..8 {
            reader.submit(slot, &[part(0, slot * 20_000, 90_000, slot as usize)]);
        }
        gate.reached();
        let start = Instant::now();
        reader.cancel_pending();
        shortest.set(shortest.get().min(start.elapsed()));
        let mut done = Vec::new();
        reader.finished(Wait::Forever, &mut done);
        assert!(reader.in_flight() == 0 && done.is_empty());
        gate.open();
        soon(|| (0..8).all(|slot| case.slots.state(slot) == SlotState::Free));
        reader.finished(Wait::No, &mut done);
        assert!(done.is_empty(), "{done:?}");
        case.assert_reads(&mut *reader, 0);
    });
    assert!(shortest.get() < Duration::from_millis(100), "{shortest:?}");
}

#[test]
fn a_stalled_disk_is_an_error_and_its_slot_is_kept_until_it_answers() {
    for method in methods() {
        let case = Case::new(tempfile::tempdir().unwrap());
        let mut reader = method.open_with(&case.files, &case.slots, Duration::from_millis(400)).unwrap();
        let gate = Gate::before(&case.files);
        reader.submit(1, &[part(0, 40_960, 10_000, 0)]);
        gate.reached();
        reader.submit(2, &[part(0, 81_920, 10_000, 1)]);
        let done = all(&mut *reader);
        let ids: BTreeSet<u64> = done.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, BTreeSet::from([1, 2]));
        for (_, result) in done {
            assert!(matches!(result, Err(ReadError::Stalled { offset: 40_960, .. })), "{result:?}");
        }
        assert_eq!(case.slots.state(0), SlotState::Reading);
        gate.open();
        soon(|| case.slots.state(0) == SlotState::Free && case.slots.state(1) == SlotState::Free);
        case.assert_reads(&mut *reader, 0);
    }
}

#[test]
fn a_caller_that_was_away_does_not_take_its_absence_for_a_stall() {
    let case = Case::new(tempfile::tempdir().unwrap());
    let mut reader = methods()[0].open_with(&case.files, &case.slots, Duration::from_secs(2)).unwrap();
    let gate = Gate::before(&case.files);
    reader.submit(1, &[part(0, 0, 10, 0)]);
    std::thread::sleep(Duration::from_millis(2500));
    let mut done = Vec::new();
    reader.finished(Wait::No, &mut done);
    assert!(done.is_empty(), "{done:?}");
    gate.open();
    assert!(matches!(all(&mut *reader)[..], [(1, Ok(()))]));
}

#[test]
fn a_dropped_readers_memory_lives_until_its_reads_have_ended() {
    for method in methods() {
        let Case { folder, files, slots, .. } = Case::new(tempfile::tempdir().unwrap());
        let mut reader = method.open(&files, &slots).unwrap();
        let gate = Gate::before(&files);
        for slot in 0..8 {
            reader.submit(slot, &[part(0, slot * 20_000, 90_000, slot as usize)]);
        }
        gate.reached();
        let pool = Arc::downgrade(&slots);
        drop(reader);
        drop(slots);
        std::thread::sleep(Duration::from_millis(20));
        assert!(pool.upgrade().is_some(), "{method}: the pool went before its reads");
        gate.open();
        soon(|| pool.upgrade().is_none());
        drop(folder);
    }
}

#[test]
fn waiting_ends_at_its_deadline() {
    in_every_way(|case, mut reader| {
        let gate = Gate::before(&case.files);
        reader.submit(1, &[part(0, 0, 10, 0)]);
        let mut done = Vec::new();
        reader.finished(Wait::No, &mut done);
        reader.finished(Wait::Until(Instant::now() + Duration::from_millis(10)), &mut done);
        assert!(done.is_empty() && reader.in_flight() == 1);
        gate.open();
        reader.finished(Wait::Forever, &mut done);
        assert!(matches!(done[..], [(1, Ok(()))]));
    });
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_system_in_memory_is_read_buffered_and_the_reader_says_so() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        eprintln!("NOT TESTED: there is no /dev/shm");
        return;
    };
    let path = folder.path().join("a");
    std::fs::write(&path, content(10_000, 3)).unwrap();
    let files = Files::open(&[&path], IoMode::Auto).unwrap();
    let reader = methods()[0].open(&files, &Slots::new(1, 1).unwrap()).unwrap();
    assert_eq!(reader.describe(), "1 threads, requests of up to 1 MB, buffered (its file system is memory)");
    let error = Files::open(&[&path], IoMode::Direct).unwrap_err();
    assert!(matches!(error, ReadError::NotDirect { .. }), "{error}");
}

#[test]
fn a_file_that_is_not_there_is_an_error_with_its_name() {
    let error = Files::open(&["/nowhere/model.gguf"], IoMode::Auto).unwrap_err().to_string();
    assert!(error.starts_with("can't open `/nowhere/model.gguf`"), "{error}");
}
