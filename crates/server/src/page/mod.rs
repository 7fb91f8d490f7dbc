//! The web page at `/`: a chat in plain HTML, CSS and JavaScript modules, held in the binary.
//!
//! Invariant: the page needs nothing but this server. Its content security policy allows no other origin, no inline script, and no text
//! that becomes markup, so that what a model writes stays text.

use std::hash::{DefaultHasher, Hash, Hasher};

use axum::Router;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::IntoResponse;
use axum::routing::get;

/// A file of the page: its path, type and bytes.
type File = (&'static str, &'static str, &'static [u8]);

const POLICY: &str = include_str!("csp.txt");
const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! script {
    ($name:literal) => {
        (concat!("/page/", $name), SCRIPT, include_bytes!($name))
    };
}

const FILES: [File; 16] = [
    ("/", "text/html; charset=utf-8", include_bytes!("index.html")),
    ("/page/style.css", "text/css; charset=utf-8", include_bytes!("style.css")),
    ("/page/icon.svg", "image/svg+xml", include_bytes!("icon.svg")),
    script!("api.js"),
    script!("dom.js"),
    script!("inline.js"),
    script!("main.js"),
    script!("markdown.js"),
    script!("message.js"),
    script!("meters.js"),
    script!("scroll.js"),
    script!("settings.js"),
    script!("sidebar.js"),
    script!("store.js"),
    script!("stream.js"),
    script!("theme.js"),
];

/// Routes for `/` and the files under `/page/` that it loads. None of them asks for a key: they hold no secret, and the page is where the
/// key is typed.
pub fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    FILES.into_iter().fold(Router::new(), |router, (path, kind, bytes)| {
        let tag = tag(bytes);
        router.route(
            path,
            get(move |headers: HeaderMap| std::future::ready(answer(&headers, kind, bytes, &tag))),
        )
    })
}

/// A name for these bytes: another version of a file has another one.
fn tag(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("\"{:016x}\"", hasher.finish())
}

/// The file, or that the browser has it already. It may keep files but has to ask: their names are the same in every version.
fn answer(
    asked: &HeaderMap,
    kind: &'static str,
    bytes: &'static [u8],
    tag: &str,
) -> impl IntoResponse + use<> {
    let headers: [(HeaderName, String); 5] = [
        (ETAG, tag.into()),
        (CACHE_CONTROL, "no-cache".into()),
        (CONTENT_SECURITY_POLICY, POLICY.into()),
        (X_CONTENT_TYPE_OPTIONS, "nosniff".into()),
        (REFERRER_POLICY, "no-referrer".into()),
    ];
    let known = asked
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    let is_known =
        known.map(|each| each.trim().trim_start_matches("W/")).any(|each| each == tag || each == "*");
    if is_known {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    (headers, [(CONTENT_TYPE, kind)], bytes).into_response()
}

#[cfg(test)]
mod tests;
