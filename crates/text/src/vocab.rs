//! The vocabulary: what each id decodes to, what kind of token it is, and the ids of given bytes.
//!
//! Invariant: pieces are kept DECODED (byte-level characters mapped back to bytes, `▁` to a space), so encoding looks the
//! text's own bytes up and decoding copies. All pieces live in one buffer and the index holds only ids: a vocabulary of
//! 262,144 pieces loads in tens of milliseconds.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::{TextError, alphabet};

/// Marks an absent id in tables of ids.
pub(crate) const NONE: u32 = u32::MAX;

/// What kind of token an id is; the numbers are those of `tokenizer.ggml.token_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// An ordinary piece (also the format's "undefined").
    Normal,
    /// Stands for what the vocabulary can't spell.
    Unknown,
    /// Steers the model (`<|im_start|>`): recognised in text only on request, hidden in output.
    Control,
    /// Added by the model's makers (`<think>`): always one token, visible in output.
    UserDefined,
    /// Never trained, never produced by encoding.
    Unused,
    /// A single byte, for what no piece spells.
    Byte,
}

impl TokenKind {
    pub(crate) fn from_number(n: i64) -> TokenKind {
        match n {
            2 => TokenKind::Unknown,
            3 => TokenKind::Control,
            4 => TokenKind::UserDefined,
            5 => TokenKind::Unused,
            6 => TokenKind::Byte,
            _ => TokenKind::Normal,
        }
    }
}

/// How pieces are spelt in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// One character of the byte alphabet for each byte.
    ByteLevel,
    /// Text with `▁` for a space, `<0x0A>` for single bytes.
    Metaspace,
}

pub(crate) struct Vocab {
    bytes: Vec<u8>,
    /// End of each piece in `bytes`.
    ends: Vec<u32>,
    kinds: Vec<TokenKind>,
    /// Ids by decoded bytes: pieces that encoding may produce.
    pieces: HashTable<u32>,
    /// Ids by text: control, user-defined and unknown tokens.
    specials: HashTable<u32>,
    byte_ids: [u32; 256],
    hasher: DefaultHashBuilder,
    spelling: Spelling,
}

impl Vocab {
    /// `kinds` has one entry a token, or is `None` where the file doesn't say.
    pub(crate) fn new(
        tokens: &[impl AsRef<str>],
        kinds: Option<Vec<TokenKind>>,
        spelling: Spelling,
    ) -> Result<Vocab, TextError> {
        let total: usize = tokens.iter().map(|t| t.as_ref().len()).sum();
        if tokens.is_empty() || tokens.len() >= NONE as usize || total >= NONE as usize {
            return Err(TextError::VocabSize { tokens: tokens.len(), bytes: total });
        }
        let mut vocab = Vocab {
            bytes: Vec::with_capacity(total),
            ends: Vec::with_capacity(tokens.len()),
            kinds: Vec::new(),
            pieces: HashTable::with_capacity(tokens.len()),
            specials: HashTable::new(),
            byte_ids: [NONE; 256],
            hasher: DefaultHashBuilder::default(),
            spelling,
        };
        let typed = kinds.is_some();
        vocab.kinds = kinds.unwrap_or_else(|| vec![TokenKind::Normal; tokens.len()]);
        for (id, token) in tokens.iter().enumerate() {
            vocab.append(id, token.as_ref(), typed);
        }
        vocab.index();
        Ok(vocab)
    }

    fn append(&mut self, id: usize, token: &str, typed: bool) {
        let as_byte = parse_byte_token(token).filter(|_| self.spelling == Spelling::Metaspace);
        if !typed && as_byte.is_some() {
            self.kinds[id] = TokenKind::Byte;
        }
        match (self.kinds[id], as_byte) {
            (TokenKind::Byte, Some(byte)) => {
                self.bytes.push(byte);
                self.byte_ids[byte as usize] = id as u32;
            }
            (TokenKind::Normal | TokenKind::Unused, _) => spell(self.spelling, token, &mut self.bytes),
            _ => self.bytes.extend_from_slice(token.as_bytes()),
        }
        self.ends.push(self.bytes.len() as u32);
    }

    /// Ordinary pieces go first: where an added token has the same bytes, merges still mean the piece.
    fn index(&mut self) {
        for kind in [TokenKind::Normal, TokenKind::UserDefined] {
            for id in 0..self.kinds.len() as u32 {
                if self.kinds[id as usize] == kind {
                    self.insert(id, false);
                }
            }
        }
        for id in 0..self.kinds.len() as u32 {
            if matches!(
                self.kinds[id as usize],
                TokenKind::Control | TokenKind::UserDefined | TokenKind::Unknown
            ) {
                self.insert(id, true);
            }
        }
        if self.spelling == Spelling::ByteLevel {
            for byte in 0..=255u8 {
                self.byte_ids[byte as usize] = self.find(&[byte]).unwrap_or(NONE);
            }
        }
    }

    fn insert(&mut self, id: u32, special: bool) {
        let Vocab { bytes, ends, hasher, .. } = &*self;
        let text = slice(bytes, ends, id);
        if text.is_empty() {
            return;
        }
        let hash = hasher.hash_one(text);
        let table = if special { &mut self.specials } else { &mut self.pieces };
        let (bytes, ends, hasher) = (&self.bytes, &self.ends, &self.hasher);
        let text = slice(bytes, ends, id);
        if table.find(hash, |&other| slice(bytes, ends, other) == text).is_none() {
            table.insert_unique(hash, id, |&other| hasher.hash_one(slice(bytes, ends, other)));
        }
    }

    /// The piece with exactly these decoded bytes.
    pub(crate) fn find(&self, text: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(text);
        self.pieces.find(hash, |&id| slice(&self.bytes, &self.ends, id) == text).copied()
    }

    /// The control, user-defined or unknown token with exactly this text.
    pub(crate) fn find_special(&self, text: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(text.as_bytes());
        self.specials.find(hash, |&id| slice(&self.bytes, &self.ends, id) == text.as_bytes()).copied()
    }

    /// The token that the file spells `piece`.
    pub(crate) fn find_spelt(&self, piece: &str) -> Option<u32> {
        if let Some(id) = self.find_special(piece) {
            return Some(id);
        }
        if self.spelling == Spelling::Metaspace
            && let Some(byte) = parse_byte_token(piece)
            && let Some(id) = self.byte_id(byte)
        {
            return Some(id);
        }
        let mut bytes = Vec::with_capacity(piece.len());
        spell(self.spelling, piece, &mut bytes);
        self.find(&bytes)
    }

    /// The token for a single byte.
    pub(crate) fn byte_id(&self, byte: u8) -> Option<u32> {
        Some(self.byte_ids[byte as usize]).filter(|&id| id != NONE)
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn kind(&self, id: u32) -> Option<TokenKind> {
        self.kinds.get(id as usize).copied()
    }

    /// What the id decodes to.
    pub(crate) fn bytes_of(&self, id: u32) -> Option<&[u8]> {
        ((id as usize) < self.len()).then(|| slice(&self.bytes, &self.ends, id))
    }

    pub(crate) fn spelling(&self) -> Spelling {
        self.spelling
    }
}

fn slice<'a>(bytes: &'a [u8], ends: &[u32], id: u32) -> &'a [u8] {
    let id = id as usize;
    let start = if id == 0 { 0 } else { ends[id - 1] as usize };
    &bytes[start..ends[id] as usize]
}

/// Appends what a piece decodes to.
pub(crate) fn spell(spelling: Spelling, piece: &str, out: &mut Vec<u8>) {
    match spelling {
        Spelling::ByteLevel => alphabet::unmap(piece, out),
        Spelling::Metaspace => {
            let mut parts = piece.split('▁');
            out.extend_from_slice(parts.next().unwrap_or("").as_bytes());
            for part in parts {
                out.push(b' ');
                out.extend_from_slice(part.as_bytes());
            }
        }
    }
}

/// The byte of a token written `<0xAB>`.
fn parse_byte_token(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    (digits.len() == 2).then(|| u8::from_str_radix(digits, 16).ok())?
}
