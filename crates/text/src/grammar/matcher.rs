//! From a grammar to masks over the vocabulary.
//!
//! Invariant: compiling runs on a thread whose stack holds what the limits admit, and every failure inside of `llguidance`
//! comes out as an error.

use std::{sync::Arc, time::Duration};

use llguidance::{
    ParserFactory, TokenParser,
    api::TopLevelGrammar,
    toktrie::{InferenceCapabilities, SimpleVob, TokEnv, TokRxInfo, TokTrie, TokenizerEnv},
};
use serde_json::Value;

use super::{Grammar, GrammarError, Source, lark, limits};
use crate::{TokenKind, Tokenizer};

/// Stack for compiling; schemas nest and refer to one another.
const STACK: usize = 256 << 20;

/// The last resort: what the limits let through and is still not compiled is given up, its thread left to end by itself.
const MAX_COMPILE: Duration = Duration::from_secs(5);

/// Subschemas that are compiled alone to find the one at fault.
const MAX_TRIALS: usize = 64;

struct Vocabulary(TokTrie);

impl TokenizerEnv for Vocabulary {
    fn tok_trie(&self) -> &TokTrie {
        &self.0
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<u32> {
        self.0.greedy_tokenize(bytes)
    }

    fn tokenize_is_canonical(&self) -> bool {
        false
    }
}

/// A model's vocabulary, ready for constraints. Making it sorts the whole vocabulary, which takes a tenth of a second for
/// 50,000 tokens and a second for 262,144: make it once a model, aside while the model loads.
pub struct Constraints(Arc<Compiler>);

impl std::fmt::Debug for Constraints {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Constraints").finish_non_exhaustive()
    }
}

impl Constraints {
    /// Builds the trie of all tokens. A text that a grammar allows ends with any of the tokenizer's stop tokens.
    ///
    /// # Errors
    /// [`GrammarError::Stuck`] for a vocabulary that has no token to end a text with.
    pub fn new(tokenizer: &Tokenizer) -> Result<Constraints, GrammarError> {
        let size = tokenizer.vocab_size() as u32;
        let words: Vec<Vec<u8>> = (0..size).map(|id| bytes(tokenizer, id)).collect();
        let stops: Vec<u32> = tokenizer.stop_tokens().iter().copied().filter(|&id| id < size).collect();
        let Some(&first) = stops.first() else {
            return Err(GrammarError::Stuck {
                reason: "the vocabulary has no token that ends a text".to_owned(),
            });
        };
        let trie = TokTrie::from(&TokRxInfo::new(size, first), &words).with_eos_tokens(&stops);
        let env: TokEnv = Arc::new(Vocabulary(trie));
        let slices = llguidance::earley::SlicedBiasComputer::general_slices();
        let mut factory = ParserFactory::new(&env, InferenceCapabilities::default(), &slices)
            .map_err(|e| GrammarError::Stuck { reason: first_line(&e) })?;
        factory.quiet();
        let limits = factory.limits_mut();
        limits.verbose_errors = false;
        // A state takes up to 2 kB.
        limits.max_lexer_states = 50_000;
        Ok(Constraints(Arc::new(Compiler { factory })))
    }

    /// Compiles a grammar for one answer.
    ///
    /// # Errors
    /// [`GrammarError`] naming the place in a schema, or what the expression or grammar does that can't be used.
    pub fn start(&self, grammar: &Grammar) -> Result<Matcher, GrammarError> {
        let (send, receive) = std::sync::mpsc::channel();
        let (compiler, source) = (Arc::clone(&self.0), grammar.0.clone());
        let worker = move || {
            // Nobody listens any more where it took too long.
            let _ = send.send(compiler.start(&source));
        };
        let thread = std::thread::Builder::new().name("grammar".to_owned()).stack_size(STACK);
        thread.spawn(worker).map_err(|e| stuck(&format!("no thread can be started: {e}")))?;
        let parser =
            receive.recv_timeout(MAX_COMPILE).map_err(|_| stuck("compiling it takes too long"))??;
        let mut matcher = llguidance::Matcher::new(Ok(parser));
        let mask = matcher.compute_mask_or_eos().ok().filter(|mask| !mask.is_zero());
        let mask = mask.ok_or_else(|| {
            let reason = "no text satisfies it".to_owned();
            match &grammar.0 {
                Source::Regex(_) => GrammarError::Syntax { kind: "regular expression", reason },
                Source::Lark(_) => GrammarError::Syntax { kind: "grammar", reason },
                _ => GrammarError::Schema { place: "#".to_owned(), reason },
            }
        })?;
        Ok(Matcher { inner: matcher, mask, fresh: true })
    }
}

/// Compiles, on whatever thread.
struct Compiler {
    factory: ParserFactory,
}

impl Compiler {
    fn start(&self, source: &Source) -> Result<TokenParser, GrammarError> {
        match source {
            Source::Schema(schema) => {
                self.compile(schema_grammar(schema)).map_err(|reason| self.locate(schema, "#", reason))
            }
            Source::Regex(pattern) => self
                .compile(TopLevelGrammar::from_regex(pattern))
                .map_err(|reason| GrammarError::Syntax { kind: "regular expression", reason }),
            Source::Lark(source) => self
                .compile(TopLevelGrammar::from_lark(source.clone()))
                .map_err(|reason| GrammarError::Syntax { kind: "grammar", reason }),
            Source::Calls { source, schemas } => {
                let source = lark::resolve(source, |token| self.trie().get_special_token(token));
                self.compile(TopLevelGrammar::from_lark(source)).map_err(|reason| {
                    schemas
                        .iter()
                        .find_map(|(place, schema)| {
                            let reason = self.compile(schema_grammar(schema)).err()?;
                            Some(self.locate(schema, place, reason))
                        })
                        .unwrap_or(GrammarError::Syntax { kind: "grammar", reason })
                })
            }
        }
    }

    fn trie(&self) -> &TokTrie {
        self.factory.tok_env().tok_trie()
    }

    fn compile(&self, grammar: TopLevelGrammar) -> Result<TokenParser, String> {
        self.factory.create_parser(grammar).map_err(|e| first_line(&e))
    }

    /// The innermost subschema that fails by itself, with its own reason.
    fn locate(&self, root: &Value, place: &str, reason: String) -> GrammarError {
        let (mut place, mut reason, mut schema, mut trials) = (place.to_owned(), reason, root, 0);
        'deeper: loop {
            for (pointer, child) in limits::subschemas(schema) {
                trials += 1;
                if trials > MAX_TRIALS {
                    break 'deeper;
                }
                let alone = lark::with_definitions(root, child);
                if let Err(inner) = self.compile(schema_grammar(&alone)) {
                    place.push_str(&pointer);
                    (reason, schema) = (inner, child);
                    continue 'deeper;
                }
            }
            break;
        }
        GrammarError::Schema { place, reason }
    }
}

fn schema_grammar(schema: &Value) -> TopLevelGrammar {
    TopLevelGrammar::from_json_schema(lark::with_definitions(&Value::Null, schema))
}

fn stuck(reason: &str) -> GrammarError {
    GrammarError::Stuck { reason: reason.to_owned() }
}

fn first_line(error: &impl std::fmt::Display) -> String {
    error.to_string().lines().next().unwrap_or_default().chars().take(300).collect()
}

/// What a token stands for in the trie: control tokens are marked so that no text spells them, and what encoding never
/// produces is nothing.
fn bytes(tokenizer: &Tokenizer, id: u32) -> Vec<u8> {
    let bytes = tokenizer.token_bytes(id).unwrap_or_default();
    match tokenizer.kind(id) {
        Some(TokenKind::Control) => [&[TokTrie::SPECIAL_TOKEN_MARKER], bytes].concat(),
        Some(TokenKind::Normal | TokenKind::UserDefined | TokenKind::Byte)
            if !bytes.contains(&TokTrie::SPECIAL_TOKEN_MARKER) =>
        {
            bytes.to_vec()
        }
        _ => Vec::new(),
    }
}

/// Follows one answer.
pub struct Matcher {
    inner: llguidance::Matcher,
    mask: SimpleVob,
    /// The mask is that of the present state.
    fresh: bool,
}

impl std::fmt::Debug for Matcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Matcher").finish_non_exhaustive()
    }
}

impl Matcher {
    /// The tokens that are allowed next: bit `id % 32` of word `id / 32`. Where the text is complete, stop tokens are among
    /// them; where nothing can follow, they are all there is.
    ///
    /// # Errors
    /// [`GrammarError::Stuck`] where working it out takes more than the limits allow.
    pub fn mask(&mut self) -> Result<&[u32], GrammarError> {
        if !self.fresh {
            self.mask = self.inner.compute_mask_or_eos().map_err(|e| stuck(&first_line(&e)))?;
            self.fresh = true;
        }
        Ok(self.mask.as_slice())
    }

    /// Takes the token that was sampled. Stop tokens end the text.
    ///
    /// # Errors
    /// [`GrammarError::Rejected`] for a token that the mask forbids; the matcher stays as it was.
    pub fn accept(&mut self, token: u32) -> Result<(), GrammarError> {
        self.mask()?;
        if token as usize >= self.mask.len() || !self.mask.is_allowed(token) {
            return Err(GrammarError::Rejected { token });
        }
        if !self.inner.is_stopped() {
            self.inner.consume_token(token).map_err(|e| stuck(&first_line(&e)))?;
        }
        self.fresh = false;
        Ok(())
    }

    /// Whether the text may end here.
    pub fn is_accepting(&mut self) -> bool {
        self.inner.is_stopped() || self.inner.is_accepting().unwrap_or(false)
    }

    /// Whether nothing may follow but a stop token.
    pub fn is_finished(&self) -> bool {
        self.inner.is_stopped()
    }

    /// Bytes that must come next, whatever is sampled; often none. Encode them to feed several tokens at once.
    pub fn forced_bytes(&mut self) -> Vec<u8> {
        if self.inner.is_stopped() { Vec::new() } else { self.inner.compute_ff_bytes() }
    }
}
