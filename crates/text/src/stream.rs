//! Streaming detokenisation: text comes out as soon as its characters are whole.
//!
//! Invariant: the pieces that a stream gives, put together, are the lossy UTF-8 reading of all bytes together, wherever the
//! tokens' edges lie. So half a character is never shown; bytes that can no longer become a character give one U+FFFD for
//! each maximal invalid stretch, once; and `finish` gives what is left.

use crate::Tokenizer;

/// Decodes token by token. Made by [`Tokenizer::stream`].
pub struct DecodeStream<'a> {
    tokenizer: &'a Tokenizer,
    /// Bytes that may still become a character; at most three after each push.
    pending: Vec<u8>,
    text: String,
    strip_space: bool,
    show_special: bool,
}

impl<'a> DecodeStream<'a> {
    pub(crate) fn new(tokenizer: &'a Tokenizer, strip_space: bool) -> Self {
        DecodeStream { tokenizer, pending: Vec::new(), text: String::new(), strip_space, show_special: false }
    }

    /// Whether control tokens appear in the text, as the file spells them. They are hidden unless asked for.
    #[must_use]
    pub fn show_special(mut self, show: bool) -> Self {
        self.show_special = show;
        self
    }

    /// Takes a token and returns the text that it completed, often none. Ids outside of the vocabulary give nothing.
    pub fn push(&mut self, id: u32) -> &str {
        self.text.clear();
        let hidden = self.tokenizer.is_special(id);
        if (!hidden || self.show_special)
            && let Some(bytes) = self.tokenizer.token_bytes(id)
        {
            // The space that encoding put in front of the text is not part of it.
            let bytes = match (self.strip_space && !hidden, bytes) {
                (true, [b' ', rest @ ..]) => rest,
                _ => bytes,
            };
            if !hidden {
                self.strip_space = false;
            }
            self.pending.extend_from_slice(bytes);
            self.take_decided();
        }
        &self.text
    }

    /// Ends the text: returns what is left, U+FFFD for half a character.
    pub fn finish(&mut self) -> &str {
        self.text.clear();
        self.text.push_str(&String::from_utf8_lossy(&self.pending));
        self.pending.clear();
        &self.text
    }

    fn take_decided(&mut self) {
        let mut done = 0;
        loop {
            let rest = &self.pending[done..];
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    self.text.push_str(valid);
                    done += rest.len();
                    break;
                }
                Err(error) => {
                    let valid = error.valid_up_to();
                    self.text.push_str(&String::from_utf8_lossy(&rest[..valid]));
                    done += valid;
                    let Some(invalid) = error.error_len() else { break };
                    self.text.push(char::REPLACEMENT_CHARACTER);
                    done += invalid;
                }
            }
        }
        self.pending.drain(..done);
    }
}
