//! A row's logits are the same bits whatever stands beside it.

use turbospark_engine::{Engine, EngineOptions, KvKind, Part, Wanted};

use crate::fixtures::{bits, files, logits, longest, open, prompts};

fn options(threads: usize, kv: KvKind) -> EngineOptions {
    EngineOptions { threads: Some(threads), kv, ..EngineOptions::default() }
}

#[test]
fn chunks_and_threads_change_no_bit() {
    for file in files() {
        let tokens = longest(file);
        for kv in [KvKind::F16, KvKind::F32] {
            let whole = bits(&logits(&open(file, options(1, kv)), &tokens, tokens.len()));
            for threads in [1, 2, 3] {
                let engine = open(file, options(threads, kv));
                for chunk in [1, 7, 64, tokens.len()] {
                    let ours = bits(&logits(&engine, &tokens, chunk));
                    assert_eq!(ours, whole, "{file}, {kv:?}, {threads} threads, chunks of {chunk}");
                }
            }
        }
    }
}

#[test]
fn other_sequences_in_the_batch_change_no_bit() {
    for file in files() {
        for kv in [KvKind::F16, KvKind::F32] {
            let engine = open(file, options(2, kv));
            let prompts = prompts(file);
            let alone: Vec<_> = prompts.iter().map(|p| bits(&logits(&engine, p, p.len()))).collect();
            assert_eq!(together(&engine, &prompts), alone, "{file}, {kv:?}");
        }
    }
}

/// Logits of all rows of `prompts`, fed side by side in uneven steps.
fn together(engine: &Engine, prompts: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let mut sequences: Vec<_> = prompts.iter().map(|_| engine.sequence()).collect();
    let mut all = vec![Vec::new(); prompts.len()];
    let mut step = 1;
    loop {
        let (mut parts, mut who) = (Vec::new(), Vec::new());
        for (i, (sequence, prompt)) in sequences.iter_mut().zip(prompts).enumerate() {
            let from = sequence.len();
            let to = (from + step + 3 * i).min(prompt.len());
            if from < to {
                who.push(i);
                parts.push(Part { sequence, tokens: &prompt[from..to], wanted: Wanted::All });
            }
        }
        if parts.is_empty() {
            return all;
        }
        engine.forward(&mut parts, |part, _, logits| all[who[part]].extend(bits(logits))).unwrap();
        step += 4;
    }
}

#[test]
fn asking_for_fewer_logits_changes_no_bit() {
    for file in files() {
        let engine = open(file, options(2, KvKind::F16));
        let tokens = longest(file);
        let all = logits(&engine, &tokens, tokens.len());
        let last = &all[all.len() - engine.spec().n_vocab..];
        let mut sequence = engine.sequence();
        let (start, end) = tokens.split_at(tokens.len() - 5);
        engine
            .feed(&mut sequence, start, Some(9), Wanted::Nothing, |_, _| panic!("none was wanted"))
            .unwrap();
        let mut got = Vec::new();
        engine
            .feed(&mut sequence, end, Some(3), Wanted::Last, |row, logits| {
                assert_eq!(row, 4);
                got.extend_from_slice(logits);
            })
            .unwrap();
        assert_eq!(bits(&got), bits(last), "{file}");
    }
}

#[test]
fn parts_of_one_batch_get_the_logits_that_each_asked_for() {
    for file in files() {
        let engine = open(file, options(2, KvKind::F16));
        let prompts = prompts(file);
        let n_vocab = engine.spec().n_vocab;
        let alone: Vec<_> = prompts.iter().map(|p| bits(&logits(&engine, p, p.len()))).collect();
        let mut sequences: Vec<_> = prompts.iter().map(|_| engine.sequence()).collect();
        let wanted = [Wanted::Last, Wanted::Nothing, Wanted::All];
        let mut parts: Vec<_> = (sequences.iter_mut().zip(&prompts).zip(wanted))
            .map(|((sequence, tokens), wanted)| Part { sequence, tokens, wanted })
            .collect();
        let mut rows = vec![Vec::new(); 3];
        engine
            .forward(&mut parts, |part, row, logits| {
                assert_eq!(
                    bits(logits),
                    alone[part][row * n_vocab..][..n_vocab],
                    "{file}, part {part}, row {row}"
                );
                rows[part].push(row);
            })
            .unwrap();
        let all: Vec<usize> = (0..prompts[2].len()).collect();
        assert_eq!(rows, [vec![prompts[0].len() - 1], vec![], all], "{file}");
    }
}
