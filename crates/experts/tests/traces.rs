//! Trace files: written and read back, cut off, damaged, and hostile.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use turbospark_experts::trace::{
    MadeUp, Recorder, Trace, TraceError, TraceHeader, TraceLayer, generate, replay,
};
use turbospark_experts::{Phase, PolicyKind, RouteBatch, RouteSink};

fn small() -> Trace {
    let p = MadeUp {
        layers: 3,
        experts: 200,
        top_k: 4,
        turns: 2,
        prompt: 300,
        answer: 20,
        ..MadeUp::sixteen_by_sixty_four()
    };
    generate(&p).unwrap()
}

fn write(trace: &Trace, path: &Path) {
    let mut recorder = Recorder::create(path, trace.header().clone()).unwrap();
    trace.batches().for_each(|batch| recorder.routed(&batch));
    recorder.finish().unwrap();
}

fn bytes_of(trace: &Trace) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace");
    write(trace, &path);
    fs::read(path).unwrap()
}

fn read(bytes: &[u8]) -> Result<Trace, TraceError> {
    Trace::read(bytes, Path::new("x.trace"))
}

#[test]
fn what_is_recorded_is_read_back() {
    let trace = small();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace");
    write(&trace, &path);
    let back = Trace::open(&path).unwrap();
    assert!(back == trace && !back.cut_off());
    // A row's four experts take four to eight bytes and a head of four.
    let decoded = trace.batches().filter(|b| b.phase == Phase::Decode).count() as u64;
    assert!(fs::metadata(&path).unwrap().len() < decoded * 12 + 4000);
}

#[test]
fn a_file_cut_anywhere_gives_the_batches_before_the_cut_or_says_that_the_header_is_cut() {
    let trace = small();
    let bytes = bytes_of(&trace);
    let header = bytes_of(&Trace::new(trace.header().clone()).unwrap()).len();
    for end in 0..bytes.len().min(header + 3000) {
        match read(&bytes[..end]) {
            Ok(cut) => {
                assert!(end >= header);
                let n = cut.batches().count();
                assert!(cut.batches().eq(trace.batches().take(n)));
                assert!(cut.cut_off() || end == header || bytes[end] == b'P' || bytes[end] == b'D');
            }
            Err(TraceError::NotATrace { .. }) => assert!(end < 8),
            Err(e) => assert!(end < header && e.to_string().contains("cut off"), "{end}: {e}"),
        }
    }
}

#[test]
fn damage_is_named_with_its_place() {
    let trace = small();
    let header = bytes_of(&Trace::new(trace.header().clone()).unwrap());
    let with = |tail: &[u8]| read(&[&header, tail].concat()).unwrap_err().to_string();
    let place = format!("x.trace is damaged at byte {}: ", header.len());
    for (tail, what) in [
        (&b"Z"[..], "no record begins with 0x5a"),
        (b"\0\0\0\0", "no record begins with 0x00"),
        (b"D\x03\x01\x01\x05", "layer 3"),
        (b"D\x00\x00\x01\x05", "0 rows"),
        (b"D\x00\x01\x00", "0 experts"),
        (b"D\x00\x01\x02\x05\x00", "layer 0 has not"),
        (b"D\x00\x01\x01\xc8\x01", "expert 200"),
        (b"P\x00\x02\x01\x05\x03", "3 of 2 rows"),
        (b"P\x00\x02\x01\x05\x00", "0 of 2 rows"),
        (b"D\xff\xff\xff\xff\xff\xff", "five bytes"),
        (b"D\xff\xff\xff\xff\x7f", "the number"),
    ] {
        let error = with(tail);
        assert!(error.contains(&place) && error.contains(what), "{error}");
    }
    assert!(read(b"GGUF and more").unwrap_err().to_string().contains("no routing trace"));
    let mut later = header.clone();
    later[8] = 9;
    let error = read(&later).unwrap_err().to_string();
    assert!(error.contains("version 9") && error.contains("reads version 1"), "{error}");
}

#[test]
fn a_header_of_impossible_size_is_refused_without_taking_it_at_its_word() {
    let head = |name: u32, layers: u32, experts: u32| {
        let mut bytes = b"TSROUTES\x01\0\0\0".to_vec();
        bytes.extend(name.to_le_bytes());
        bytes.extend(8_u32.to_le_bytes());
        bytes.extend(layers.to_le_bytes());
        for _ in 0..layers.min(10) {
            bytes.extend(experts.to_le_bytes());
            bytes.extend(1_u64.to_le_bytes());
        }
        bytes
    };
    assert!(read(&head(0, 10, 100)).is_ok());
    for (bytes, what) in [
        (head(u32::MAX, 1, 1), "name of 4294967295"),
        (head(0, u32::MAX, 1), "cut off"),
        (head(0, 10, u32::MAX), "too many"),
        (head(0, 10, 30_000), "too many"),
    ] {
        let error = read(&bytes).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
    let layers = vec![TraceLayer { n_experts: u32::MAX, expert_bytes: 1 }];
    assert!(Trace::new(TraceHeader { model: String::new(), top_k: 1, layers }).is_err());
}

#[test]
fn a_recorder_dropped_in_the_middle_leaves_whole_records() {
    let trace = small();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace");
    let mut recorder = Recorder::create(&path, trace.header().clone()).unwrap();
    trace.batches().take(50).for_each(|batch| recorder.routed(&batch));
    // As a killed process would leave it: what was not flushed is lost.
    let killed = Trace::open(&path).unwrap();
    assert!((47..50).contains(&killed.batches().count()) && !killed.cut_off());
    drop(recorder);
    assert_eq!(Trace::open(&path).unwrap().batches().count(), 50);
}

#[test]
fn a_recorder_keeps_the_first_error_for_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let header = small().header().clone();
    let mut recorder = Recorder::create(&dir.path().join("trace"), header.clone()).unwrap();
    let batch = RouteBatch { phase: Phase::Decode, layer: 0, n_rows: 1, experts: &[200], rows: &[1] };
    recorder.routed(&batch);
    recorder.routed(&RouteBatch { layer: 9, ..batch });
    assert!(recorder.finish().unwrap_err().to_string().contains("expert 200"));
    let missing = dir.path().join("missing").join("trace");
    let error = Recorder::create(&missing, header).err().unwrap().to_string();
    assert!(error.contains("create") && error.contains("missing"), "{error}");
}

#[test]
fn impossible_replays_and_generators_are_refused() {
    let trace = small();
    for slots in [0, usize::MAX] {
        assert!(replay(&trace, PolicyKind::Lru, slots).is_err());
    }
    assert!(generate(&MadeUp { top_k: 65, ..MadeUp::sixteen_by_sixty_four() }).is_err());
    assert!(
        generate(&MadeUp { layers: u32::MAX, experts: u32::MAX, ..MadeUp::sixteen_by_sixty_four() }).is_err()
    );
    let empty = Trace::new(TraceHeader { model: String::new(), top_k: 0, layers: vec![] }).unwrap();
    assert_eq!(replay(&empty, PolicyKind::Decayed, 3).unwrap().total().counts.requests, 0);
}

proptest! {
    #[test]
    fn any_bytes_are_an_error_or_a_trace_that_can_be_replayed(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        random in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut bytes = bytes_of(&generate(&MadeUp {
            layers: 2, experts: 6, top_k: 2, turns: 1, prompt: 9, answer: 9, ..MadeUp::sixteen_by_sixty_four()
        }).unwrap());
        for (at, byte) in flips {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.extend(random);
        if let Ok(trace) = read(&bytes) {
            for kind in [PolicyKind::Decayed, PolicyKind::Arc] {
                let result = replay(&trace, kind, 3).unwrap();
                prop_assert_eq!(result.total().counts.requests, trace.requests() as u64);
            }
        }
    }
}
