//! Pre-tokenisation: cutting text into the words that merging may not cross.
//!
//! A pre-tokenizer is a list of cuts applied one after another, each to all pieces that the ones before left; what a pattern
//! matches and what lies between matches become pieces of their own. Patterns are those that the models' published
//! `tokenizer.json` files state. Nearly all end in `\s+(?!\S)|\s+`, the only look-ahead among them: "a run of white space,
//! without its last character if a word follows". That rule is applied by hand after a plain `\s+`, so the patterns run on a
//! finite automaton, in linear time on any text, and need no backtracking engine. `exactness.rs` holds the results
//! against the reference implementation.

use regex_automata::{
    Anchored, Input, MatchKind,
    meta::{Config, Regex},
    util::syntax,
};

use crate::TextError;

pub(crate) const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN35: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const GPT4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const KIMI_K2: &str = r"\p{Han}+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const BAILING: &str =
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+";
const SEED_CODER: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+";
const DEEPSEEK_V3: [&str; 3] = [
    r"\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##,
];
const DEEPSEEK_LLM: [&str; 6] = [
    r"[\r\n]",
    r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝ\u{1F5F}-\u{1F7D}\u{1F80}-\u{1FB4}\u{1FB6}-\u{1FBC}\u{1FBE}\u{1FC2}-\u{1FC4}\u{1FC6}-\u{1FCC}\u{1FD0}-\u{1FD3}\u{1FD6}-\u{1FDB}\u{1FE0}-\u{1FEC}\u{1FF2}-\u{1FF4}\u{1FF6}-\u{1FFC}\u{2102}\u{2107}\u{210A}-\u{2113}\u{2115}\u{2119}-\u{211D}\u{2124}\u{2126}\u{2128}\u{212A}-\u{212D}ℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+",
    r"\s?[!-/:-~！-／：-～‘-‟　-。]+",
    r"\s+$",
    "[一-龥ࠀ-一가-퟿]+",
    r"\p{N}+",
];
const DEEPSEEK_CODER: [&str; 5] = [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+", r"\p{N}"];
const DEFAULT: [&str; 4] = [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"];
const FALCON: [&str; 3] = [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"];

/// What the name in `tokenizer.ggml.pre` stands for.
pub(crate) struct Preset {
    /// Patterns, in the order in which they cut.
    pub(crate) patterns: &'static [&'static str],
    /// A word that is a piece as a whole is that piece, whatever the merges say.
    pub(crate) whole_words: bool,
    /// Text is brought into normalisation form C first.
    pub(crate) nfc: bool,
    /// BOS is prepended where the file has no `add_bos_token`.
    pub(crate) add_bos: bool,
}

/// Looks a pre-tokenizer up by its name in `tokenizer.ggml.pre`.
pub(crate) fn preset(pre: &str) -> Option<Preset> {
    let plain = |patterns| Preset { patterns, whole_words: false, nfc: false, add_bos: false };
    Some(match pre {
        "default" => plain(&DEFAULT),
        "gpt-2" | "phi-2" | "mpt" | "jais" | "trillion" | "granite-docling" | "exaone4" | "gigachat"
        | "a.x-4.0" | "mellum" | "modern-bert" => plain(&[GPT2]),
        "olmo" | "dolma" => Preset { nfc: true, ..plain(&[GPT2]) },
        "smollm" | "starcoder" | "refact" | "codeshell" | "command-r" | "exaone" | "minerva-7b"
        | "mellum2" => plain(&[r"\p{N}", GPT2]),
        "falcon" => plain(&FALCON),
        "llama3" | "llama-v3" | "llama-bpe" | "falcon3" | "falcon-h1" | "pixtral" | "midm-2.0" | "lfm2" => {
            Preset { whole_words: true, add_bos: true, ..plain(&[LLAMA3]) }
        }
        "smaug-bpe" | "dbrx" | "glm4" | "chatglm-bpe" => plain(&[LLAMA3]),
        "qwen2" | "deepseek-r1-qwen" | "kormo" | "f2llmv2" => Preset { nfc: true, ..plain(&[QWEN2]) },
        "stablelm2" | "megrez" | "hunyuan" | "solar-open" | "grok-2" => plain(&[QWEN2]),
        "qwen35" => Preset { nfc: true, ..plain(&[QWEN35]) },
        "gpt-4o" | "llama4" | "kanana2" | "minimax-m2" => plain(&[GPT4O]),
        "tekken" => Preset { whole_words: true, add_bos: true, ..plain(&[TEKKEN]) },
        "deepseek-llm" => plain(&DEEPSEEK_LLM),
        "deepseek-coder" => plain(&DEEPSEEK_CODER),
        "deepseek-v3" | "hunyuan-dense" | "joyai-llm" => plain(&DEEPSEEK_V3),
        "kimi-k2" => plain(&[KIMI_K2]),
        "bailingmoe" | "bailingmoe2" | "llada-moe" => plain(&[BAILING]),
        "seed-coder" => plain(&[SEED_CODER]),
        _ => return None,
    })
}

/// A list of cuts.
pub(crate) struct PreTokenizer {
    cuts: Vec<Cut>,
}

struct Cut {
    regex: Regex,
    /// The pattern ends in `\s+`, which leaves its last character to a word that follows.
    yields_space: bool,
}

impl PreTokenizer {
    pub(crate) fn new(patterns: &[impl AsRef<str>]) -> Result<PreTokenizer, TextError> {
        let cuts = patterns.iter().map(|p| Cut::new(p.as_ref())).collect::<Result<_, _>>()?;
        Ok(PreTokenizer { cuts })
    }

    /// Calls `word` with each word of `text`, in order. Together they are the text.
    pub(crate) fn split<'t>(&self, text: &'t str, mut word: impl FnMut(&'t str)) {
        let Some((last, before)) = self.cuts.split_last() else {
            return word(text);
        };
        let mut words = vec![text];
        for cut in before {
            let mut next = Vec::with_capacity(words.len());
            words.iter().for_each(|w| cut.apply(w, |w| next.push(w)));
            words = next;
        }
        words.iter().for_each(|w| last.apply(w, &mut word));
    }
}

impl Cut {
    fn new(pattern: &str) -> Result<Cut, TextError> {
        let fail = |reason: String| TextError::Pattern { pattern: pattern.to_owned(), reason };
        let body = pattern.strip_suffix(r"|\s+").unwrap_or(pattern);
        let (body, yields_space) = match body.strip_suffix(r"|\s+(?!\S)") {
            Some(body) => (body, true),
            None => (pattern, false),
        };
        if ["(?!", "(?=", "(?<!", "(?<=", "(?>"].iter().any(|look| body.contains(look)) {
            return Err(fail("it looks around in a way that is not implemented".to_owned()));
        }
        let patterns = if yields_space { vec![body, r"\s+"] } else { vec![body] };
        let config = Config::new()
            .match_kind(MatchKind::LeftmostFirst)
            .nfa_size_limit(Some(16 << 20))
            .onepass(false)
            .utf8_empty(true);
        let regex = Regex::builder()
            .configure(config)
            .syntax(syntax::Config::new().nest_limit(64))
            .build_many(&patterns)
            .map_err(|e| fail(e.to_string()))?;
        Ok(Cut { regex, yields_space })
    }

    fn apply<'t>(&self, text: &'t str, mut word: impl FnMut(&'t str)) {
        let mut done = 0;
        let mut at = 0;
        while at < text.len() {
            let input = Input::new(text).range(at..).anchored(Anchored::No);
            let Some(found) = self.regex.search(&input) else { break };
            let mut end = found.end();
            if self.yields_space && found.pattern().as_usize() == 1 && end < text.len() {
                let last = text[found.range()].chars().next_back().map_or(0, char::len_utf8);
                if end - last > found.start() {
                    end -= last;
                }
            }
            if end == found.start() {
                at = end + text[end..].chars().next().map_or(1, char::len_utf8);
                continue;
            }
            if done < found.start() {
                word(&text[done..found.start()]);
            }
            word(&text[found.start()..end]);
            done = end;
            at = end;
        }
        if done < text.len() {
            word(&text[done..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(pre: &str, text: &str) -> Vec<String> {
        let mut out = Vec::new();
        PreTokenizer::new(preset(pre).unwrap().patterns).unwrap().split(text, |w| out.push(w.to_owned()));
        out
    }

    #[test]
    fn a_run_of_spaces_leaves_its_last_one_to_the_word() {
        assert_eq!(words("gpt-2", "a   b"), ["a", "  ", " b"]);
        assert_eq!(words("gpt-2", "a   "), ["a", "   "]);
        assert_eq!(words("gpt-2", "a\tb"), ["a", "\t", "b"]);
        assert_eq!(words("llama-bpe", "a \n\n  b"), ["a", " \n\n", " ", " b"]);
    }

    #[test]
    fn digits_are_grouped_as_the_family_does() {
        assert_eq!(words("llama-bpe", "12345"), ["123", "45"]);
        assert_eq!(words("qwen2", "123"), ["1", "2", "3"]);
        assert_eq!(words("smollm", " 12a"), [" ", "1", "2", "a"]);
        assert_eq!(words("deepseek-v3", "1234 漢字かな"), ["123", "4", " ", "漢字かな"]);
    }

    #[test]
    fn contractions_ignore_case_only_where_the_family_does() {
        assert_eq!(words("llama-bpe", "DON'T"), ["DON", "'T"]);
        assert_eq!(words("gpt-2", "DON'T"), ["DON", "'", "T"]);
        assert_eq!(words("gpt-4o", "DON'T"), ["DON'T"]);
    }

    #[test]
    fn kimi_keeps_han_apart() {
        assert_eq!(words("kimi-k2", "abc漢字def"), ["abc", "漢字", "def"]);
    }

    #[test]
    fn every_preset_compiles_and_keeps_the_text_whole() {
        let text = "Hi, it's 12345 ①②\t\r\n\n 漢字かな  가나 e\u{301} ΑΒΓ\u{3000}«x»  ";
        for pre in [
            "default",
            "gpt-2",
            "olmo",
            "smollm",
            "falcon",
            "llama-bpe",
            "smaug-bpe",
            "qwen2",
            "stablelm2",
            "qwen35",
            "gpt-4o",
            "tekken",
            "deepseek-llm",
            "deepseek-coder",
            "deepseek-v3",
            "kimi-k2",
            "bailingmoe",
            "seed-coder",
        ] {
            assert_eq!(words(pre, text).concat(), text, "{pre}");
        }
    }

    #[test]
    fn look_around_that_is_not_implemented_is_refused() {
        assert!(matches!(PreTokenizer::new(&[r"\d{1,3}(?=(?:\d{3})*\b)"]), Err(TextError::Pattern { .. })));
    }
}
