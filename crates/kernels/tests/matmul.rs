//! Matrix products: SIMD against the scalar twin and many rows against one, bit for bit; all against double precision.

use turbospark_format::BlockType;
use turbospark_kernels::{Cpu, Mat, MatJob, MatScratch};

/// A small deterministic generator (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn float(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}

/// Random blocks: any bits are valid codes, and the f16 factors are set to finite values.
fn weights(ty: BlockType, n: usize, k: usize, random: &mut Random) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..n * ty.row_bytes(k).unwrap()).map(|_| random.next() as u8).collect();
    let half_factors: &[usize] = match ty {
        BlockType::Q4_0 | BlockType::Q5_0 | BlockType::Q8_0 | BlockType::IQ4_NL | BlockType::IQ4_XS => &[0],
        BlockType::Q4_1 | BlockType::Q5_1 | BlockType::Q4_K | BlockType::Q5_K => &[0, 2],
        BlockType::Q2_K => &[80, 82],
        BlockType::Q3_K => &[108],
        BlockType::Q6_K => &[208],
        _ => &[],
    };
    for block in bytes.chunks_mut(ty.block_bytes()) {
        for &at in half_factors {
            block[at..at + 2].copy_from_slice(&half::f16::from_f32(random.float() * 0.1).to_le_bytes());
        }
        match ty {
            BlockType::MXFP4 => block[0] = 110 + block[0] % 20,
            BlockType::F32 => block.copy_from_slice(&random.float().to_le_bytes()),
            BlockType::F16 => block.copy_from_slice(&half::f16::from_f32(random.float()).to_le_bytes()),
            BlockType::BF16 => block.copy_from_slice(&half::bf16::from_f32(random.float()).to_le_bytes()),
            _ => {}
        }
    }
    bytes
}

fn product(cpu: &Cpu, ty: BlockType, n: usize, k: usize, w: &[u8], x: &[f32]) -> Vec<f32> {
    let m = x.len() / k;
    let mut out = vec![f32::NAN; m * n];
    let job = MatJob { w: Mat::new(ty, n, k, w).unwrap(), rows: 0..m, out: &mut out };
    cpu.matmul(&mut MatScratch::default(), x, &mut [job]);
    out
}

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn simd_equals_scalar_and_many_rows_equal_one_bit_for_bit() {
    let mut random = Random(1);
    for ty in BlockType::ALL {
        for (n, k) in [(1, 256), (37, 512), (16, 1024), (8, 256 * 5)] {
            let w = weights(ty, n, k, &mut random);
            for m in [1, 2, 3, 4, 5, 7, 12] {
                let mut x: Vec<f32> = (0..m * k).map(|_| random.float() * 3.0).collect();
                x[k / 2] = 40.0;
                let scalar = product(&Cpu::scalar(1), ty, n, k, &w, &x);
                assert!(scalar.iter().all(|x| x.is_finite()));
                for threads in [1, 2, 3] {
                    let simd = product(&Cpu::new(threads), ty, n, k, &w, &x);
                    assert_eq!(
                        bits(&simd),
                        bits(&scalar),
                        "{ty} [{n}, {k}] with {m} rows, {threads} threads"
                    );
                }
                for row in 0..m {
                    let alone = product(&Cpu::new(2), ty, n, k, &w, &x[row * k..(row + 1) * k]);
                    assert_eq!(bits(&alone), bits(&scalar[row * n..(row + 1) * n]), "{ty} row {row} of {m}");
                }
            }
        }
    }
}

#[test]
fn extreme_codes_do_not_overflow() {
    for ty in BlockType::ALL {
        let (n, k) = (9, 512);
        for fill in [0x00, 0xff, 0x7f, 0x80] {
            let mut w = weights(ty, n, k, &mut Random(2));
            let factors = w.clone();
            w.fill(fill);
            if ty.block_len() == 1 {
                continue;
            }
            // Keep each block's float factors; every code and integer scale is extreme.
            let keep: &[usize] = match ty {
                BlockType::Q2_K => &[80, 81, 82, 83],
                BlockType::Q3_K => &[108, 109],
                BlockType::Q6_K => &[208, 209],
                BlockType::MXFP4 => &[0],
                BlockType::Q4_1 | BlockType::Q5_1 | BlockType::Q4_K | BlockType::Q5_K => &[0, 1, 2, 3],
                _ => &[0, 1],
            };
            for (to, from) in w.chunks_mut(ty.block_bytes()).zip(factors.chunks(ty.block_bytes())) {
                for &i in keep {
                    to[i] = from[i];
                }
            }
            let x: Vec<f32> =
                (0..4 * k).map(|i| if i / k % 2 == 0 || i % 3 == 0 { 1.0 } else { -1.0 }).collect();
            let scalar = product(&Cpu::scalar(1), ty, n, k, &w, &x);
            assert_eq!(
                bits(&product(&Cpu::new(1), ty, n, k, &w, &x)),
                bits(&scalar),
                "{ty} filled with {fill:#x}"
            );
            let alone = product(&Cpu::new(1), ty, n, k, &w, &x[..k]);
            assert_eq!(bits(&alone), bits(&scalar[..n]), "{ty} filled with {fill:#x}, one row");
        }
    }
}

#[test]
fn products_agree_with_dequantised_weights_in_double_precision() {
    let mut random = Random(3);
    for ty in BlockType::ALL {
        let (n, k, m) = (24, 512, 3);
        let w = weights(ty, n, k, &mut random);
        let x: Vec<f32> = (0..m * k).map(|_| random.float()).collect();
        let mut values = vec![0.0; n * k];
        turbospark_format::dequantize(ty, &w, &mut values);
        let got = product(&Cpu::new(2), ty, n, k, &w, &x);
        for row in 0..m {
            for column in 0..n {
                let pairs = || values[column * k..].iter().zip(&x[row * k..(row + 1) * k]);
                let want: f64 = pairs().map(|(w, x)| f64::from(*w) * f64::from(*x)).sum();
                let size = pairs().map(|(w, x)| (f64::from(*w) * f64::from(*x)).powi(2)).sum::<f64>().sqrt();
                // Activations of 8 bits: an error of at most 1/254 of a block's largest value, random in sign.
                let tolerance = if ty.block_len() == 1 { 1e-5 } else { 0.02 } * size.max(1e-6);
                let difference = (f64::from(got[row * n + column]) - want).abs();
                assert!(
                    difference <= tolerance,
                    "{ty} ({row}, {column}): off by {difference}, allowed {tolerance}"
                );
            }
        }
    }
}

#[test]
fn a_non_finite_activation_reaches_every_output_of_its_row_and_no_other() {
    let (n, k) = (16, 256);
    for ty in [BlockType::Q4_0, BlockType::Q8_0, BlockType::Q4_K, BlockType::Q6_K] {
        let w = weights(ty, n, k, &mut Random(4));
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut x = vec![0.5; 3 * k];
            x[k + 100] = bad;
            for cpu in [Cpu::new(1), Cpu::scalar(1)] {
                let out = product(&cpu, ty, n, k, &w, &x);
                assert!(out[n..2 * n].iter().all(|x| x.is_nan()), "{ty}: {bad} vanished");
                assert!(out[..n].iter().chain(&out[2 * n..]).all(|x| x.is_finite()), "{ty}: {bad} spread");
            }
        }
    }
}

#[test]
fn jobs_that_share_an_input_give_what_each_gives_alone() {
    let (k, m) = (256, 5);
    let mut random = Random(5);
    let x: Vec<f32> = (0..m * k).map(|_| random.float()).collect();
    let types = [(BlockType::Q4_K, 24), (BlockType::F32, 7), (BlockType::Q8_0, 40)];
    let ws: Vec<_> = types.iter().map(|&(ty, n)| weights(ty, n, k, &mut random)).collect();
    let mut outs: Vec<Vec<f32>> = types.iter().map(|&(_, n)| vec![0.0; m * n]).collect();
    let cpu = Cpu::new(2);
    let mut jobs: Vec<MatJob<'_>> = types
        .iter()
        .zip(&ws)
        .zip(&mut outs)
        .map(|((&(ty, n), w), out)| MatJob { w: Mat::new(ty, n, k, w).unwrap(), rows: 0..m, out })
        .collect();
    cpu.matmul(&mut MatScratch::default(), &x, &mut jobs);
    drop(jobs);
    for (((ty, n), w), out) in types.iter().zip(&ws).zip(&outs) {
        assert_eq!(bits(out), bits(&product(&cpu, *ty, *n, k, w, &x)));
    }
}

#[test]
fn groups_of_picked_rows_give_what_each_row_gives_alone() {
    let (n, k, m) = (40, 256, 6);
    let mut random = Random(6);
    let x: Vec<f32> = (0..m * k).map(|_| random.float()).collect();
    // Experts with no, one, several and repeated rows, float and quantised beside each other.
    let picked = [5_u32, 0, 2, 3, 2, 1, 4];
    let groups =
        [(BlockType::MXFP4, 0..1), (BlockType::F32, 1..1), (BlockType::MXFP4, 1..4), (BlockType::F32, 4..7)];
    let ws: Vec<_> = groups.iter().map(|(ty, _)| weights(*ty, n, k, &mut random)).collect();
    for cpu in [Cpu::new(1), Cpu::new(3), Cpu::scalar(1)] {
        let mut out = vec![f32::NAN; picked.len() * n];
        let mut rest = out.as_mut_slice();
        let mut jobs = Vec::new();
        for ((ty, rows), w) in groups.iter().zip(&ws) {
            let (out, after) = rest.split_at_mut(rows.len() * n);
            rest = after;
            jobs.push(MatJob { w: Mat::new(*ty, n, k, w).unwrap(), rows: rows.clone(), out });
        }
        cpu.matmul_picked(&mut MatScratch::default(), &x, &picked, &mut jobs);
        drop(jobs);
        for ((ty, rows), w) in groups.iter().zip(&ws) {
            for row in rows.clone() {
                let from = picked[row] as usize;
                let alone = product(&cpu, *ty, n, k, w, &x[from * k..(from + 1) * k]);
                assert_eq!(bits(&out[row * n..(row + 1) * n]), bits(&alone), "{ty}, slot {row}");
            }
        }
    }
}
