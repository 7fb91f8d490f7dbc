//! The tools that a request offers: their names, and the types that their schemas give to parameters.
//!
//! Some dialects write arguments as plain text, so that only the schema tells `5` from `"5"`. Invariant: a parameter whose
//! schema admits only strings is a string whatever it looks like.

use serde_json::{Map, Value};

/// How deep references and unions in a schema are followed.
const MAX_DEPTH: usize = 16;

/// A function that the model may call.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// The name by which the model calls it.
    pub name: String,
    /// The JSON schema of its arguments, an object; null where none was given.
    pub parameters: Value,
    /// Whether arguments must follow the schema even where the model is free not to call.
    pub strict: bool,
}

impl Tool {
    /// A tool with a schema for its arguments.
    pub fn new(name: impl Into<String>, parameters: Value) -> Tool {
        Tool { name: name.into(), parameters, strict: false }
    }

    /// Reads a list of definitions as chat templates take them: `{"type": "function", "function": {"name", "parameters"}}`,
    /// or the inner object alone. Entries without a name are left out.
    pub fn from_definitions(definitions: &Value) -> Vec<Tool> {
        let list = definitions.as_array().map(Vec::as_slice).unwrap_or_default();
        list.iter().filter_map(Tool::from_definition).collect()
    }

    fn from_definition(definition: &Value) -> Option<Tool> {
        let function = definition.get("function").unwrap_or(definition);
        let parameters = function.get("parameters").or_else(|| function.get("input_schema"));
        Some(Tool {
            name: function.get("name")?.as_str()?.to_owned(),
            parameters: parameters.cloned().unwrap_or_default(),
            strict: function.get("strict").and_then(Value::as_bool).unwrap_or(false),
        })
    }
}

/// The JSON types that a schema admits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Types {
    pub(crate) string: bool,
    pub(crate) number: bool,
    pub(crate) boolean: bool,
    pub(crate) null: bool,
    pub(crate) array: bool,
    pub(crate) object: bool,
}

impl Types {
    const ANY: Types =
        Types { string: true, number: true, boolean: true, null: true, array: true, object: true };

    /// The types of one parameter; `ANY` where no schema says.
    pub(crate) fn of_parameter(tool: Option<&Tool>, key: &str) -> Types {
        let Some(root) = tool.map(|t| &t.parameters) else { return Types::ANY };
        let Some(schema) = root.get("properties").and_then(|p| p.get(key)) else { return Types::ANY };
        Types::of_schema(root, schema, 0)
    }

    /// Whether nothing but a string can stand here.
    pub(crate) fn only_string(self) -> bool {
        self == Types { string: true, ..Types::default() }
    }

    /// Whether `value` is of an admitted type.
    pub(crate) fn admits(self, value: &Value) -> bool {
        match value {
            Value::Null => self.null,
            Value::Bool(_) => self.boolean,
            Value::Number(_) => self.number,
            Value::String(_) => self.string,
            Value::Array(_) => self.array,
            Value::Object(_) => self.object,
        }
    }

    fn of_schema(root: &Value, schema: &Value, depth: usize) -> Types {
        let Some(schema) = schema.as_object().filter(|_| depth < MAX_DEPTH) else { return Types::ANY };
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let target = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
            return target.map_or(Types::ANY, |t| Types::of_schema(root, t, depth + 1));
        }
        if let Some(names) = schema.get("type") {
            let names = names.as_array().map_or(std::slice::from_ref(names), Vec::as_slice);
            return names.iter().filter_map(Value::as_str).fold(Types::default(), Types::with);
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return values.iter().fold(Types::default(), |types, v| types.with(name_of(v)));
        }
        if let Some(value) = schema.get("const") {
            return Types::default().with(name_of(value));
        }
        Types::of_union(root, schema, depth).unwrap_or(Types::ANY)
    }

    fn of_union(root: &Value, schema: &Map<String, Value>, depth: usize) -> Option<Types> {
        let branches = schema.get("anyOf").or_else(|| schema.get("oneOf"))?.as_array()?;
        let mut all = Types::default();
        for branch in branches {
            let t = Types::of_schema(root, branch, depth + 1);
            all = Types {
                string: all.string | t.string,
                number: all.number | t.number,
                boolean: all.boolean | t.boolean,
                null: all.null | t.null,
                array: all.array | t.array,
                object: all.object | t.object,
            };
        }
        Some(all)
    }

    fn with(mut self, name: &str) -> Types {
        match name {
            "string" => self.string = true,
            "number" | "integer" => self.number = true,
            "boolean" => self.boolean = true,
            "null" => self.null = true,
            "array" => self.array = true,
            "object" => self.object = true,
            _ => {}
        }
        self
    }
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
