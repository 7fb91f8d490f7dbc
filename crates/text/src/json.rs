//! The tokenizer of a `tokenizer.json`, the format of the Hugging Face `tokenizers` library.
//!
//! Byte-pair models are read, byte-level or over `▁` pieces with byte fallback: those are what language models use.
//! Invariant: a part of the pipeline that is not implemented is an error that names it, never left out silently.

use std::path::Path;

use serde_json::{Map, Value};

use crate::{
    TextError, Tokenizer,
    added::{Added, Strip},
    gguf::merge_table,
    pretokenize::PreTokenizer,
    stop_tokens::turn_enders,
    tokenizer::SpacePrefix,
    vocab::{Spelling, TokenKind, Vocab},
};

/// Most ids that gaps in the numbering may add.
const MAX_IDS: u64 = 1 << 22;

impl Tokenizer {
    /// Reads a `tokenizer.json`. BOS is what its post-processor puts in front.
    ///
    /// # Errors
    /// [`TextError::Io`] if the file can't be read; [`TextError::TokenizerJson`] if it is malformed or has a part that is
    /// not supported, which is named.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Tokenizer, TextError> {
        let path = path.as_ref();
        let text = std::fs::read(path).map_err(|source| TextError::Io { path: path.to_owned(), source })?;
        let fail = |problem: String| TextError::TokenizerJson { path: path.to_owned(), problem };
        let json: Value = serde_json::from_slice(&text).map_err(|e| fail(format!("not valid JSON: {e}")))?;
        drop(text);
        read(&json).map_err(|e| match e {
            Problem::Here(problem) => fail(problem),
            Problem::Other(error) => error,
        })
    }
}

enum Problem {
    Here(String),
    Other(TextError),
}

impl From<TextError> for Problem {
    fn from(error: TextError) -> Self {
        Problem::Other(error)
    }
}

fn here<T>(problem: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::Here(problem.into()))
}

/// What normalizers and pre-tokenizers ask for.
#[derive(Default)]
struct Pipeline {
    nfc: bool,
    byte_level: bool,
    prefix: SpacePrefix,
    patterns: Vec<String>,
}

fn read(json: &Value) -> Result<Tokenizer, Problem> {
    let model = &json["model"];
    // Old files leave the type out.
    if !matches!(model["type"].as_str(), Some("BPE") | None) {
        return here(format!("model type {} is not supported, only BPE is", model["type"]));
    }
    for key in ["continuing_subword_prefix", "end_of_word_suffix"] {
        if model[key].as_str().is_some_and(|s| !s.is_empty()) {
            return here(format!("model.{key} is not supported"));
        }
    }
    let mut pipeline = Pipeline::default();
    pipeline.normalizer(&json["normalizer"])?;
    pipeline.pre_tokenizer(&json["pre_tokenizer"])?;
    let spelling = if pipeline.byte_level { Spelling::ByteLevel } else { Spelling::Metaspace };

    let Some(pieces) = model["vocab"].as_object() else { return here("model.vocab is not an object") };
    let Some(merges) = model["merges"].as_array() else { return here("model.merges is not a list") };
    let byte_fallback = model["byte_fallback"].as_bool().unwrap_or(false);
    let (tokens, kinds, strips) = tokens(pieces, &json["added_tokens"], byte_fallback)?;
    // Added tokens are looked for as they are written, but decode as pieces do.
    let spell = |(token, kind): (&'_ String, &TokenKind)| match (spelling, kind) {
        (Spelling::Metaspace, TokenKind::UserDefined) => token.replace('▁', " "),
        _ => token.clone(),
    };
    let spelt: Vec<String> = tokens.iter().zip(&kinds).map(spell).collect();
    let vocab = Vocab::new(&spelt, Some(kinds), spelling)?;

    let malformed = |index: usize, merge: &Value| TextError::BadMerge {
        index,
        merge: merge.to_string().chars().take(80).collect(),
        problem: "is not two pieces",
    };
    let pairs = merges.iter().enumerate().map(|(index, merge)| {
        let pair = match merge {
            Value::String(s) => s.split_once(' '),
            Value::Array(a) if a.len() == 2 => a[0].as_str().zip(a[1].as_str()),
            _ => None,
        };
        pair.ok_or_else(|| malformed(index, merge))
    });
    let merges = merge_table(&vocab, merges.len(), pairs)?;
    let id_of = |token: Option<&str>| token.and_then(|t| vocab.find_spelt(t));
    let unknown = id_of(model["unk_token"].as_str());
    let (first, last) = affixes(&json["post_processor"]);
    let (bos, eos) = (id_of(first), id_of(last));
    let words = PreTokenizer::new(&pipeline.patterns)?;
    Ok(Tokenizer {
        stop_tokens: turn_enders(&vocab, eos.into_iter()),
        added: Added::new(
            &vocab,
            |id| tokens.get(id as usize).map(String::as_bytes),
            |id| strips.get(&id).copied().unwrap_or_default(),
        )?,
        vocab,
        merges,
        words,
        nfc: pipeline.nfc,
        strip_space: strips_space(&json["decoder"]),
        space_prefix: pipeline.prefix,
        whole_words: model["ignore_merges"].as_bool().unwrap_or(false),
        unknown,
        bos,
        eos,
        add_bos: bos.is_some(),
        add_eos: eos.is_some(),
    })
}

type Tokens = (Vec<String>, Vec<TokenKind>, hashbrown::HashMap<u32, Strip>);

fn tokens(pieces: &Map<String, Value>, added: &Value, byte_fallback: bool) -> Result<Tokens, Problem> {
    let added = added.as_array().map(Vec::as_slice).unwrap_or_default();
    let ids = pieces.values().chain(added.iter().map(|t| &t["id"]));
    let mut highest = 0;
    for id in ids {
        match id.as_u64() {
            Some(id) => highest = highest.max(id),
            None => return here(format!("token id {id} is not a whole number")),
        }
    }
    if highest >= MAX_IDS {
        return here(format!("token id {highest} is beyond the limit of {MAX_IDS}"));
    }
    let size = highest as usize + 1;
    let mut tokens = vec![String::new(); size];
    let mut kinds = vec![TokenKind::Unused; size];
    let mut strips = hashbrown::HashMap::new();
    for (piece, id) in pieces {
        let id = id.as_u64().unwrap_or_default() as usize;
        let is_byte = byte_fallback && piece.len() == 6 && piece.starts_with("<0x") && piece.ends_with('>');
        kinds[id] = if is_byte { TokenKind::Byte } else { TokenKind::Normal };
        tokens[id].clone_from(piece);
    }
    for token in added {
        let Some(text) = token["content"].as_str() else { return here("an added token has no content") };
        if token["single_word"] == true {
            return here(format!("added token {text:?} matches single words only, which is not supported"));
        }
        let id = token["id"].as_u64().unwrap_or_default() as usize;
        kinds[id] = if token["special"] == true { TokenKind::Control } else { TokenKind::UserDefined };
        text.clone_into(&mut tokens[id]);
        let strip = Strip { left: token["lstrip"] == true, right: token["rstrip"] == true };
        if strip.left || strip.right {
            strips.insert(id as u32, strip);
        }
    }
    Ok((tokens, kinds, strips))
}

impl Pipeline {
    fn normalizer(&mut self, n: &Value) -> Result<(), Problem> {
        match n["type"].as_str() {
            None if n.is_null() => Ok(()),
            Some("Sequence") => each(&n["normalizers"], |n| self.normalizer(n)),
            Some("NFC") => {
                self.nfc = true;
                Ok(())
            }
            Some("Prepend") if n["prepend"] == "▁" => {
                self.prefix.add = true;
                Ok(())
            }
            // Pieces are kept with spaces instead, so nothing is left to do.
            Some("Replace") if n["pattern"]["String"] == " " && n["content"] == "▁" => Ok(()),
            _ => here(format!("normalizer {n} is not supported")),
        }
    }

    fn pre_tokenizer(&mut self, p: &Value) -> Result<(), Problem> {
        match p["type"].as_str() {
            None if p.is_null() => Ok(()),
            Some("Sequence") => each(&p["pretokenizers"], |p| self.pre_tokenizer(p)),
            Some("ByteLevel") => {
                self.byte_level = true;
                if p["add_prefix_space"] == true {
                    self.prefix = SpacePrefix { add: true, first_only: false, unless_present: true };
                }
                if p["use_regex"] != false {
                    self.patterns.push(crate::pretokenize::GPT2.to_owned());
                }
                Ok(())
            }
            Some("Digits") => {
                let each = p["individual_digits"] == true;
                self.patterns.push(if each { r"\p{N}" } else { r"\p{N}+" }.to_owned());
                Ok(())
            }
            // Every space is a ▁ by then: the rule finds nothing.
            Some("Split") if p["pattern"]["String"] == " " && !self.byte_level => Ok(()),
            Some("Split") => {
                match (p["pattern"]["Regex"].as_str(), p["behavior"].as_str(), p["invert"] == true) {
                    (Some(pattern), Some("Isolated"), false) | (Some(pattern), Some("Removed"), true) => {
                        self.patterns.push(pattern.to_owned());
                        Ok(())
                    }
                    _ => here(format!("pre-tokenizer {p} is not supported")),
                }
            }
            Some("Metaspace") if p["replacement"] == "▁" => {
                let scheme = p["prepend_scheme"].as_str().unwrap_or("always");
                let add = scheme != "never" && p["add_prefix_space"] != false;
                self.prefix = SpacePrefix { add, first_only: scheme == "first", unless_present: true };
                if p["split"] != false {
                    self.patterns.push(" [^ ]*|[^ ]+".to_owned());
                }
                Ok(())
            }
            _ => here(format!("pre-tokenizer {p} is not supported")),
        }
    }
}

fn each(list: &Value, read: impl FnMut(&Value) -> Result<(), Problem>) -> Result<(), Problem> {
    list.as_array().map(Vec::as_slice).unwrap_or_default().iter().try_for_each(read)
}

/// Whether decoding leaves out a space at the start.
fn strips_space(decoder: &Value) -> bool {
    match decoder["type"].as_str() {
        Some("Sequence") => decoder["decoders"].as_array().is_some_and(|d| d.iter().any(strips_space)),
        Some("Strip") => decoder["content"] == " " && decoder["start"].as_u64().is_some_and(|n| n > 0),
        Some("Metaspace") => decoder["prepend_scheme"] != "never" && decoder["add_prefix_space"] != false,
        _ => false,
    }
}

/// The tokens that the post-processor puts before and after a text.
fn affixes(post: &Value) -> (Option<&str>, Option<&str>) {
    match post["type"].as_str() {
        Some("Sequence") => {
            let parts = post["processors"].as_array().map(Vec::as_slice).unwrap_or_default();
            parts.iter().map(affixes).fold((None, None), |(a, b), (c, d)| (a.or(c), b.or(d)))
        }
        Some("TemplateProcessing") => {
            let single = post["single"].as_array().map(Vec::as_slice).unwrap_or_default();
            let last = if single.len() > 1 { single.last() } else { None };
            (single.first().and_then(special_token), last.and_then(special_token))
        }
        _ => (None, None),
    }
}

fn special_token(part: &Value) -> Option<&str> {
    part["SpecialToken"]["id"].as_str()
}
