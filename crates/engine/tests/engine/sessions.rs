//! Sessions keep their prefix, and generations end for the reason they say.

use std::sync::{Arc, Mutex};

use turbospark_engine::{
    CancelFlag, EngineOptions, FinishReason, GenerateOptions, PromptProgress, SamplingParams,
};

use crate::fixtures::{description, engine, ids, open};

const FILE: &str = "llama-a-f32.gguf";

fn prompt(p: usize) -> Vec<u32> {
    ids(&description(FILE)["prompts"][p]["ids"])
}

fn greedy(max_tokens: usize) -> GenerateOptions {
    GenerateOptions {
        sampling: SamplingParams::greedy(),
        max_tokens: Some(max_tokens),
        ignore_stop_tokens: true,
        ..GenerateOptions::default()
    }
}

#[test]
fn a_prompt_feeds_only_what_its_predecessor_lacks() {
    let engine = engine(FILE);
    let mut session = engine.session();
    let tokens = prompt(1);
    assert_eq!(session.prompt(&tokens).unwrap(), tokens.len());
    assert_eq!(session.prompt(&tokens).unwrap(), 1, "the last token is fed again for its logits");
    let mut other = tokens[..20].to_vec();
    other.extend([5, 6, 7]);
    assert_eq!(session.prompt(&other).unwrap(), 3);
    assert_eq!(session.tokens(), other);
    let kept = session.logits().to_vec();
    session.reset();
    assert!(session.tokens().is_empty() && session.logits().is_empty());
    assert_eq!(session.prompt(&other).unwrap(), other.len());
    assert_eq!(session.logits(), kept, "a kept prefix gives the same bits as a fresh one");
    assert_eq!(session.prompt(&other[..10]).unwrap(), 1);
    assert_eq!(session.tokens(), &other[..10]);
}

#[test]
fn the_next_turn_keeps_prompt_and_answer() {
    let engine = engine(FILE);
    let mut session = engine.session();
    let mut tokens = prompt(0);
    let generation = session.generate(&tokens, greedy(6)).unwrap();
    tokens.extend(generation.filter_map(|p| p.unwrap().token));
    tokens.extend([10, 11]);
    // The last token of the answer was never fed: nothing asked for what follows it.
    let mut generation = session.generate(&tokens, greedy(1)).unwrap();
    generation.next().unwrap().unwrap();
    assert_eq!(generation.stats().prefill_tokens, 3);
}

#[test]
fn length_is_the_reason_at_max_tokens_and_at_a_full_context() {
    let engine = open(FILE, EngineOptions { context: Some(8), ..EngineOptions::default() });
    let mut session = engine.session();
    for (max_tokens, expected) in [(0, 0), (2, 2), (100, 4)] {
        let mut generation = session.generate(&prompt(0), greedy(max_tokens)).unwrap();
        let tokens = generation.by_ref().filter_map(|p| p.unwrap().token).count();
        // Five prompt tokens leave room for three, and the fourth needs none.
        assert_eq!(tokens, expected);
        assert_eq!(generation.finish_reason(), Some(&FinishReason::Length));
        let stats = generation.stats();
        assert_eq!(stats.decode_tokens, expected);
        assert_eq!(stats.time_to_first_token.is_zero(), expected == 0);
        assert!(stats.time_to_first_token >= stats.prefill || expected == 0);
    }
}

#[test]
fn progress_grows_through_layers_and_chunks_of_what_the_cache_lacks() {
    let engine = open(FILE, EngineOptions { prefill_chunk: Some(2), ..EngineOptions::default() });
    let mut session = engine.session();
    session.prompt(&prompt(0)[..1]).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = seen.clone();
    let progress = PromptProgress::new(move |step| told.lock().unwrap().push((step.fed, step.of)));
    drop(session.generate(&prompt(0), GenerateOptions { progress, ..greedy(3) }).unwrap());
    let seen = seen.lock().unwrap();
    assert!(seen.is_sorted() && seen.iter().all(|&(_, of)| of == 4), "{seen:?}");
    assert!(seen.contains(&(1, 4)) && seen.contains(&(2, 4)) && seen.ends_with(&[(4, 4)]), "{seen:?}");
}

#[test]
fn stop_tokens_end_the_answer_unless_ignored() {
    let engine = engine(FILE);
    let mut session = engine.session();
    let eos = engine.tokenizer().unwrap().eos().unwrap();
    let sampling = SamplingParams { logit_bias: vec![(eos, 1e6)], ..SamplingParams::greedy() };
    let options =
        |ignore_stop_tokens| GenerateOptions { sampling: sampling.clone(), ignore_stop_tokens, ..greedy(3) };
    let mut generation = session.generate(&prompt(0), options(false)).unwrap();
    assert!(generation.next().is_none(), "a stop token is no piece");
    assert_eq!(generation.finish_reason(), Some(&FinishReason::StopToken(eos)));
    assert_eq!(generation.stats().decode_tokens, 1);
    let generation = session.generate(&prompt(0), options(true)).unwrap();
    assert_eq!(generation.filter_map(|p| p.unwrap().token).collect::<Vec<_>>(), [eos; 3]);
}

#[test]
fn stop_strings_end_the_answer_and_are_not_part_of_it() {
    let engine = engine(FILE);
    let mut session = engine.session();
    let texts: Vec<String> =
        session.generate(&prompt(0), greedy(24)).unwrap().map(|p| p.unwrap().text).collect();
    let whole = texts.concat();
    let middle: Vec<(usize, char)> = whole.char_indices().skip(whole.chars().count() / 2).take(3).collect();
    let (at, _) = middle[0];
    let stop: String = middle.iter().map(|(_, c)| c).collect();
    let first = whole.find(&stop).unwrap().min(at);
    let options = GenerateOptions { stop: vec!["never there".to_owned(), stop.clone()], ..greedy(24) };
    let mut generation = session.generate(&prompt(0), options).unwrap();
    let text: String = generation.by_ref().map(|p| p.unwrap().text).collect();
    assert_eq!(text, whole[..first]);
    assert_eq!(generation.finish_reason(), Some(&FinishReason::StopString(stop)));
}

#[test]
fn a_stop_string_that_never_comes_leaves_the_text_whole() {
    let engine = engine(FILE);
    let mut session = engine.session();
    let mut text = |stop| {
        let options = GenerateOptions { stop, ..greedy(24) };
        session.generate(&prompt(0), options).unwrap().map(|p| p.unwrap().text).collect::<String>()
    };
    let whole = text(vec![]);
    let last = whole.chars().last().unwrap();
    assert_eq!(text(vec![format!("{last}never there")]), whole, "what was held back comes at the end");
}

#[test]
fn cancel_stops_between_tokens_and_the_session_goes_on() {
    let engine = engine(FILE);
    let mut session = engine.session();
    let cancel = CancelFlag::new();
    let options = || GenerateOptions { cancel: cancel.clone(), ..greedy(24) };
    let mut generation = session.generate(&prompt(0), options()).unwrap();
    let mut tokens = Vec::new();
    for piece in generation.by_ref() {
        tokens.extend(piece.unwrap().token);
        if tokens.len() == 3 {
            cancel.cancel();
        }
    }
    assert_eq!(generation.finish_reason(), Some(&FinishReason::Cancelled));
    assert_eq!(tokens.len(), 3);
    cancel.reset();
    let again: Vec<u32> =
        session.generate(&prompt(0), options()).unwrap().filter_map(|p| p.unwrap().token).collect();
    assert_eq!(again[..3], tokens);
    assert_eq!(again.len(), 24);
}

#[test]
fn a_seed_repeats_a_sampled_answer() {
    let engine = engine(FILE);
    let answer = |seed| {
        let sampling = SamplingParams { seed, temperature: 2.0, ..SamplingParams::default() };
        let options = GenerateOptions { sampling, ..greedy(24) };
        let mut session = engine.session();
        let generation = session.generate(&prompt(0), options).unwrap();
        generation.filter_map(|p| p.unwrap().token).collect::<Vec<_>>()
    };
    assert_eq!(answer(3), answer(3));
    assert_ne!(answer(3), answer(4));
}
