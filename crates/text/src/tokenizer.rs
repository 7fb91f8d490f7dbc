//! The tokenizer: text to ids and back.
//!
//! Encoding goes: added tokens are cut out (`added`), each stretch of text is normalised, cut into words (`pretokenize`)
//! and merged (`merge`). Decoding concatenates the bytes of the ids. Invariant: ids are those of the reference implementation
//! of the model's own tokenizer; `tests/exactness.rs` holds that.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use crate::{
    DecodeStream, TextError,
    added::{Added, Segment},
    merge::{Merger, Merges},
    pretokenize::PreTokenizer,
    vocab::{NONE, Spelling, TokenKind, Vocab},
};

/// Longest text that is encoded at once, in bytes.
const MAX_TEXT: usize = 1 << 30;

/// What encoding does about tokens that are not plain text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Specials {
    /// Add BOS and EOS as the file's rule says. BOS is not added to a text that starts with it already (templates write
    /// it themselves), nor EOS to one that ends with it.
    pub add_bos_eos: bool,
    /// Recognise control tokens such as `<|im_start|>` in the text. Only for text that may steer the model: templates,
    /// never a user's words. User-defined tokens (`<think>`) are recognised always.
    pub parse: bool,
}

impl Specials {
    /// Plain text: nothing added, control tokens are ordinary characters.
    pub const NONE: Specials = Specials { add_bos_eos: false, parse: false };
    /// A rendered template or a raw prompt: BOS and EOS by the file's rule, control tokens recognised.
    pub const ALL: Specials = Specials { add_bos_eos: true, parse: true };
}

/// Which stretches of text get a space in front.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SpacePrefix {
    pub(crate) add: bool,
    /// Only the stretch at the very start, not those after added tokens.
    pub(crate) first_only: bool,
    /// Not where there is one already.
    pub(crate) unless_present: bool,
}

/// A model's tokenizer, built by [`Tokenizer::from_metadata`] or [`Tokenizer::from_file`].
pub struct Tokenizer {
    pub(crate) vocab: Vocab,
    pub(crate) merges: Merges,
    pub(crate) words: PreTokenizer,
    pub(crate) added: Added,
    pub(crate) nfc: bool,
    pub(crate) space_prefix: SpacePrefix,
    /// Decoding leaves out a space at the start of a text.
    pub(crate) strip_space: bool,
    /// A word that is a piece as a whole is that piece, whatever the merges say.
    pub(crate) whole_words: bool,
    pub(crate) unknown: Option<u32>,
    pub(crate) bos: Option<u32>,
    pub(crate) eos: Option<u32>,
    pub(crate) add_bos: bool,
    pub(crate) add_eos: bool,
    pub(crate) stop_tokens: Vec<u32>,
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokenizer")
            .field("vocab_size", &self.vocab_size())
            .field("bos", &self.bos)
            .field("eos", &self.eos)
            .field("stop_tokens", &self.stop_tokens)
            .finish_non_exhaustive()
    }
}

impl Tokenizer {
    /// The ids of `text`.
    ///
    /// Bytes that a byte-level vocabulary has no piece for are left out, as the reference does.
    ///
    /// # Errors
    /// [`TextError::NoPiece`] if the vocabulary can spell a character in no way, [`TextError::TooLong`] above 1 GiB.
    pub fn encode(&self, text: &str, specials: Specials) -> Result<Vec<u32>, TextError> {
        if text.len() > MAX_TEXT {
            return Err(TextError::TooLong { bytes: text.len(), limit: MAX_TEXT });
        }
        let mut out = Vec::with_capacity(text.len() / 3 + 2);
        let mut merger = Merger::default();
        let mut first = true;
        self.added.split(text, specials.parse, |segment| {
            match segment {
                Segment::Token(id) => out.push(id),
                Segment::Text(text) => self.encode_text(text, first, &mut merger, &mut out)?,
            }
            first = false;
            Ok(())
        })?;
        if specials.add_bos_eos {
            if let Some(bos) = self.bos.filter(|_| self.add_bos)
                && out.first() != Some(&bos)
            {
                out.insert(0, bos);
            }
            if let Some(eos) = self.eos.filter(|_| self.add_eos)
                && out.last() != Some(&eos)
            {
                out.push(eos);
            }
        }
        Ok(out)
    }

    fn encode_text(
        &self,
        text: &str,
        first: bool,
        merger: &mut Merger,
        out: &mut Vec<u32>,
    ) -> Result<(), TextError> {
        let mut text = Cow::Borrowed(text);
        if self.nfc && is_nfc_quick(text.chars()) != IsNormalized::Yes {
            text = Cow::Owned(text.nfc().collect());
        }
        if self.vocab.spelling() == Spelling::Metaspace && text.contains('▁') {
            // Pieces are kept with spaces in the place of ▁, so both must read the same here.
            text = Cow::Owned(text.replace('▁', " "));
        }
        let prefix = self.space_prefix;
        if prefix.add && (first || !prefix.first_only) && !(prefix.unless_present && text.starts_with(' ')) {
            text.to_mut().insert(0, ' ');
        }
        let mut result = Ok(());
        self.words.split(&text, |word| {
            if result.is_ok() {
                result = self.encode_word(word, merger, out);
            }
        });
        result
    }

    fn encode_word(&self, word: &str, merger: &mut Merger, out: &mut Vec<u32>) -> Result<(), TextError> {
        let bytes = word.as_bytes();
        if self.whole_words
            && let Some(id) = self.vocab.find(bytes)
        {
            out.push(id);
            return Ok(());
        }
        merger.clear();
        match self.vocab.spelling() {
            Spelling::ByteLevel => {
                for (at, &byte) in bytes.iter().enumerate() {
                    if let Some(id) = self.vocab.byte_id(byte) {
                        merger.push(at, 1, Some(id));
                    }
                }
            }
            Spelling::Metaspace => {
                for (at, c) in word.char_indices() {
                    let len = c.len_utf8();
                    merger.push(at, len, self.vocab.find(&bytes[at..at + len]));
                }
            }
        }
        let mut after_unknown = false;
        for symbol in merger.run(&self.vocab, &self.merges, bytes) {
            if symbol.id != NONE {
                out.push(symbol.id);
                after_unknown = false;
                continue;
            }
            let span = symbol.start as usize..(symbol.start + symbol.len) as usize;
            let ids = bytes[span.clone()].iter().map(|&b| self.vocab.byte_id(b));
            if ids.clone().all(|id| id.is_some()) {
                out.extend(ids.flatten());
                after_unknown = false;
            } else if let Some(unknown) = self.unknown {
                // A run of unknown characters is one unknown token.
                if !after_unknown {
                    out.push(unknown);
                }
                after_unknown = true;
            } else {
                return Err(TextError::NoPiece { text: word[span].to_owned() });
            }
        }
        Ok(())
    }

    /// The text of `ids`, a whole text from its start: control tokens are left out, invalid bytes become U+FFFD, and ids
    /// outside of the vocabulary decode to nothing. Equal to what [`Tokenizer::stream`] gives in pieces.
    pub fn decode(&self, ids: &[u32]) -> String {
        let mut stream = self.stream();
        let mut text = String::with_capacity(ids.len() * 4);
        for &id in ids {
            text.push_str(stream.push(id));
        }
        text.push_str(stream.finish());
        text
    }

    /// Decodes token by token from the start of a text.
    pub fn stream(&self) -> DecodeStream<'_> {
        DecodeStream::new(self, self.strip_space)
    }

    /// Decodes token by token where text stands before: a leading space is text, not the vocabulary's own prefix.
    pub fn stream_continuation(&self) -> DecodeStream<'_> {
        DecodeStream::new(self, false)
    }

    /// Number of ids.
    pub fn vocab_size(&self) -> usize {
        self.vocab.len()
    }

    /// The token that starts a text, if the file names one.
    pub fn bos(&self) -> Option<u32> {
        self.bos
    }

    /// The token that ends a text, if the file names one.
    pub fn eos(&self) -> Option<u32> {
        self.eos
    }

    /// Whether the file's rule puts BOS in front of a prompt.
    pub fn adds_bos(&self) -> bool {
        self.add_bos && self.bos.is_some()
    }

    /// Tokens that end a turn: EOS, EOT, EOM and the turn enders that the vocabulary has. Sorted.
    pub fn stop_tokens(&self) -> &[u32] {
        &self.stop_tokens
    }

    /// The bytes that an id decodes to; not always whole characters. `None` outside of the vocabulary.
    pub fn token_bytes(&self, id: u32) -> Option<&[u8]> {
        self.vocab.bytes_of(id)
    }

    /// The text of an id, with U+FFFD for bytes that are no character by themselves.
    pub fn token_text(&self, id: u32) -> Option<Cow<'_, str>> {
        self.vocab.bytes_of(id).map(String::from_utf8_lossy)
    }

    /// The kind of an id. `None` outside of the vocabulary.
    pub fn kind(&self, id: u32) -> Option<TokenKind> {
        self.vocab.kind(id)
    }

    /// Whether an id steers the model and is hidden in output. User-defined tokens (`<think>`) are not special.
    pub fn is_special(&self, id: u32) -> bool {
        matches!(self.vocab.kind(id), Some(TokenKind::Control | TokenKind::Unknown))
    }

    /// The id of a token as the file spells it: `<|im_end|>`, `Ġthe`, `▁the`, `<0x0A>`.
    pub fn id_of(&self, piece: &str) -> Option<u32> {
        self.vocab.find_spelt(piece)
    }
}
