//! Keeps other sites' pages from a server that asks for no key because it listens on this machine alone.
//!
//! A browser sends a page's requests to this machine too, and a site can let its own name lead here (DNS rebinding), after which its
//! pages count as the server's own. Such a request tells itself by its `Host`, one across sites by its `Origin`.
//!
//! Invariant: what passes names this machine in `Host`, and comes from no page, from the server's own, or from one that `--cors` lets in.

use std::net::IpAddr;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Uri, header};

use crate::Refusal;

/// Lets pass what can't be another site's doing.
///
/// # Errors
/// [`Refusal::Forbidden`].
pub(crate) fn check(uri: &Uri, headers: &HeaderMap, cors: Option<&HeaderValue>) -> Result<(), Refusal> {
    let hosts = headers.get_all(header::HOST).iter().map(HeaderValue::as_bytes);
    // No browser leaves it out.
    for host in hosts.chain(uri.authority().map(|a| a.as_str().as_bytes())) {
        if !Authority::try_from(host).is_ok_and(|authority| is_this_machine(authority.host())) {
            return Err(Refusal::Forbidden(format!(
                "this server asks for no key and answers on this machine alone, as localhost, 127.0.0.1 or [::1], but the \
                 request is for {:?}: to use that name set an API key, or allow use without one by --no-key",
                shown(host)
            )));
        }
    }
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let own = headers.get(header::HOST).is_some_and(|host| {
        let after =
            origin.as_bytes().splitn(2, |b| *b == b'/').nth(1).and_then(|rest| rest.strip_prefix(b"/"));
        after.is_some_and(|authority| authority.eq_ignore_ascii_case(host.as_bytes()))
    });
    if own || cors.is_some_and(|allowed| allowed == "*" || allowed == origin) {
        return Ok(());
    }
    Err(Refusal::Forbidden(format!(
        "pages of {0:?} may not use this server: start it with --cors {0} to let them",
        shown(origin.as_bytes())
    )))
}

fn is_this_machine(host: &str) -> bool {
    let address = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost") || address.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(host: &str, origin: Option<&str>, cors: Option<&'static str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        check(&Uri::from_static("/v1/models"), &headers, cors.map(HeaderValue::from_static).as_ref()).is_ok()
    }

    #[test]
    fn only_names_of_this_machine_pass() {
        for host in ["localhost", "LocalHost:8080", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:8080"] {
            assert!(passes(host, None, None), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example:8080",
            "127.0.0.1.nip.io",
            "10.0.0.1",
            "",
            "a b",
            "[::2]",
        ] {
            assert!(!passes(host, None, Some("*")), "{host}");
        }
    }

    #[test]
    fn the_target_may_not_name_another_host_either() {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static("localhost"));
        let check = |uri| check(&Uri::from_static(uri), &headers, None).is_ok();
        assert!(check("http://localhost:8080/"));
        assert!(!check("http://evil.example/"));
    }

    #[test]
    fn pages_of_other_origins_need_to_be_let_in() {
        let host = "localhost:8080";
        assert!(passes(host, Some("http://localhost:8080"), None));
        for origin in ["http://localhost:3000", "https://evil.example", "null", "", "http://localhost:8080/x"]
        {
            assert!(!passes(host, Some(origin), None), "{origin}");
            assert!(passes(host, Some(origin), Some("*")), "{origin}");
        }
        let allowed = Some("https://good.example");
        assert!(passes(host, Some("https://good.example"), allowed));
        assert!(!passes(host, Some("https://evil.example"), allowed));
    }
}
