//! The document against the router: the same endpoints, and fields that they know.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::{all, document};
use crate::app::{App, Client};
use crate::models::{ModelSource, Models};
use crate::server::api;

/// The endpoints over a tiny model.
fn router() -> Router {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/oracle/llama-a-f32.gguf");
    let source = ModelSource { name: "m".to_owned(), path };
    let models = Models::new(&[source], Default::default(), Default::default(), None).unwrap();
    api().with_state(App::new(models))
}

async fn send(router: &Router, method: &str, path: &str, body: &Value) -> (StatusCode, String) {
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    let request = Request::builder()
        .method(method.to_ascii_uppercase().as_str())
        .uri(path)
        .extension(Client::default())
        .body(body)
        .unwrap();
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status();
    let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (status, String::from_utf8_lossy(&body).into_owned())
}

#[tokio::test]
async fn the_document_lists_the_routers_endpoints_and_no_others() {
    let mut documented: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for endpoint in all().into_iter().flat_map(|(_, endpoints)| endpoints) {
        assert!(documented.entry(endpoint.path.to_owned()).or_default().insert(endpoint.method));
    }
    // A router tells its paths in its debug form alone, those of its fallback among them.
    let shown = format!("{:?}", api());
    let paths = shown.split('"').filter(|s| s.starts_with('/') && *s != "/" && !s.contains("__private"));
    let routed: BTreeSet<String> = paths.map(|s| s.replace("{*id}", "{id}")).collect();
    assert_eq!(routed, documented.keys().cloned().collect());
    let router = router();
    for (path, methods) in documented {
        for method in ["get", "post", "put", "patch", "delete"] {
            let (status, body) = send(&router, method, &path.replace("{id}", "x"), &Value::Null).await;
            let there = status != StatusCode::METHOD_NOT_ALLOWED;
            assert_eq!(there, methods.contains(method), "{method} {path}: {status} {body}");
        }
    }
}

/// Values that the schema allows: one at least, and one for each field and kind in it.
fn samples(schema: &Value) -> Vec<Value> {
    if let Some(kinds) = schema["anyOf"].as_array() {
        return kinds.iter().flat_map(samples).collect();
    }
    if let Some(value) = schema.get("const").or(schema.get("example")).or(schema.get("minimum")) {
        return vec![value.clone()];
    }
    if let Some(words) = schema["enum"].as_array() {
        return vec![words[0].clone()];
    }
    match schema["type"].as_str() {
        Some("string") => vec!["a".into()],
        Some("boolean") => vec![true.into()],
        Some("array") => samples(&schema["items"]).into_iter().map(|item| json!([item])).collect(),
        Some("object") => objects(schema),
        _ => panic!("a schema without a kind: {schema}"),
    }
}

fn objects(schema: &Value) -> Vec<Value> {
    let Some(fields) = schema["properties"].as_object() else { return vec![json!({})] };
    let mut least = json!({});
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        least[name] = samples(&fields[name])[0].clone();
    }
    let with = |(name, schema): (&String, &Value)| {
        let (name, least) = (name.clone(), least.clone());
        samples(schema).into_iter().map(move |value| {
            let mut object = least.clone();
            object[&name] = value;
            object
        })
    };
    let each: Vec<Value> = fields.iter().flat_map(with).collect();
    if each.is_empty() { vec![least] } else { each }
}

#[tokio::test]
async fn each_documented_field_is_known_to_its_endpoint() {
    let router = router();
    for endpoint in all().into_iter().flat_map(|(_, endpoints)| endpoints) {
        let Some(request) = endpoint.request else { continue };
        let mut odd = request.example.clone();
        odd["no_such_field"] = 1.into();
        let (status, body) = send(&router, endpoint.method, endpoint.path, &odd).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{}: {body}", endpoint.path);
        assert!(body.contains("no_such_field: this field is not supported"), "{}: {body}", endpoint.path);
        for (name, schema) in request.schema["properties"].as_object().unwrap() {
            for value in samples(schema) {
                let mut body = request.example.clone();
                body[name] = value;
                let (status, answer) = send(&router, endpoint.method, endpoint.path, &body).await;
                let what = format!("{} {body}: {status} {answer}", endpoint.path);
                assert!(!status.is_server_error(), "{what}");
                assert!(!answer.contains("this field is not supported"), "{what}");
            }
        }
    }
}

#[test]
fn every_reference_leads_somewhere() {
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str));
                map.values().for_each(|v| references(v, found));
            }
            Value::Array(list) => list.iter().for_each(|v| references(v, found)),
            _ => {}
        }
    }
    let document = document();
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 20);
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}
