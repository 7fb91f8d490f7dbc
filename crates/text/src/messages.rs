//! Messages as clients send them, in the form that a template takes.
//!
//! Clients write the arguments of past calls as a string of JSON and content as a list of parts. Most templates want
//! arguments as an object, some as a string, and print the other form wrongly or not at all. Invariant: what a template takes
//! is found by trying it, never by its name; nothing but those two forms is changed.

use serde_json::{Map, Value, json};

use crate::{ChatTemplate, Message};

/// Appears in a prompt only if a template prints arguments as JSON.
const PROBE: &str = "\"probe_key\":";

/// What a template takes where an answer was a call.
#[derive(Clone, Copy, Debug)]
struct Form {
    /// Arguments are a string of JSON.
    string_arguments: bool,
    /// Content that is empty is null.
    null_content: bool,
}

/// The forms in the order in which they are tried.
const FORMS: [Form; 4] = [
    Form { string_arguments: false, null_content: false },
    Form { string_arguments: false, null_content: true },
    Form { string_arguments: true, null_content: false },
    Form { string_arguments: true, null_content: true },
];

impl ChatTemplate {
    /// `messages` with the arguments of their tool calls as objects or strings, and the empty content beside a call as a
    /// string or null, as the template takes them; content that is a list of text parts is put together to one text.
    ///
    /// Arguments that are a string but no JSON object stay as they are, and so does content with parts other than text.
    pub fn prepared(&self, messages: &[Message]) -> Vec<Message> {
        let has_calls = messages.iter().any(|m| m.fields.contains_key("tool_calls"));
        let fits = |form: &Form| self.prints_calls(*form);
        let form = FORMS.into_iter().filter(|_| has_calls).find(fits).unwrap_or(FORMS[0]);
        messages.iter().map(|message| prepare(message, form)).collect()
    }

    /// Whether the arguments of a call in this form come out as JSON.
    fn prints_calls(&self, form: Form) -> bool {
        let mut call = Message::new("assistant", "");
        let function = json!({"name": "probe", "arguments": {"probe_key": 1}});
        let calls = json!([{"id": "probe0000", "type": "function", "function": function}]);
        call.fields.insert("tool_calls".to_owned(), calls);
        let mut result = Message::new("tool", "{}");
        result.fields.insert("name".to_owned(), "probe".into());
        result.fields.insert("tool_call_id".to_owned(), "probe0000".into());
        let messages = [Message::new("user", "x"), prepare(&call, form), result];
        self.render(&messages, None, true, &Map::new()).is_ok_and(|prompt| prompt.contains(PROBE))
    }
}

fn prepare(message: &Message, form: Form) -> Message {
    let mut message = message.clone();
    if let Some(text) = message.content.as_ref().and_then(joined) {
        message.content = Some(text.into());
    }
    let calls = message.fields.get_mut("tool_calls").and_then(Value::as_array_mut);
    let Some(calls) = calls.filter(|calls| !calls.is_empty()) else { return message };
    for call in calls {
        let Some(arguments) = call.pointer_mut("/function/arguments") else { continue };
        match arguments {
            Value::Object(_) if form.string_arguments => *arguments = Value::String(arguments.to_string()),
            Value::String(text) if !form.string_arguments => {
                if let Ok(object @ Value::Object(_)) = serde_json::from_str(text) {
                    *arguments = object;
                }
            }
            _ => {}
        }
    }
    if matches!(&message.content, None | Some(Value::Null)) || message.content == Some("".into()) {
        message.content = Some(if form.null_content { Value::Null } else { "".into() });
    }
    message
}

/// The text of a list that holds text parts alone.
fn joined(content: &Value) -> Option<String> {
    let parts = content.as_array()?;
    let text = |part: &Value| match part.get("type").and_then(Value::as_str) {
        Some("text" | "input_text" | "output_text") => part.get("text")?.as_str().map(str::to_owned),
        _ => None,
    };
    parts.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(arguments: &Value) -> Message {
        let mut message = Message::new("assistant", "");
        let calls = json!([{"id": "a", "function": {"name": "f", "arguments": arguments}}]);
        message.fields.insert("tool_calls".to_owned(), calls);
        message
    }

    fn arguments(template: &str, given: &Value) -> Value {
        let template = ChatTemplate::new(template, "", "").unwrap();
        template.prepared(&[call(given)])[0].fields["tool_calls"][0]["function"]["arguments"].clone()
    }

    #[test]
    fn arguments_take_the_form_that_the_template_prints() {
        let wants_objects = "{% for m in messages %}{% for c in m.tool_calls %}{{ c.function.arguments.items() | list }}{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}";
        let wants_strings = "{% for m in messages %}{% for c in m.tool_calls %}{{ '```' + c.function.arguments + '```' }}{% endfor %}{% endfor %}";
        let (object, text) = (json!({"a": [1]}), json!("{\"a\":[1]}"));
        for given in [&object, &text] {
            assert_eq!(arguments(wants_objects, given), object);
            assert_eq!(arguments(wants_strings, given), text);
        }
        assert_eq!(arguments(wants_objects, &json!("no JSON")), json!("no JSON"));
    }

    #[test]
    fn published_templates_print_arguments_of_either_form_as_json() {
        for source in [
            include_str!("../testdata/templates/qwen2_5.jinja"),
            include_str!("../testdata/templates/qwen3.jinja"),
            include_str!("../testdata/templates/deepseek_v3.jinja"),
        ] {
            let template = ChatTemplate::new(source, "", "").unwrap();
            let mut result = Message::new("tool", "r");
            result.fields.insert("tool_call_id".to_owned(), "a".into());
            for given in [json!({"city": "Rome"}), json!("{\"city\": \"Rome\"}")] {
                let mut with_type = call(&given);
                with_type.fields["tool_calls"][0]["type"] = "function".into();
                let messages = [Message::new("user", "x"), with_type, result.clone()];
                let prompt = template.render(&template.prepared(&messages), None, true, &Map::new()).unwrap();
                let prompt = prompt.replace(' ', "");
                assert!(prompt.contains("{\"city\":\"Rome\"}"), "{prompt}");
            }
        }
    }

    #[test]
    fn text_parts_are_put_together_and_others_left() {
        let template = ChatTemplate::new("", "", "").unwrap();
        let mut message = Message::new("user", "");
        message.content = Some(json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]));
        assert_eq!(template.prepared(&[message.clone()])[0].content, Some(json!("ab")));
        message.content = Some(json!([{"type": "text", "text": "a"}, {"type": "image"}]));
        assert_eq!(template.prepared(&[message.clone()])[0].content, message.content);
    }
}
