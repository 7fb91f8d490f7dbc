//! `inspect`: what a file holds, also where its model can't be run.

use std::fmt::Write as _;
use std::io::{Write, stdout};

use anyhow::Result;
use serde_json::{Map, Value as Json, json};
use turbospark_format::{Array, Gguf, TensorInfo, Value};
use turbospark_model::{ModelError, ModelSpec};

use crate::args::InspectArgs;
use crate::describe;
use crate::models;
use crate::output::{self, bytes, count};

/// Elements of a metadata array that are shown to people.
const SHOWN: usize = 4;
/// Characters of a metadata string that are shown to people.
const SHOWN_TEXT: usize = 100;

pub(crate) fn inspect(args: &InspectArgs) -> Result<()> {
    let gguf = Gguf::open(models::find(&args.model)?)?;
    let spec = ModelSpec::from_gguf(&gguf);
    if args.json {
        output::json(&as_json(&gguf, &spec))?;
    } else {
        stdout().lock().write_all(as_text(&gguf, &spec, args.tensors)?.as_bytes())?;
    }
    Ok(())
}

/// Bytes of the tensors by block type, largest first.
fn bytes_by_type(gguf: &Gguf) -> Vec<(&'static str, u64, usize)> {
    let mut sums: Vec<(&'static str, u64, usize)> = Vec::new();
    for tensor in gguf.tensors() {
        let name = tensor.block_type.name();
        match sums.iter_mut().find(|(n, ..)| *n == name) {
            Some((_, sum, tensors)) => (*sum, *tensors) = (*sum + tensor.bytes, *tensors + 1),
            None => sums.push((name, tensor.bytes, 1)),
        }
    }
    sums.sort_by_key(|&(name, sum, _)| (std::cmp::Reverse(sum), name));
    sums
}

fn parameters(gguf: &Gguf) -> usize {
    gguf.tensors().iter().map(TensorInfo::elements).sum()
}

fn tensor_bytes(gguf: &Gguf) -> u64 {
    gguf.tensors().iter().map(|t| t.bytes).sum()
}

fn as_text(gguf: &Gguf, spec: &Result<ModelSpec, ModelError>, tensors: bool) -> Result<String> {
    let mut out = String::new();
    for path in gguf.paths() {
        writeln!(out, "{}", path.display())?;
    }
    let (n, parameters) = (gguf.tensors().len(), parameters(gguf));
    writeln!(out, "{n} tensors, {} parameters, {}", count(parameters), bytes(tensor_bytes(gguf)))?;
    writeln!(out, "\nModel")?;
    match spec {
        Ok(spec) => describe::describe(spec, &mut out)?,
        Err(error) => writeln!(out, "  can't be run: {error}")?,
    }
    writeln!(out, "\nSizes by block type")?;
    for (name, sum, tensors) in bytes_by_type(gguf) {
        writeln!(out, "  {name:14} {:>10}  {tensors} tensors", bytes(sum))?;
    }
    if let Ok(spec) = spec {
        writeln!(out, "\nSizes by role")?;
        for (role, sum) in spec.bytes_by_role(gguf) {
            writeln!(out, "  {:14} {:>10}", role.name(), bytes(sum))?;
        }
    }
    writeln!(out, "\nMetadata")?;
    for (key, value) in gguf.metadata().iter() {
        writeln!(out, "  {} = {}", printable(key), abbreviated(value))?;
    }
    if tensors {
        writeln!(out, "\nTensors (shape with the innermost size first)")?;
        for (i, t) in gguf.tensors().iter().enumerate() {
            let role = spec.as_ref().ok().and_then(|s| s.roles.get(i)).map_or("", |r| r.name());
            let (name, shape, size) = (printable(&t.name), format!("{:?}", t.shape), bytes(t.bytes));
            writeln!(out, "  {name:32} {:7} {shape:20} {size:>10}  {role}", t.block_type.name())?;
        }
    }
    Ok(out)
}

fn as_json(gguf: &Gguf, spec: &Result<ModelSpec, ModelError>) -> Json {
    let metadata: Map<_, _> = gguf.metadata().iter().map(|(k, v)| (k.to_owned(), value_json(v))).collect();
    let tensors: Vec<Json> = gguf
        .tensors()
        .iter()
        .enumerate()
        .map(|(i, t)| {
            json!({
                "name": t.name,
                "shape": t.shape,
                "type": t.block_type.name(),
                "bytes": t.bytes,
                "shard": t.shard,
                "offset": t.offset,
                "role": spec.as_ref().ok().and_then(|s| s.roles.get(i)).map(|r| r.name()),
            })
        })
        .collect();
    let by_type: Map<_, _> =
        bytes_by_type(gguf).into_iter().map(|(n, sum, _)| (n.to_owned(), sum.into())).collect();
    let model = match spec {
        Ok(spec) => describe::json(spec, gguf),
        Err(error) => json!({ "error": error.to_string() }),
    };
    json!({
        "files": gguf.paths(),
        "parameters": parameters(gguf),
        "tensor_bytes": tensor_bytes(gguf),
        "bytes_by_type": by_type,
        "model": model,
        "metadata": metadata,
        "tensors": tensors,
    })
}

/// The text with control characters escaped: a file can't steer the terminal.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() })
        .collect()
}

fn abbreviated(value: &Value) -> String {
    match value {
        Value::String(text) => {
            let shown: String = text.chars().take(SHOWN_TEXT).collect();
            let rest =
                if shown.len() < text.len() { format!("… ({} bytes)", text.len()) } else { String::new() };
            printable(&shown) + &rest
        }
        Value::Array(array) => {
            let Json::Array(first) = array_json(array, SHOWN) else { return String::new() };
            let shown: Vec<String> = first.iter().map(Json::to_string).collect();
            let dots = if array.len() > SHOWN { ", …" } else { "" };
            format!("{} × {} [{}{dots}]", count(array.len()), array.element_name(), shown.join(", "))
        }
        other => value_json(other).to_string(),
    }
}

fn value_json(value: &Value) -> Json {
    match value {
        Value::U8(x) => json!(x),
        Value::I8(x) => json!(x),
        Value::U16(x) => json!(x),
        Value::I16(x) => json!(x),
        Value::U32(x) => json!(x),
        Value::I32(x) => json!(x),
        Value::U64(x) => json!(x),
        Value::I64(x) => json!(x),
        Value::F32(x) => shortest(*x),
        Value::F64(x) => json!(x),
        Value::Bool(x) => json!(x),
        Value::String(x) => json!(x),
        Value::Array(x) => array_json(x, usize::MAX),
    }
}

/// The shortest decimal that reads back as `x`: not the digits of its f64 neighbour.
fn shortest(x: f32) -> Json {
    x.to_string().parse::<f64>().map_or(Json::Null, |x| json!(x))
}

/// The first `limit` elements.
fn array_json(array: &Array, limit: usize) -> Json {
    fn list<T: serde::Serialize>(x: &[T], limit: usize) -> Json {
        json!(x[..x.len().min(limit)])
    }
    match array {
        Array::U8(x) => list(x, limit),
        Array::I8(x) => list(x, limit),
        Array::U16(x) => list(x, limit),
        Array::I16(x) => list(x, limit),
        Array::U32(x) => list(x, limit),
        Array::I32(x) => list(x, limit),
        Array::U64(x) => list(x, limit),
        Array::I64(x) => list(x, limit),
        Array::F32(x) => x.iter().take(limit).map(|&x| shortest(x)).collect(),
        Array::F64(x) => list(x, limit),
        Array::Bool(x) => list(x, limit),
        Array::String(x) => list(x, limit),
        Array::Array(x) => x.iter().take(limit).map(|a| array_json(a, limit)).collect(),
    }
}
