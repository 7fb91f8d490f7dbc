//! Dialects: how a model writes reasoning and tool calls, and how to tell from its file which one it speaks.

/// A way to write reasoning and tool calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// gpt-oss: messages with headers, each in a channel.
    Harmony,
    /// JSON objects between `<tool_call>` tags: Hermes, Qwen 2.5 and 3, most ChatML models.
    Hermes,
    /// `<function=…>` and `<parameter=…>` in `<tool_call>` tags: Qwen 3 Coder and 3.5.
    QwenXml,
    /// A JSON object with `name` and `parameters`: Llama 3.
    LlamaJson,
    /// A Python list of calls: Llama 3.2 and 4.
    LlamaPythonic,
    /// `[TOOL_CALLS]`, then a JSON list or a name and `[ARGS]`; reasoning in `[THINK]`.
    Mistral,
    /// What prompts teach Gemma 3: fenced JSON or Python.
    Gemma3,
    /// `<|tool_call>call:name{…}<tool_call|>`, reasoning in a channel: Gemma 4, and Gemma 3 made for function calling.
    Gemma4,
    /// Calls between tokens, arguments in JSON: DeepSeek R1, V3 and V3.1.
    DeepSeek,
    /// Calls as tags with the letters DSML: DeepSeek V3.2.
    DeepSeekTags,
    /// Kimi K2's sections.
    Kimi,
    /// `<invoke>` and `<parameter>` in `<minimax:tool_call>` tags: MiniMax M2.
    MiniMax,
    /// A name and `<arg_key>`, `<arg_value>` in `<tool_call>` tags: GLM 4.5 and later.
    Glm,
    /// No tool calls; reasoning in `<think>` tags.
    Plain,
}

/// What a template that teaches a dialect contains; the first that fits wins, so narrower ones stand before wider ones.
const IN_TEMPLATES: [(&str, Dialect); 18] = [
    ("<|channel|>", Dialect::Harmony),
    ("<|tool_call>", Dialect::Gemma4),
    ("<start_function_call>", Dialect::Gemma4),
    ("<minimax:tool_call>", Dialect::MiniMax),
    ("minimax:tool_call", Dialect::MiniMax),
    ("｜DSML｜", Dialect::DeepSeekTags),
    ("<｜tool▁calls▁begin｜>", Dialect::DeepSeek),
    ("<|tool_calls_section_begin|>", Dialect::Kimi),
    ("<arg_key>", Dialect::Glm),
    ("<function=", Dialect::QwenXml),
    ("<tool_call>", Dialect::Hermes),
    ("[TOOL_CALLS]", Dialect::Mistral),
    ("[INST]", Dialect::Mistral),
    ("<|python_start|>", Dialect::LlamaPythonic),
    ("func_name1(", Dialect::LlamaPythonic),
    ("<|start_header_id|>", Dialect::LlamaJson),
    ("<start_of_turn>", Dialect::Gemma3),
    ("<｜Assistant｜>", Dialect::DeepSeek),
];

const IN_VOCABULARIES: [(&str, Dialect); 6] = [
    ("<|constrain|>", Dialect::Harmony),
    ("<|tool_call>", Dialect::Gemma4),
    ("<minimax:tool_call>", Dialect::MiniMax),
    ("<｜tool▁calls▁begin｜>", Dialect::DeepSeek),
    ("<arg_key>", Dialect::Glm),
    ("[TOOL_CALLS]", Dialect::Mistral),
];

impl Dialect {
    /// The dialect of a model: from its chat template, else from its tokens, else from its architecture's name
    /// (`general.architecture`). A template that teaches no calls at all gives the dialect of its turns: `Hermes` for
    /// ChatML, since such models are mostly tuned on it; `Plain` where nothing is known.
    pub fn detect(
        chat_template: Option<&str>,
        architecture: &str,
        has_token: impl Fn(&str) -> bool,
    ) -> Dialect {
        if let Some(template) = chat_template {
            if let Some((_, dialect)) = IN_TEMPLATES.iter().find(|(sign, _)| template.contains(sign)) {
                return *dialect;
            }
            if template.contains("<|im_start|>") {
                return Dialect::Hermes;
            }
        }
        if let Some((_, dialect)) = IN_VOCABULARIES.iter().find(|(token, _)| has_token(token)) {
            return *dialect;
        }
        match architecture {
            "gpt-oss" | "gpt_oss" => Dialect::Harmony,
            "gemma4" => Dialect::Gemma4,
            "minimax-m2" => Dialect::MiniMax,
            "glm4moe" | "glm4_moe" => Dialect::Glm,
            "deepseek2" => Dialect::DeepSeek,
            "gemma3" => Dialect::Gemma3,
            a if a.starts_with("mistral") => Dialect::Mistral,
            "llama4" => Dialect::LlamaPythonic,
            a if a.starts_with("qwen") => Dialect::Hermes,
            _ if has_token("<tool_call>") => Dialect::Hermes,
            _ if has_token("<|python_tag|>") => Dialect::LlamaJson,
            _ => Dialect::Plain,
        }
    }

    /// The dialect's name in settings: `hermes`, `qwen-xml`, …
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Harmony => "harmony",
            Dialect::Hermes => "hermes",
            Dialect::QwenXml => "qwen-xml",
            Dialect::LlamaJson => "llama-json",
            Dialect::LlamaPythonic => "llama-pythonic",
            Dialect::Mistral => "mistral",
            Dialect::Gemma3 => "gemma3",
            Dialect::Gemma4 => "gemma4",
            Dialect::DeepSeek => "deepseek",
            Dialect::DeepSeekTags => "deepseek-tags",
            Dialect::Kimi => "kimi",
            Dialect::MiniMax => "minimax",
            Dialect::Glm => "glm",
            Dialect::Plain => "plain",
        }
    }
}
