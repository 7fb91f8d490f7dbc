//! A session's next prompt keeps what its cache has in common with it, whatever the layers keep: the logits are those of a fresh
//! session to the last bit, and no more tokens are fed than must be.

use turbospark_engine::{Engine, GenerateOptions, SamplingParams, Session};
use turbospark_model::Mixer;

use crate::fixtures::{bits, engine, longest, small};

/// Tokens that each first prompt is answered with.
const ANSWER: usize = 6;

/// A session that answered `first`, with the answer's tokens.
fn answered(engine: &Engine, first: &[u32]) -> (Session, Vec<u32>) {
    let mut session = engine.session();
    let options = GenerateOptions {
        sampling: SamplingParams::greedy(),
        max_tokens: Some(ANSWER),
        ignore_stop_tokens: true,
        ..GenerateOptions::default()
    };
    let generation = session.generate(first, options).unwrap();
    let answer: Vec<u32> = generation.filter_map(|piece| piece.unwrap().token).collect();
    assert_eq!(answer.len(), ANSWER);
    (session, answer)
}

/// Some token that is not `token`.
fn other(token: u32) -> u32 {
    token ^ 1
}

fn is_recurrent(engine: &Engine) -> bool {
    engine.spec().layers.iter().any(|l| matches!(l.mixer, Mixer::Delta(_)))
}

fn is_windowed(engine: &Engine) -> bool {
    engine.spec().layers.iter().any(|l| matches!(&l.mixer, Mixer::Attention(a) if a.window.is_some()))
}

/// Prompts `session` with `second`, expects `fed` tokens to be fed and the logits of a fresh session, after a further token as well.
fn assert_reused(session: &mut Session, second: &[u32], fed: usize, what: &str) {
    assert_eq!(session.prompt(second).unwrap(), fed, "{what}: tokens fed");
    assert_eq!(session.tokens(), second, "{what}");
    let mut fresh = session.engine().session();
    fresh.prompt(second).unwrap();
    assert_eq!(bits(session.logits()), bits(fresh.logits()), "{what}: logits of the prompt");
    for session in [&mut *session, &mut fresh] {
        session.feed(&[7, 8, 9]).unwrap();
    }
    assert_eq!(bits(session.logits()), bits(fresh.logits()), "{what}: logits of what follows");
}

#[test]
fn the_next_turn_feeds_only_what_is_new() {
    for file in small() {
        let engine = engine(file);
        let first = longest(file);
        let (mut session, answer) = answered(&engine, &first);
        let second = [first, answer, vec![10, 11]].concat();
        // The last token of the answer was never fed.
        assert_reused(&mut session, &second, 3, file);
    }
}

#[test]
fn another_answer_keeps_the_prompt() {
    for file in small() {
        let engine = engine(file);
        let first = longest(file);
        let (mut session, answer) = answered(&engine, &first);
        let second = [first.clone(), answer[..3].to_vec(), vec![other(answer[3]), 12]].concat();
        // Recurrent layers go back to before the prompt's last token.
        let fed = if is_recurrent(&engine) { 1 + 3 + 2 } else { 2 };
        assert_reused(&mut session, &second, fed, file);
        // The way back is still open afterwards: to the end of the second prompt.
        session.prompt(&second).unwrap();
        session.feed(&[1, 2]).unwrap();
        let third = [second, vec![3]].concat();
        let fed = if is_recurrent(&engine) { 2 } else { 1 };
        assert_reused(&mut session, &third, fed, file);
    }
}

#[test]
fn a_prompt_that_differs_early_is_fed_from_there_or_anew() {
    for file in small() {
        let engine = engine(file);
        let first = longest(file);
        let (mut session, _) = answered(&engine, &first);
        let mut second = first.clone();
        let at = first.len() - 10;
        second[at] = other(second[at]);
        let fed = if is_recurrent(&engine) { first.len() } else { 10 };
        assert_reused(&mut session, &second, fed, file);
    }
}

#[test]
fn a_prompt_that_differs_before_what_windows_keep_is_fed_anew() {
    let (mut windowed, mut whole) = (0, 0);
    for file in small() {
        let engine = engine(file);
        let first = longest(file).repeat(4);
        let (mut session, _) = answered(&engine, &first);
        // Pages of positions that no row sees any more left while the answer was fed.
        let mut second = first[..200].to_vec();
        second[50] = other(second[50]);
        let anew = is_windowed(&engine) || is_recurrent(&engine);
        windowed += usize::from(is_windowed(&engine));
        whole += usize::from(!anew);
        assert_reused(&mut session, &second, if anew { 200 } else { 150 }, file);
    }
    assert!(windowed >= 5 && whole >= 5);
}

#[test]
fn the_same_prompt_again_feeds_its_last_token() {
    for file in small() {
        let engine = engine(file);
        let first = longest(file);
        let (mut session, _) = answered(&engine, &first);
        assert_reused(&mut session, &first, 1, file);
        session.prompt(&first).unwrap();
        assert_eq!(session.prompt(&first).unwrap(), 1, "{file}");
        session.reset();
        assert_reused(&mut session, &first, first.len(), file);
    }
}
