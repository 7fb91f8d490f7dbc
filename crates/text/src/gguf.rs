//! The tokenizer of a GGUF file, from its `tokenizer.ggml.*` metadata.
//!
//! Invariant: whatever the metadata say, the result is a working tokenizer or an error that names the key. Where a key is
//! absent, the format's default for the kind of tokenizer holds: BOS is added by `llama` vocabularies and by the
//! pre-tokenizers of the Llama 3 and Tekken families, EOS by none.

use hashbrown::HashMap;
use turbospark_format::Metadata;

use crate::{
    TextError, Tokenizer,
    added::{Added, Strip},
    merge::{Merges, rank_of_score},
    pretokenize::{PreTokenizer, Preset, preset},
    stop_tokens::turn_enders,
    tokenizer::SpacePrefix,
    vocab::{NONE, Spelling, TokenKind, Vocab, spell},
};

const MODEL: &str = "tokenizer.ggml.model";
const PRE: &str = "tokenizer.ggml.pre";
const TOKENS: &str = "tokenizer.ggml.tokens";
const TYPES: &str = "tokenizer.ggml.token_type";
const SCORES: &str = "tokenizer.ggml.scores";
const MERGES: &str = "tokenizer.ggml.merges";
const BOS: &str = "tokenizer.ggml.bos_token_id";
const EOS: &str = "tokenizer.ggml.eos_token_id";
const EOT: &str = "tokenizer.ggml.eot_token_id";
const EOM: &str = "tokenizer.ggml.eom_token_id";
const UNKNOWN: &str = "tokenizer.ggml.unknown_token_id";
const ADD_BOS: &str = "tokenizer.ggml.add_bos_token";
const ADD_EOS: &str = "tokenizer.ggml.add_eos_token";
const ADD_SPACE_PREFIX: &str = "tokenizer.ggml.add_space_prefix";

impl Tokenizer {
    /// Builds the tokenizer that a GGUF file carries.
    ///
    /// # Errors
    /// [`TextError`] naming the key: the vocabulary, merges or scores are absent or don't fit each other, the kind of
    /// tokenizer or pre-tokenizer is not known, a special token lies outside of the vocabulary.
    pub fn from_metadata(m: &Metadata) -> Result<Tokenizer, TextError> {
        let hint = "it carries no tokenizer; use a file that was converted with its vocabulary";
        let model = m.str(MODEL)?.ok_or(TextError::MissingKey { key: MODEL, hint })?;
        let tokens = m.strings(TOKENS)?.ok_or(TextError::MissingKey { key: TOKENS, hint })?;
        let kinds = kinds(m, tokens.len())?;
        match model {
            "gpt2" => byte_level(m, tokens, kinds),
            "llama" => scored(m, tokens, kinds),
            "gemma4" => metaspace_merges(m, tokens, kinds),
            other => Err(TextError::UnknownModel { model: other.to_owned() }),
        }
    }
}

fn byte_level(
    m: &Metadata,
    tokens: &[String],
    kinds: Option<Vec<TokenKind>>,
) -> Result<Tokenizer, TextError> {
    let pre = m.str(PRE)?.unwrap_or("default");
    let preset = preset(pre).ok_or_else(|| TextError::UnknownPre { pre: pre.to_owned() })?;
    let vocab = Vocab::new(tokens, kinds, Spelling::ByteLevel)?;
    let merges = match m.strings(MERGES)? {
        Some(merges) => pair_merges(&vocab, merges)?,
        // Kimi's vocabulary is ordered by rank, so that its merges follow from the ids.
        None if pre == "kimi-k2" => Merges::Pieces((0..vocab.len() as u32).collect()),
        None => return Err(no_merges()),
    };
    let Preset { patterns, whole_words, nfc, add_bos } = preset;
    let prefix = SpacePrefix { add: m.bool(ADD_SPACE_PREFIX)?.unwrap_or(false), ..SpacePrefix::default() };
    let parts =
        Parts { words: PreTokenizer::new(patterns)?, vocab, merges, nfc, whole_words, add_bos, prefix };
    parts.finish(m, |_| Strip::default())
}

fn scored(m: &Metadata, tokens: &[String], kinds: Option<Vec<TokenKind>>) -> Result<Tokenizer, TextError> {
    let vocab = Vocab::new(tokens, kinds, Spelling::Metaspace)?;
    let hint = "a SentencePiece vocabulary needs its scores; convert the file again";
    let scores = m.f32s(SCORES)?.ok_or(TextError::MissingKey { key: SCORES, hint })?;
    check_len(SCORES, scores.len(), tokens.len())?;
    // User-defined tokens are found before merging and never made by it.
    let rank = |(id, &score): (usize, &f32)| match vocab.kind(id as u32) {
        Some(TokenKind::UserDefined) => NONE,
        _ => rank_of_score(score),
    };
    let merges = Merges::Pieces(scores.iter().enumerate().map(rank).collect());
    let prefix = SpacePrefix { add: m.bool(ADD_SPACE_PREFIX)?.unwrap_or(true), ..SpacePrefix::default() };
    let words = PreTokenizer::new(&[] as &[&str])?;
    // Phi-3's turn tokens take the white space after them, which the format has no key for.
    let phi3 = m.str("general.architecture")? == Some("phi3");
    let eats_space: Vec<u32> = (0..tokens.len() as u32)
        .filter(|&id| phi3 && tokens[id as usize].starts_with("<|") && tokens[id as usize] != "<|endoftext|>")
        .collect();
    let parts = Parts { words, vocab, merges, nfc: false, whole_words: false, add_bos: true, prefix };
    parts.finish(m, |id| Strip { left: false, right: eats_space.binary_search(&id).is_ok() })
}

/// Gemma 4: merges over text pieces; lines and runs of newlines are words, and spaces don't part words.
fn metaspace_merges(
    m: &Metadata,
    tokens: &[String],
    kinds: Option<Vec<TokenKind>>,
) -> Result<Tokenizer, TextError> {
    let vocab = Vocab::new(tokens, kinds, Spelling::Metaspace)?;
    let merges = pair_merges(&vocab, m.strings(MERGES)?.ok_or_else(no_merges)?)?;
    let prefix = SpacePrefix { add: m.bool(ADD_SPACE_PREFIX)?.unwrap_or(false), ..SpacePrefix::default() };
    let words = PreTokenizer::new(&[r"[^\n]+|\n+"])?;
    let parts = Parts { words, vocab, merges, nfc: false, whole_words: false, add_bos: true, prefix };
    let mut tokenizer = parts.finish(m, |_| Strip::default())?;
    // Released files say false by mistake; the model was trained with BOS.
    tokenizer.add_bos = true;
    Ok(tokenizer)
}

struct Parts {
    vocab: Vocab,
    merges: Merges,
    words: PreTokenizer,
    nfc: bool,
    whole_words: bool,
    add_bos: bool,
    prefix: SpacePrefix,
}

impl Parts {
    fn finish(self, m: &Metadata, strip: impl Fn(u32) -> Strip) -> Result<Tokenizer, TextError> {
        let size = self.vocab.len();
        let bos = token_id(m, BOS, size)?;
        let eos = token_id(m, EOS, size)?;
        let add_bos = m.bool(ADD_BOS)?;
        let add_eos = m.bool(ADD_EOS)?.unwrap_or(false);
        let hint = "the file asks for this token to be added but doesn't name it; set the key";
        if add_bos == Some(true) && bos.is_none() {
            return Err(TextError::MissingKey { key: BOS, hint });
        }
        if add_eos && eos.is_none() {
            return Err(TextError::MissingKey { key: EOS, hint });
        }
        let named = [eos, token_id(m, EOT, size)?, token_id(m, EOM, size)?];
        Ok(Tokenizer {
            stop_tokens: turn_enders(&self.vocab, named.into_iter().flatten()),
            added: Added::new(&self.vocab, |id| self.vocab.bytes_of(id), strip)?,
            unknown: token_id(m, UNKNOWN, size)?,
            bos,
            eos,
            add_bos: add_bos.unwrap_or(self.add_bos),
            add_eos,
            vocab: self.vocab,
            merges: self.merges,
            words: self.words,
            nfc: self.nfc,
            strip_space: self.prefix.add,
            space_prefix: self.prefix,
            whole_words: self.whole_words,
        })
    }
}

fn no_merges() -> TextError {
    TextError::MissingKey { key: MERGES, hint: "byte-pair encoding needs its merges; convert the file again" }
}

fn check_len(key: &'static str, found: usize, expected: usize) -> Result<(), TextError> {
    if found == expected { Ok(()) } else { Err(TextError::WrongLength { key, found, expected }) }
}

fn kinds(m: &Metadata, tokens: usize) -> Result<Option<Vec<TokenKind>>, TextError> {
    let Some(types) = m.i64s(TYPES)? else { return Ok(None) };
    check_len(TYPES, types.len(), tokens)?;
    Ok(Some(types.into_iter().map(TokenKind::from_number).collect()))
}

fn token_id(m: &Metadata, key: &'static str, size: usize) -> Result<Option<u32>, TextError> {
    match m.u64(key)? {
        // All ones is how some converters write "none".
        None | Some(0xffff_ffff | u64::MAX) => Ok(None),
        Some(id) if id < size as u64 => Ok(Some(id as u32)),
        Some(id) => Err(TextError::BadTokenId { key, id, size }),
    }
}

/// Reads "left right" lines into pairs of ids.
pub(crate) fn pair_merges(vocab: &Vocab, merges: &[String]) -> Result<Merges, TextError> {
    let split = merges.iter().enumerate().map(|(index, merge)| {
        // A piece may itself be a space, so the separator is looked for after the first byte.
        match merge.bytes().skip(1).position(|b| b == b' ') {
            Some(at) if at + 2 < merge.len() => Ok((&merge[..at + 1], &merge[at + 2..])),
            _ => Err(bad_merge(index, merge, "is not two pieces with a space between them")),
        }
    });
    merge_table(vocab, merges.len(), split)
}

fn bad_merge(index: usize, merge: &str, problem: &'static str) -> TextError {
    TextError::BadMerge { index, merge: merge.chars().take(80).collect(), problem }
}

/// Resolves merges to ids; of two merges of the same pair the first counts.
pub(crate) fn merge_table<'a>(
    vocab: &Vocab,
    len: usize,
    merges: impl Iterator<Item = Result<(&'a str, &'a str), TextError>>,
) -> Result<Merges, TextError> {
    let mut pairs = HashMap::with_capacity(len);
    let mut joined = Vec::new();
    for (rank, merge) in merges.enumerate() {
        let (left, right) = merge?;
        joined.clear();
        spell(vocab.spelling(), left, &mut joined);
        let middle = joined.len();
        spell(vocab.spelling(), right, &mut joined);
        let find = |bytes: &[u8]| {
            vocab.find(bytes).or_else(|| vocab.find_special(std::str::from_utf8(bytes).ok()?)).ok_or_else(
                || bad_merge(rank, &format!("{left} {right}"), "names a piece that the vocabulary lacks"),
            )
        };
        let pair = (find(&joined[..middle])?, find(&joined[middle..])?);
        let id = find(&joined)?;
        pairs.entry(pair).or_insert((rank as u32, id));
    }
    Ok(Merges::Pairs(pairs))
}
