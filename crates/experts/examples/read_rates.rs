//! How fast this machine reads a file's experts, by each way of reading: `read_rates FILE [SEGMENT_BYTES [SECONDS [buffered]]]`.
//!
//! The ways take turns, so that a disk that is slow for a while is so for all; each gets bursts of 16 segments.

use std::sync::Arc;
use std::time::{Duration, Instant};

use turbospark_experts::read::{Engine, Files, IoMode, Method, Segment, Window, choose, measure};
use turbospark_experts::{ExpertError, Slots};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let path = args.first().ok_or("read_rates FILE [SEGMENT_BYTES [SECONDS [buffered]]]")?;
    let len: usize = args.get(1).map_or(Ok(4_406_400), |arg| arg.parse())?;
    let seconds: u64 = args.get(2).map_or(Ok(8), |arg| arg.parse())?;
    let mode = if args.get(3).is_some_and(|arg| arg == "buffered") { IoMode::Buffered } else { IoMode::Auto };

    let files = Files::open(&[path], mode)?;
    let segments: Vec<Segment> = (32..files.size(0).saturating_sub(len as u64))
        .step_by(len)
        .map(|offset| Segment { file: 0, offset, len })
        .collect();
    let slots = pool(len)?;
    let mut ways = Vec::new();
    for threads in [1, 2, 4, 8] {
        for request_bytes in [512 << 10, 1 << 20, 8 << 20] {
            ways.push(Method { engine: Engine::Threads(threads), request_bytes });
        }
    }
    for depth in [4, 8, 16, 32] {
        for request_bytes in [512 << 10, 1 << 20, 4 << 20] {
            ways.push(Method { engine: Engine::Uring(depth), request_bytes });
        }
    }
    let mut readers = Vec::new();
    for way in ways {
        match way.open(&files, &slots) {
            Ok(reader) => readers.push((way, reader, Vec::new())),
            Err(error) => println!("{way}: {error}"),
        }
    }
    let until = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < until {
        for (_, reader, rates) in &mut readers {
            rates.push(measure(&mut **reader, &slots, &segments, 16 * len)?);
        }
    }
    if let Ok(smaps) = std::fs::read_to_string("/proc/self/smaps_rollup") {
        let large = smaps.lines().filter(|line| line.starts_with("AnonHuge"));
        large.for_each(|line| println!("of a pool of {} kB: {line}", slots.bytes() >> 10));
    }
    println!("{path}, segments of {len} bytes, {}; MB/s", files.describe());
    for (way, _, rates) in &mut readers {
        rates.sort_by(f64::total_cmp);
        let (low, high) = (rates[0], rates[rates.len() - 1]);
        println!(
            "{way:<44} median {:5.0}, {low:5.0} to {high:5.0}, {} bursts",
            rates[rates.len() / 2],
            rates.len()
        );
    }
    drop(readers);
    for _ in 0..5 {
        let start = Instant::now();
        let (_, choice) = choose(&files, &slots, &segments)?;
        println!("chosen in {:?}: {}", start.elapsed(), choice.text);
    }
    Ok(())
}

fn pool(len: usize) -> Result<Arc<Slots>, ExpertError> {
    Slots::new(8, 3 * Window::of(4095, len).len)
}
