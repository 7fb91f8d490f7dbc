//! Layers of dense models that are read for each pass: every logit has the bits of a resident run, and a failed read harms nothing else.

use turbospark_engine::{
    CancelFlag, Engine, EngineError, EngineOptions, KvKind, Part, ReadEngine, ReadMethod, Wanted,
};
use turbospark_experts::ExpertError;
use turbospark_format::Gguf;
use turbospark_model::{FeedForward, ModelSpec};

use crate::fixtures::{bits, folder, logits, longest, open, small};

/// Every small model without experts, and its number of layers.
fn dense() -> impl Iterator<Item = (&'static str, usize)> {
    small().filter_map(|file| {
        let spec = ModelSpec::from_gguf(&Gguf::open(folder().join(file)).unwrap()).unwrap();
        let dense = spec.layers.iter().all(|l| matches!(l.feed_forward, FeedForward::Dense(_)));
        dense.then_some((file, spec.layers.len()))
    })
}

fn options(pinned_layers: Option<usize>) -> EngineOptions {
    let reads = Some(ReadMethod { engine: ReadEngine::Threads(2), request_bytes: 1 << 20 });
    EngineOptions { threads: Some(2), kv: KvKind::F32, pinned_layers, reads, ..EngineOptions::default() }
}

fn run(engine: &Engine, tokens: &[u32], chunk: usize) -> Vec<u32> {
    bits(&logits(engine, tokens, chunk))
}

#[test]
fn streamed_layers_equal_resident_ones_however_many_stay() {
    assert!(dense().count() >= 12);
    for (file, layers) in dense() {
        let tokens = longest(file);
        let resident = run(&open(file, options(None)), &tokens, 512);
        for pinned in [0, 1, layers - 1] {
            let engine = open(file, options(Some(pinned)));
            assert!(engine.io().is_some() && engine.cached_experts().is_none(), "{file} is not streamed");
            for chunk in [512, 7, 1] {
                assert!(run(&engine, &tokens, chunk) == resident, "{file}, {pinned} stay, chunks of {chunk}");
            }
            let stats = engine.expert_stats();
            let share = stats.hits * layers as u64 == stats.requests * pinned as u64;
            assert!(stats.bytes_read > 0 && share, "{file}, {pinned} of {layers} stay: {stats:?}");
        }
        assert!(open(file, options(Some(layers))).io().is_none(), "nothing is left to read");
    }
}

#[test]
fn a_pass_that_was_given_up_leaves_an_engine_that_gives_the_same_bits() {
    let file = "llama-b-f32.gguf";
    let tokens = longest(file);
    let resident = run(&open(file, options(None)), &tokens, 512);
    let engine = open(file, options(Some(0)));
    for layers in 0..engine.spec().layers.len() {
        let cancel = CancelFlag::new();
        let mut sequence = engine.sequence();
        let part = Part { sequence: &mut sequence, tokens: &tokens, wanted: Wanted::All };
        let raise = |done: usize| {
            if done > layers {
                cancel.cancel();
            }
        };
        raise(usize::from(layers == 0));
        let result = engine.forward_watched(&mut [part], &cancel, &mut |done, _| raise(done), |_, _, _| {});
        let last = layers + 1 == engine.spec().layers.len();
        assert!(last == result.is_ok(), "given up after {layers} layers: {result:?}");
        assert!(run(&engine, &tokens, 512) == resident, "after {layers} layers");
    }
}

#[test]
fn a_file_cut_short_while_open_gives_an_error_that_names_the_layer() {
    let folder_of_copy = tempfile::tempdir().unwrap();
    let copy = folder_of_copy.path().join("cut.gguf");
    std::fs::copy(folder().join("llama-b-f32.gguf"), &copy).unwrap();
    let engine = Engine::open(&copy, options(Some(1))).unwrap();
    let last = format!("blk.{}.", engine.spec().layers.len() - 1);
    let tensors = engine.gguf().tensors();
    let start = tensors.iter().filter(|t| t.name.starts_with(&last)).map(|t| t.offset).min().unwrap();
    // The embedding lies before the layers, and the head is not reached: no page that is gone is touched.
    assert!(tensors.iter().find(|t| t.name == "token_embd.weight").unwrap().offset < start);
    let file = std::fs::OpenOptions::new().write(true).open(&copy).unwrap();
    file.set_len(start).unwrap();
    let mut sequence = engine.sequence();
    let part = Part { sequence: &mut sequence, tokens: &[1], wanted: Wanted::Nothing };
    let error = engine.forward(&mut [part], |_, _, _| {}).unwrap_err();
    let named = matches!(error, EngineError::Expert(ExpertError::ReadLayer { layer, .. }) if layer > 0);
    assert!(named && error.to_string().contains("cut.gguf"), "{error}");
    assert_eq!(sequence.len(), 0);
}
