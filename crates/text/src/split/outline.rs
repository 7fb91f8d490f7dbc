//! Dialects as data: where reasoning and calls begin and end, and who reads the calls.

use super::{
    call::CallParser,
    dialect::Dialect,
    gemma::BraceCall,
    section::{self, SectionCalls},
    sniff::{After, Sniffer},
    xml::{self, TagCalls},
};

pub(super) type MakeParser = fn() -> Box<dyn CallParser>;

/// A dialect in which text, reasoning and calls alternate.
#[derive(Debug)]
pub(super) struct Outline {
    /// Opens and closes reasoning.
    pub(super) think: Option<(&'static str, &'static str)>,
    /// Reasoning may begin anywhere, not only before the text.
    pub(super) think_anywhere: bool,
    pub(super) openers: &'static [(&'static str, MakeParser)],
    /// May stand after a call, and end one that went wrong.
    pub(super) closers: &'static [&'static str],
    /// An answer that begins with a bracket may be a call.
    pub(super) bare: bool,
}

const THINK: Option<(&str, &str)> = Some(("<think>", "</think>"));

fn tag() -> Box<dyn CallParser> {
    Box::new(Sniffer::new(After::ToolCallTag))
}

fn code() -> Box<dyn CallParser> {
    Box::new(Sniffer::new(After::CodeToken))
}

pub(super) fn bare() -> Box<dyn CallParser> {
    Box::new(Sniffer::new(After::Nothing))
}

fn mistral() -> Box<dyn CallParser> {
    Box::new(Sniffer::new(After::ToolCalls))
}

fn deepseek() -> Box<dyn CallParser> {
    Box::new(SectionCalls::new(&section::DEEPSEEK))
}

fn deepseek_tags() -> Box<dyn CallParser> {
    Box::new(TagCalls::new(&xml::DEEPSEEK))
}

fn kimi() -> Box<dyn CallParser> {
    Box::new(SectionCalls::new(&section::KIMI))
}

fn minimax() -> Box<dyn CallParser> {
    Box::new(TagCalls::new(&xml::MINIMAX))
}

fn braces() -> Box<dyn CallParser> {
    Box::new(BraceCall::new())
}

static TAGS: Outline = Outline {
    think: THINK,
    think_anywhere: false,
    openers: &[("<tool_call>", tag)],
    closers: &["</tool_call>"],
    bare: false,
};

static LLAMA: Outline = Outline {
    think: THINK,
    think_anywhere: false,
    openers: &[("<|python_tag|>", code), ("<|python_start|>", code)],
    closers: &["<|python_end|>"],
    bare: true,
};

static MISTRAL: Outline = Outline {
    think: Some(("[THINK]", "[/THINK]")),
    think_anywhere: true,
    openers: &[("[TOOL_CALLS]", mistral)],
    closers: &[],
    bare: false,
};

static GEMMA3: Outline = Outline {
    think: None,
    think_anywhere: false,
    openers: &[("```tool_code\n", bare), ("```tool_call\n", bare), ("```json\n", bare)],
    closers: &["```"],
    bare: true,
};

static GEMMA4: Outline = Outline {
    think: Some(("<|channel>thought", "<channel|>")),
    think_anywhere: true,
    openers: &[("<|tool_call>", braces), ("<start_function_call>", braces)],
    closers: &["<tool_call|>", "<end_function_call>", "<|tool_response>", "<start_function_response>"],
    bare: false,
};

static DEEPSEEK: Outline = Outline {
    think: THINK,
    think_anywhere: false,
    openers: &[("<｜tool▁calls▁begin｜>", deepseek), ("<｜DSML｜function_calls>", deepseek_tags)],
    closers: &["<｜tool▁calls▁end｜>", "</｜DSML｜function_calls>"],
    bare: false,
};

static KIMI: Outline = Outline {
    think: THINK,
    think_anywhere: false,
    openers: &[("<|tool_calls_section_begin|>", kimi)],
    closers: &["<|tool_calls_section_end|>"],
    bare: false,
};

static MINIMAX: Outline = Outline {
    think: THINK,
    think_anywhere: false,
    openers: &[("<minimax:tool_call>", minimax)],
    closers: &["</minimax:tool_call>"],
    bare: false,
};

static PLAIN: Outline =
    Outline { think: THINK, think_anywhere: false, openers: &[], closers: &[], bare: false };

/// The outline of a dialect; harmony has none, its messages have headers.
pub(super) fn of(dialect: Dialect) -> Option<&'static Outline> {
    Some(match dialect {
        Dialect::Harmony => return None,
        Dialect::Hermes | Dialect::QwenXml | Dialect::Glm => &TAGS,
        Dialect::LlamaJson | Dialect::LlamaPythonic => &LLAMA,
        Dialect::Mistral => &MISTRAL,
        Dialect::Gemma3 => &GEMMA3,
        Dialect::Gemma4 => &GEMMA4,
        Dialect::DeepSeek | Dialect::DeepSeekTags => &DEEPSEEK,
        Dialect::Kimi => &KIMI,
        Dialect::MiniMax => &MINIMAX,
        Dialect::Plain => &PLAIN,
    })
}
