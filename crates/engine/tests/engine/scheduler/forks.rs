//! A fork goes on as a sequence that was fed alone, whatever the layers keep, and so does the original.

use turbospark_engine::{Engine, Pooling, Sequence, Wanted};
use turbospark_format::dequantize;

use crate::fixtures::{bits, distance, engine, longest, small};

fn feed(engine: &Engine, sequence: &mut Sequence, tokens: &[u32]) -> Vec<u32> {
    let mut last = Vec::new();
    engine.feed(sequence, tokens, Some(50), Wanted::Last, |_, logits| last = bits(logits)).unwrap();
    last
}

fn fresh(engine: &Engine, tokens: &[u32]) -> Vec<u32> {
    feed(engine, &mut engine.sequence(), tokens)
}

#[test]
fn forks_and_originals_go_on_as_if_alone() {
    let mut anywhere = 0;
    for file in small() {
        let engine = engine(file);
        let tokens = longest(file).repeat(4)[..250].to_vec();
        let mut sequence = engine.sequence();
        feed(&engine, &mut sequence, &tokens[..150]);
        sequence.save();
        feed(&engine, &mut sequence, &tokens[150..]);
        // At the end, at the saved point, and where every layer keeps everything anywhere.
        for at in [250, 150, 90] {
            let Some(mut fork) = sequence.fork(at) else {
                assert_eq!(at, 90, "{file}");
                continue;
            };
            anywhere += usize::from(at == 90);
            assert_eq!(fork.len(), at);
            let other = [&tokens[..at], &[5, 6, 7]].concat();
            assert_eq!(feed(&engine, &mut fork, &[5, 6, 7]), fresh(&engine, &other), "{file} at {at}");
            let mut second = fork.fork(at + 3).unwrap();
            drop(fork);
            let longer = [&other[..], &[9]].concat();
            assert_eq!(feed(&engine, &mut second, &[9]), fresh(&engine, &longer), "{file} at {at}");
        }
        assert!(sequence.fork(251).is_none());
        let longer = [&tokens[..], &[8, 8]].concat();
        assert_eq!(feed(&engine, &mut sequence, &[8, 8]), fresh(&engine, &longer), "{file}");
    }
    assert!(anywhere >= 5);
}

#[test]
fn embeddings_are_what_the_head_reads() {
    let engine = engine("llama-b-f32.gguf");
    let tokens = longest("llama-b-f32.gguf");
    let hidden = engine.embed(&tokens, Pooling::Last).unwrap();
    let (gguf, head) = (engine.gguf(), &engine.spec().head);
    let tensor = &gguf.tensors()[head.projection.weight.index];
    let mut weights = vec![0.0; hidden.len() * engine.spec().n_vocab];
    dequantize(tensor.block_type, gguf.bytes(tensor), &mut weights);
    let by_hand: Vec<f32> = weights
        .chunks_exact(hidden.len())
        .map(|row| row.iter().zip(&hidden).map(|(a, b)| a * b).sum::<f32>() * head.logit_scale)
        .collect();
    let mut logits = Vec::new();
    engine.feed(&mut engine.sequence(), &tokens, None, Wanted::Last, |_, l| logits = l.to_vec()).unwrap();
    assert!(distance(&logits, &by_hand) < 1e-3);
    // The mean over one position is that position; over two, halfway between prefixes' ends.
    let ends: Vec<Vec<f32>> = (1..=2).map(|n| engine.embed(&tokens[..n], Pooling::Last).unwrap()).collect();
    assert_eq!(engine.embed(&tokens[..1], Pooling::Mean).unwrap(), ends[0]);
    let mean: Vec<f32> = ends[0].iter().zip(&ends[1]).map(|(a, b)| (a + b) / 2.0).collect();
    assert!(distance(&engine.embed(&tokens[..2], Pooling::Mean).unwrap(), &mean) < 1e-5);
    assert!(engine.embed(&[], Pooling::Mean).is_err());
}
