//! Measures what the machine can do, for stating the engine's speed as a share of it.
//!
//! `limits [--threads N] [--seconds S] [--json]` prints the rate at which N threads together read memory (GB/s) and, for
//! each of a few shapes and formats, the rate of the bare matrix kernel (multiply-adds per second) for one and for many rows.
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::time::{Duration, Instant};
use turbospark_format::BlockType;
use turbospark_kernels::{Cpu, Mat, MatJob, MatScratch, Pool, default_threads};

fn main() {
    let mut threads = default_threads();
    let mut seconds = 1.0;
    let mut json = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|n| n.parse::<f64>().ok()).filter(|n| *n > 0.0);
        match argument.as_str() {
            "--json" => json = true,
            "--threads" => threads = number().unwrap_or_else(|| usage()) as usize,
            "--seconds" => seconds = number().unwrap_or_else(|| usage()),
            _ => usage(),
        }
    }
    let time = Duration::from_secs_f64(seconds);
    let bandwidth = read_bandwidth(threads, time);
    // The layer shapes of SmolLM2-135M, Gemma 3 270M, gpt-oss-20b and Qwen3-30B-A3B, each in its file's format.
    let shapes = [
        (BlockType::Q4_1, 1536, 576),
        (BlockType::Q4_1, 576, 1536),
        (BlockType::Q5_0, 2048, 640),
        (BlockType::Q6_K, 640, 2048),
        (BlockType::Q4_K, 640, 2048),
        (BlockType::Q8_0, 8192, 640),
        (BlockType::MXFP4, 2880, 2880),
        (BlockType::Q8_0, 4096, 2880),
        (BlockType::Q4_K, 768, 2048),
        (BlockType::Q6_K, 4096, 2048),
        (BlockType::F32, 128, 2048),
        (BlockType::F16, 576, 576),
    ];
    let cpu = Cpu::new(threads);
    let rows: Vec<_> = shapes
        .map(|(ty, n, k)| (ty, n, k, kernel(&cpu, ty, n, k, 1, time), kernel(&cpu, ty, n, k, 512, time)))
        .into();
    if json {
        let kernels: Vec<_> = rows
            .iter()
            .map(|(ty, n, k, one, many)| {
                serde_json::json!({"type": ty.name(), "n": n, "k": k, "macs_per_second_1": one, "macs_per_second_512": many})
            })
            .collect();
        let result =
            serde_json::json!({"threads": threads, "read_bytes_per_second": bandwidth, "kernels": kernels});
        println!("{result}");
        return;
    }
    println!("{threads} threads, {}", cpu.isa());
    println!("read bandwidth          {:6.1} GB/s", bandwidth / 1e9);
    println!("{:24}{:>14}{:>16}{:>12}", "kernel", "1 row", "512 rows", "1 row");
    for (ty, n, k, one, many) in rows {
        let bytes = one * ty.block_bytes() as f64 / ty.block_len() as f64 / 1e9;
        println!(
            "{:24}{:8.1} GMAC/s{:10.1} GMAC/s{bytes:7.1} GB/s",
            format!("{ty} {n} x {k}"),
            one / 1e9,
            many / 1e9
        );
    }
}

fn usage() -> ! {
    eprintln!("usage: limits [--threads N] [--seconds S] [--json]");
    std::process::exit(2)
}

/// Bytes per second that `threads` threads read from a buffer far larger than the caches.
fn read_bandwidth(threads: usize, time: Duration) -> f64 {
    let buffer = vec![1_u64; (1 << 30) / 8];
    let pool = Pool::new(threads);
    let part = 1 << 17;
    rate(time, || {
        pool.run(buffer.len() / part, &|i| {
            // Independent sums, so that loads and not additions are the limit.
            let mut sums = [0_u64; 32];
            for chunk in buffer[i * part..(i + 1) * part].as_chunks::<32>().0 {
                sums.iter_mut().zip(chunk).for_each(|(s, v)| *s = s.wrapping_add(*v));
            }
            black_box(sums);
        });
        (buffer.len() * 8) as f64
    })
}

/// Multiply-adds per second of the bare product of `m` rows. The weights are many copies that together exceed the caches
/// when `m` is 1, as in decoding.
fn kernel(cpu: &Cpu, ty: BlockType, n: usize, k: usize, m: usize, time: Duration) -> f64 {
    let bytes = n * ty.row_bytes(k).unwrap_or(0);
    let copies = if m == 1 { (256 << 20) / bytes } else { 2 };
    // Small codes and factors: the values do not matter for the speed, infinities would.
    let weights = vec![0x11_u8; bytes * copies];
    let x: Vec<f32> = (0..m * k).map(|i| (i % 17) as f32 * 0.1 - 0.8).collect();
    let mut out = vec![0.0; m * n];
    let mut scratch = MatScratch::default();
    rate(time, || {
        for data in weights.chunks_exact(bytes) {
            let Some(w) = Mat::new(ty, n, k, data) else { return 0.0 };
            cpu.matmul(&mut scratch, &x, &mut [MatJob { w, rows: 0..m, out: &mut out }]);
        }
        black_box(&mut out);
        (m * n * k * copies) as f64
    })
}

/// The median rate of `work` per second over repeated runs, as the rates that are held against it are medians.
fn rate(time: Duration, mut work: impl FnMut() -> f64) -> f64 {
    let (start, mut rates) = (Instant::now(), Vec::new());
    while start.elapsed() < time || rates.is_empty() {
        let before = Instant::now();
        let done = work();
        rates.push(done / before.elapsed().as_secs_f64());
    }
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}
