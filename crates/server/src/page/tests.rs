//! The page's routes: every file that another one names is served, with the headers that keep the page to itself.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{Request, Response, StatusCode};
use tower::ServiceExt;

use super::{FILES, router};

async fn get(path: &str, known: Option<&str>) -> Response<Body> {
    let mut request = Request::get(path);
    if let Some(tag) = known {
        request = request.header(IF_NONE_MATCH, tag);
    }
    let router: Router = router();
    router.oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
}

async fn body(response: Response<Body>) -> Vec<u8> {
    to_bytes(response.into_body(), 1 << 20).await.unwrap().to_vec()
}

#[tokio::test]
async fn every_file_has_the_policy_and_its_type() {
    for (path, kind, bytes) in FILES {
        let response = get(path, None).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        let policy = response.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.starts_with("default-src 'self';") && !policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(response.headers()[CONTENT_TYPE], kind, "{path}");
        assert_eq!(response.headers()[CACHE_CONTROL], "no-cache", "{path}");
        assert_eq!(body(response).await, bytes, "{path}");
    }
}

#[tokio::test]
async fn a_file_that_the_browser_has_is_not_sent_again() {
    let tag = get("/", None).await.headers()[ETAG].to_str().unwrap().to_owned();
    for known in [tag.clone(), format!("\"other\", W/{tag}")] {
        let response = get("/", Some(&known)).await;
        assert_eq!(response.status(), StatusCode::NOT_MODIFIED, "{known}");
        assert_eq!(response.headers()[ETAG].to_str().unwrap(), tag);
        assert!(body(response).await.is_empty());
    }
    assert_eq!(get("/", Some("\"other\"")).await.status(), StatusCode::OK);
}

#[test]
fn every_file_that_another_names_is_served_and_none_is_idle() {
    let texts: Vec<&str> = FILES.iter().map(|(_, _, bytes)| std::str::from_utf8(bytes).unwrap()).collect();
    let mut named = vec!["/".to_owned()];
    for text in texts {
        let quoted = text.split(['"', '\n']).filter(|part| !part.contains(' '));
        let imports =
            quoted.clone().filter_map(|part| part.strip_prefix("./")).filter(|name| name.ends_with(".js"));
        named.extend(imports.map(|name| format!("/page/{name}")));
        named.extend(quoted.filter(|part| part.starts_with("page/")).map(|path| format!("/{path}")));
    }
    let mut served: Vec<&str> = FILES.iter().map(|file| file.0).collect();
    named.sort();
    named.dedup();
    served.sort_unstable();
    assert_eq!(named, served);
}

#[test]
fn the_page_is_small() {
    let bytes: usize = FILES.iter().map(|file| file.2.len()).sum();
    assert!(bytes < 68 << 10, "{bytes} bytes");
}
