//! What templates expect of Python: dictionaries whose methods win over their keys, string methods, filters, tests and
//! functions of the reference's environment.
//!
//! Invariant: a method or filter that is not implemented is an error, never a silent nothing.

use std::{
    cell::Cell,
    sync::{Arc, Mutex},
};

use minijinja::{
    Environment, Error, ErrorKind, State,
    value::{Enumerator, Kwargs, Object, ObjectRepr, Rest, Value, ValueKind, from_args},
};

use crate::{
    clock,
    pyvalue::{self, JsonStyle},
};

/// A JSON object as a Python dictionary. JSON schemas have a key "items", which must not hide `.items()`.
#[derive(Debug)]
struct Dict(Vec<(Value, Value)>);

impl Object for Dict {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v.clone())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.iter().map(|(k, _)| k.clone()).collect())
    }

    fn render(self: &Arc<Self>, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = pyvalue::repr(&Value::from_dyn_object(Arc::clone(self))).map_err(|_| std::fmt::Error)?;
        f.write_str(&text)
    }

    fn call_method(self: &Arc<Self>, _: &State<'_, '_>, name: &str, args: &[Value]) -> Result<Value, Error> {
        match name {
            "items" => {
                let () = from_args(args)?;
                Ok(self.0.iter().map(|(k, v)| Value::from(vec![k.clone(), v.clone()])).collect())
            }
            "keys" => {
                let () = from_args(args)?;
                Ok(self.0.iter().map(|(k, _)| k.clone()).collect())
            }
            "values" => {
                let () = from_args(args)?;
                Ok(self.0.iter().map(|(_, v)| v.clone()).collect())
            }
            "get" => {
                let (key, default): (Value, Option<Value>) = from_args(args)?;
                Ok(self.get_value(&key).or(default).unwrap_or(Value::from(())))
            }
            _ => Err(Error::from(ErrorKind::UnknownMethod)),
        }
    }
}

/// A JSON value for a template.
pub(crate) fn from_json(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::from(()),
        serde_json::Value::Array(items) => items.iter().map(from_json).collect(),
        serde_json::Value::Object(map) => Value::from_object(Dict(
            map.iter().map(|(k, v)| (Value::from(k.as_str()), from_json(v))).collect(),
        )),
        scalar => Value::from_serialize(scalar),
    }
}

/// Columns that `indent` and `format` pad to at the most.
const MAX_WIDTH: usize = 1000;

thread_local! {
    /// Bytes printed by the rendering that runs on this thread, those kept in variables included.
    static PRINTED: Cell<usize> = const { Cell::new(0) };
}

/// Puts Python's ways into an environment.
pub(crate) fn install(env: &mut Environment<'_>) {
    env.set_formatter(|out, _, value| {
        let text = pyvalue::str(value)?;
        PRINTED.with(|printed| {
            printed.set(printed.get().saturating_add(text.len()));
            match printed.get() <= pyvalue::MAX_BYTES {
                true => Ok(()),
                false => Err(Error::new(ErrorKind::InvalidOperation, "the template prints without end")),
            }
        })?;
        out.write_str(&text).map_err(|e| Error::new(ErrorKind::WriteFailure, e.to_string()))
    });
    env.set_unknown_method_callback(|state, value, method, args| match value.as_str() {
        Some(text) => string_method(text, method, args).unwrap_or_else(|| {
            minijinja_contrib::pycompat::unknown_method_callback(state, value, method, args)
        }),
        None => minijinja_contrib::pycompat::unknown_method_callback(state, value, method, args),
    });
    env.add_filter("tojson", |value: &Value, indent: Option<Value>, kwargs: Kwargs| {
        tojson(value, indent, &kwargs)
    });
    env.add_filter("string", |value: &Value| pyvalue::str(value));
    // Jinja's own takes any value by its Python text.
    env.add_filter("trim", |value: &Value, characters: Option<String>| {
        let text = pyvalue::str(value)?;
        Ok::<_, Error>(match characters {
            Some(set) => text.trim_matches(|c| set.contains(c)).to_owned(),
            None => text.trim().to_owned(),
        })
    });
    env.add_filter("indent", indent);
    env.add_filter("format", |state: &State<'_, '_>, text: &Value, values: Rest<Value>| {
        check_widths(text.as_str().unwrap_or_default())?;
        minijinja::filters::format(state, text, values)
    });
    // In Python a string is a sequence of characters, and a dictionary has a length and takes subscripts.
    env.add_test("iterable", |v: &Value| {
        matches!(v.kind(), ValueKind::String | ValueKind::Seq | ValueKind::Map | ValueKind::Iterable)
    });
    env.add_test("sequence", |v: &Value| {
        matches!(v.kind(), ValueKind::String | ValueKind::Seq | ValueKind::Map)
    });
}

/// The functions that chat templates are given: dates at `now`, and refusals, which are kept in `refused`.
pub(crate) fn functions(now: i64, refused: Arc<Mutex<Option<String>>>) -> [(&'static str, Value); 2] {
    let strftime = Value::from_function(move |format: &str| {
        clock::strftime(now, format).map_err(|e| Error::new(ErrorKind::InvalidOperation, e))
    });
    let raise = Value::from_function(move |message: &Value| -> Result<Value, Error> {
        let message = pyvalue::str(message)?;
        if let Ok(mut refused) = refused.lock() {
            *refused = Some(message.clone());
        }
        Err(Error::new(ErrorKind::InvalidOperation, message))
    });
    [("strftime_now", strftime), ("raise_exception", raise)]
}

/// Jinja's `indent`, for widths that a text can have.
// By value: a filter's last argument takes the named ones.
#[allow(clippy::needless_pass_by_value)]
fn indent(
    text: &str,
    width: Option<usize>,
    first: Option<bool>,
    blank: Option<bool>,
    kwargs: Kwargs,
) -> Result<String, Error> {
    let width = width.map_or_else(|| kwargs.get::<Option<usize>>("width"), |n| Ok(Some(n)))?.unwrap_or(4);
    let first = first.map_or_else(|| kwargs.get::<Option<bool>>("first"), |x| Ok(Some(x)))?.unwrap_or(false);
    let blank = blank.map_or_else(|| kwargs.get::<Option<bool>>("blank"), |x| Ok(Some(x)))?.unwrap_or(false);
    kwargs.assert_all_used()?;
    if width > MAX_WIDTH {
        return Err(too_wide("indent"));
    }
    let margin = " ".repeat(width);
    let mut out = String::new();
    for (i, line) in text.strip_suffix('\n').unwrap_or(text).split('\n').enumerate() {
        out.push_str(if i > 0 { "\n" } else { "" });
        if if i == 0 { first } else { blank || !line.is_empty() } {
            out.push_str(&margin);
        }
        out.push_str(line);
    }
    Ok(out)
}

/// Refuses `%` fields of absurd widths and precisions.
fn check_widths(format: &str) -> Result<(), Error> {
    for field in format.split('%').skip(1) {
        let end =
            field.find(|c| !matches!(c, '-' | '+' | ' ' | '#' | '.' | '0'..='9')).unwrap_or(field.len());
        let wide = |digits: &str| digits.parse::<usize>().map_or(!digits.is_empty(), |n| n > MAX_WIDTH);
        if field[..end].split(|c: char| !c.is_ascii_digit()).any(wide) {
            return Err(too_wide("format"));
        }
    }
    Ok(())
}

fn too_wide(filter: &str) -> Error {
    let message = format!("{filter}: widths of more than {MAX_WIDTH} are not supported");
    Error::new(ErrorKind::InvalidOperation, message)
}

fn tojson(value: &Value, indent: Option<Value>, kwargs: &Kwargs) -> Result<String, Error> {
    let mut style = JsonStyle::default();
    let indent = match indent {
        Some(indent) => Some(indent),
        None => kwargs.get::<Option<Value>>("indent")?,
    };
    if let Some(indent) = indent.filter(|i| !i.is_none()) {
        style.indent = Some(match indent.as_str() {
            Some(text) => text.to_owned(),
            None => " ".repeat(usize::try_from(indent)?.min(64)),
        });
        style.item_separator = ",".to_owned();
    }
    if let Some(separators) = kwargs.get::<Option<Vec<String>>>("separators")? {
        let [item, key] = <[String; 2]>::try_from(separators)
            .map_err(|_| Error::new(ErrorKind::InvalidOperation, "tojson: separators are a pair"))?;
        (style.item_separator, style.key_separator) = (item, key);
    }
    style.ensure_ascii = kwargs.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false);
    style.sort_keys = kwargs.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    kwargs.assert_all_used()?;
    pyvalue::json(value, &style)
}

/// String methods beyond those of the compatibility layer.
fn string_method(text: &str, method: &str, args: &[Value]) -> Option<Result<Value, Error>> {
    fn one(args: &[Value]) -> Result<String, Error> {
        from_args::<(String,)>(args).map(|(s,)| s)
    }
    let triple = |a: &str, b: &str, c: &str| Value::from(vec![a.to_owned(), b.to_owned(), c.to_owned()]);
    Some(match method {
        "removeprefix" => one(args).map(|p| Value::from(text.strip_prefix(p.as_str()).unwrap_or(text))),
        "removesuffix" => one(args).map(|p| Value::from(text.strip_suffix(p.as_str()).unwrap_or(text))),
        "partition" => one(args).map(|p| match text.split_once(p.as_str()) {
            Some((a, b)) => triple(a, &p, b),
            None => triple(text, "", ""),
        }),
        "rpartition" => one(args).map(|p| match text.rsplit_once(p.as_str()) {
            Some((a, b)) => triple(a, &p, b),
            None => triple("", "", text),
        }),
        "rsplit" => from_args::<(String, Option<usize>)>(args).map(|(separator, limit)| {
            let mut parts: Vec<String> = match limit {
                Some(n) => text.rsplitn(n.saturating_add(1), separator.as_str()).map(str::to_owned).collect(),
                None => text.rsplit(separator.as_str()).map(str::to_owned).collect(),
            };
            parts.reverse();
            Value::from(parts)
        }),
        "format" => from_args::<(Rest<Value>,)>(args).and_then(|(Rest(values),)| format(text, &values)),
        "encode" | "casefold" | "translate" | "maketrans" => {
            Err(Error::new(ErrorKind::UnknownMethod, format!("string has no method named {method} here")))
        }
        _ => return None,
    })
}

/// `str.format` with `{}` and `{0}`; anything finer is an error.
fn format(text: &str, values: &[Value]) -> Result<Value, Error> {
    let fail = |what: &str| Error::new(ErrorKind::InvalidOperation, format!("str.format: {what}"));
    let mut out = String::new();
    let mut next = 0;
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        out.push_str(&rest[..at]);
        let brace = &rest[at..at + 1];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            out.push_str(brace);
            rest = after;
            continue;
        }
        let (field, after) =
            rest.split_once('}').filter(|_| brace == "{").ok_or_else(|| fail("unbalanced brace"))?;
        let index = if field.is_empty() {
            next += 1;
            next - 1
        } else {
            field.parse::<usize>().map_err(|_| fail("only {} and {0} are implemented"))?
        };
        out.push_str(&pyvalue::str(values.get(index).ok_or_else(|| fail("too few arguments"))?)?);
        rest = after;
    }
    out.push_str(rest);
    Ok(Value::from(out))
}
