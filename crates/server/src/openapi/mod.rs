//! `/openapi.json`: an OpenAPI 3.1 document of all endpoints, built from tables of their fields.
//!
//! Invariant: it lists the router's endpoints and no others, and no field that its endpoint doesn't know; a test holds both.

mod anthropic;
mod ollama;
mod openai;
mod operation;
mod schema;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use axum::Router;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::App;

/// Where the document is; it asks for no key.
pub(crate) const PATH: &str = "/openapi.json";

/// An endpoint of the document.
struct Endpoint {
    method: &'static str,
    /// As OpenAPI writes it, with `{id}` for what varies.
    path: &'static str,
    summary: &'static str,
    /// What is sent.
    request: Option<Request>,
    /// The content type and schema of each form of answer.
    answers: Vec<(&'static str, Value)>,
    /// Whether it can be asked without a key.
    open: bool,
}

/// A request's body.
struct Request {
    /// The schema's name among the components.
    name: &'static str,
    schema: Value,
    example: Value,
}

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

impl Endpoint {
    /// An endpoint that answers JSON.
    fn new(method: &'static str, path: &'static str, summary: &'static str, answer: Value) -> Endpoint {
        Endpoint { method, path, summary, request: None, answers: vec![(JSON, answer)], open: false }
    }

    fn takes(mut self, name: &'static str, schema: Value, example: Value) -> Endpoint {
        self.request = Some(Request { name, schema, example });
        self
    }

    /// Another form of answer, where it is asked for.
    fn or(mut self, kind: &'static str) -> Endpoint {
        self.answers.push((kind, schema::text()));
        self
    }

    fn operation(&self, tag: &str) -> Value {
        let content: Map<String, Value> = self
            .answers
            .iter()
            .map(|(kind, schema)| ((*kind).to_owned(), json!({"schema": schema})))
            .collect();
        let error = json!({"$ref": format!("#/components/schemas/{tag}Error")});
        let mut operation = json!({
            "tags": [tag],
            "summary": self.summary,
            "responses": {
                "200": {"description": "The answer", "content": content},
                "default": {"description": "Why there is none", "content": {JSON: {"schema": error}}},
            },
        });
        if self.path.contains("{id}") {
            let id = json!({"name": "id", "in": "path", "required": true, "schema": schema::filled()});
            operation["parameters"] = json!([id]);
        }
        if let Some(Request { name, example, .. }) = &self.request {
            let reference = json!({"$ref": format!("#/components/schemas/{name}")});
            let content = json!({JSON: {"schema": reference, "example": example}});
            operation["requestBody"] = json!({"required": true, "content": content});
        }
        if self.open {
            operation["security"] = json!([]);
        }
        operation
    }
}

/// All endpoints by the API that they belong to.
fn all() -> [(&'static str, Vec<Endpoint>); 4] {
    [
        ("OpenAI", openai::endpoints()),
        ("Anthropic", anthropic::endpoints()),
        ("Ollama", ollama::endpoints()),
        ("Operation", operation::endpoints()),
    ]
}

/// The document.
fn document() -> Value {
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    schemas.insert("OpenAIError".to_owned(), openai::error());
    schemas.insert("AnthropicError".to_owned(), anthropic::error());
    schemas.insert("OllamaError".to_owned(), ollama::error());
    schemas.insert("OperationError".to_owned(), openai::error());
    for (tag, endpoints) in all() {
        for endpoint in endpoints {
            let path = paths.entry(endpoint.path).or_insert_with(|| json!({}));
            path[endpoint.method] = endpoint.operation(tag);
            if let Some(request) = endpoint.request {
                schemas.insert(request.name.to_owned(), request.schema);
            }
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "TurboSpark",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "A field that can't take effect is refused with a 400 that names it. A field that is null counts as absent.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "header": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
        "security": [{}, {"bearer": []}, {"header": []}],
    })
}

pub(crate) fn router() -> Router<App> {
    static TEXT: LazyLock<Bytes> = LazyLock::new(|| Bytes::from(document().to_string()));
    Router::new()
        .route(PATH, get(|| async { ([(header::CONTENT_TYPE, JSON)], TEXT.clone()).into_response() }))
}
