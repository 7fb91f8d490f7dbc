//! Calls whose arguments are plain text between tags, parameter by parameter in the order of the schema.
//!
//! A string is any text up to its closing tag, or one of its enum's values; anything else is JSON that satisfies the
//! parameter's schema. What a schema asks of a string beyond that can't be told from the tags around it and is refused.

use serde_json::Value;

use super::{
    GrammarError,
    calls::{Rules, unsupported},
    lark,
};
use crate::{Dialect, Tool, split::Types};

/// What stands around a call and its parameters: call, end of the call, before a key, before a value, after it.
struct Around {
    call: [&'static str; 2],
    end: &'static str,
    key: &'static str,
    /// Before a value that is a string, and before another.
    value: [&'static str; 2],
    value_end: &'static str,
}

fn around(dialect: Dialect) -> Around {
    match dialect {
        Dialect::QwenXml => Around {
            call: ["\n<function=", ">\n"],
            end: "</function>\n",
            key: "<parameter=",
            value: [">\n"; 2],
            value_end: "\n</parameter>\n",
        },
        Dialect::MiniMax => Around {
            call: ["<invoke name=\"", "\">\n"],
            end: "</invoke>",
            key: "<parameter name=\"",
            value: ["\">"; 2],
            value_end: "</parameter>\n",
        },
        Dialect::DeepSeekTags => Around {
            call: ["<｜DSML｜invoke name=\"", "\">\n"],
            end: "</｜DSML｜invoke>",
            key: "<｜DSML｜parameter name=\"",
            value: ["\" string=\"true\">", "\" string=\"false\">"],
            value_end: "</｜DSML｜parameter>\n",
        },
        _ => Around {
            call: ["", "\n"],
            end: "",
            key: "<arg_key>",
            value: ["</arg_key>\n<arg_value>"; 2],
            value_end: "</arg_value>\n",
        },
    }
}

/// What a schema may not ask of a string here.
const UNSUPPORTED: [&str; 4] = ["pattern", "format", "minLength", "maxLength"];

/// The rule `call_i`.
pub(super) fn call(dialect: Dialect, i: usize, tool: &Tool, rules: &mut Rules) -> Result<(), GrammarError> {
    let (around, root) = (around(dialect), &tool.parameters);
    let required = |key: &str| {
        let names = root.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|n| n == key))
    };
    let mut body = lark::quoted(&[around.call[0], &tool.name, around.call[1]].concat());
    let properties = root.get("properties").and_then(Value::as_object);
    for (j, (key, schema)) in properties.into_iter().flatten().enumerate() {
        if key.is_empty() || key.len() > 128 || key.contains(['<', '>', '"', '\n']) {
            return Err(unsupported(
                dialect,
                format!("tool {}: a parameter's name has no place in its tags", tool.name),
            ));
        }
        let rule = format!("p_{i}_{j}");
        parameter(dialect, &around, &rule, tool, key, schema, rules)?;
        body.push_str(&format!(" {rule}{}", if required(key) { "" } else { "?" }));
    }
    if !around.end.is_empty() {
        body.push_str(&format!(" {}", lark::quoted(around.end)));
    }
    rules.text.push_str(&format!("call_{i}: {body}\n"));
    Ok(())
}

fn parameter(
    dialect: Dialect,
    around: &Around,
    rule: &str,
    tool: &Tool,
    key: &str,
    schema: &Value,
    rules: &mut Rules,
) -> Result<(), GrammarError> {
    let types = Types::of_parameter(Some(tool), key);
    let head = |string: bool| lark::quoted(&[around.key, key, around.value[usize::from(!string)]].concat());
    // Text that says `null` is read as null where the schema admits it.
    let string_or_null = Types { null: false, ..types }.only_string();
    if types.only_string() || (string_or_null && schema.get("enum").is_none()) {
        let words = schema.get("enum").and_then(Value::as_array);
        let constant = schema.get("const").map(std::slice::from_ref);
        if let Some(words) = words.map(Vec::as_slice).or(constant) {
            let words: Vec<String> = words
                .iter()
                .filter_map(Value::as_str)
                .map(|word| lark::quoted(&[word, around.value_end].concat()))
                .collect();
            rules.text.push_str(&format!("{rule}: {} ({})\n", head(true), words.join(" | ")));
            return Ok(());
        }
        if let Some(keyword) = UNSUPPORTED.iter().find(|k| schema.get(**k).is_some()) {
            let what = format!("tool {}, parameter {key}: {keyword} of a string", tool.name);
            return Err(unsupported(dialect, what));
        }
        rules.text.push_str(&lark::lazily(&format!("{rule}_v"), around.value_end));
        rules.text.push_str(&format!("{rule}: {} {rule}_v\n", head(true)));
        return Ok(());
    }
    if types.string {
        let what = format!("tool {}, parameter {key}: a type that is a string or something else", tool.name);
        return Err(unsupported(dialect, what));
    }
    let place = format!("#/tools/{}/parameters/properties/{key}", tool.name);
    rules.json(&format!("{rule}_v"), place, &tool.parameters, schema);
    let end = lark::quoted(around.value_end);
    rules.text.push_str(&format!("{rule}: {} {rule}_v {end}\n", head(false)));
    Ok(())
}
