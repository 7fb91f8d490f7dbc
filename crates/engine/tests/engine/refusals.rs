//! Requests that can't be met are errors that say both numbers, and leave everything as it was.

use turbospark_engine::{
    CancelFlag, Engine, EngineError, EngineOptions, GenerateOptions, Part, SamplingParams, Wanted,
};

use crate::fixtures::{folder, open};

const FILE: &str = "llama-a-f32.gguf";

fn small(context: usize) -> Engine {
    open(FILE, EngineOptions { context: Some(context), threads: Some(1), ..EngineOptions::default() })
}

#[test]
fn a_prompt_longer_than_the_context_says_both_numbers() {
    let engine = small(8);
    let mut session = engine.session();
    session.prompt(&[1, 2, 3]).unwrap();
    let error = session.prompt(&[7; 9]).unwrap_err();
    assert!(matches!(error, EngineError::ContextFull { tokens: 9, context: 8 }));
    let text = error.to_string();
    assert!(text.contains('9') && text.contains('8'), "{text}");
    assert_eq!(session.tokens(), [1, 2, 3], "a refused prompt changes nothing");
    assert!(matches!(session.feed(&[1; 6]), Err(EngineError::ContextFull { tokens: 9, context: 8 })));
    session.feed(&[1; 5]).unwrap();
}

#[test]
fn empty_prompts_and_unknown_tokens_are_refused() {
    let engine = small(8);
    let mut session = engine.session();
    assert!(matches!(session.prompt(&[]), Err(EngineError::EmptyPrompt)));
    assert!(matches!(session.feed(&[]), Err(EngineError::EmptyPrompt)));
    assert!(matches!(session.generate(&[], GenerateOptions::default()), Err(EngineError::EmptyPrompt)));
    let error = session.prompt(&[1, 384]).unwrap_err();
    assert!(matches!(error, EngineError::TokenOutOfRange { token: 384, n_vocab: 384 }));
    let mut sequence = engine.sequence();
    let part = Part { sequence: &mut sequence, tokens: &[], wanted: Wanted::All };
    assert!(matches!(engine.forward(&mut [part], |_, _, _| ()), Err(EngineError::EmptyPrompt)));
    engine.forward(&mut [], |_, _, _| ()).unwrap();
}

#[test]
fn a_bad_part_keeps_the_good_ones_from_being_fed() {
    let engine = small(8);
    let (mut good, mut bad) = (engine.sequence(), engine.sequence());
    let mut parts = [
        Part { sequence: &mut good, tokens: &[1, 2], wanted: Wanted::Last },
        Part { sequence: &mut bad, tokens: &[9999], wanted: Wanted::Last },
    ];
    assert!(engine.forward(&mut parts, |_, _, _| panic!("nothing is computed")).is_err());
    assert!(good.is_empty() && bad.is_empty());
}

#[test]
fn contexts_and_files_that_make_no_engine_are_refused() {
    for context in [0, usize::MAX] {
        let options = EngineOptions { context: Some(context), ..EngineOptions::default() };
        let error = Engine::open(folder().join(FILE), options).err().unwrap();
        assert!(error.to_string().contains(&context.to_string()), "{error}");
    }
    for path in [folder(), folder().join("absent.gguf"), folder().join("llama-a.json")] {
        let error = Engine::open(&path, EngineOptions::default()).err().unwrap().to_string();
        assert!(error.contains(path.to_str().unwrap()), "{error}");
    }
}

#[test]
fn bad_sampling_is_refused_before_the_prompt_is_fed() {
    let engine = small(8);
    let mut session = engine.session();
    let sampling = SamplingParams { top_p: 2.0, ..SamplingParams::default() };
    let options = GenerateOptions { sampling, ..GenerateOptions::default() };
    assert!(matches!(session.generate(&[1], options), Err(EngineError::BadSampling { field: "top_p", .. })));
    assert!(session.tokens().is_empty());
}

#[test]
fn a_raised_flag_stops_before_anything_is_fed() {
    let engine = small(8);
    let mut session = engine.session();
    let cancel = CancelFlag::new();
    cancel.cancel();
    let options = GenerateOptions { cancel, ..GenerateOptions::default() };
    let mut generation = session.generate(&[1, 2], options).unwrap();
    assert!(generation.next().is_none());
    assert_eq!(generation.finish_reason(), Some(&turbospark_engine::FinishReason::Cancelled));
    assert!(session.tokens().is_empty());
}
