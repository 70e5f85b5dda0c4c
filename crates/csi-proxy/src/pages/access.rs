//! Who may read the status pages: clients that connect from the node itself and ask for a loopback
//! name.
//!
//! The address of the metrics is often open to a network, so remote clients are refused. A web site
//! in a browser on the node, or behind `kubectl port-forward`, also connects from the node itself.
//! A browser lets the site read the answer only if the site's own name resolves to a loopback
//! address; the request then has that name in `Host`, and is refused. A reverse proxy on the node
//! may replace `Host`, but most proxies add a header that names the client. nginx adds none by
//! default, but sends HTTP/1.0, which other clients no longer send.

use std::net::{IpAddr, SocketAddr};

use http::header::{FORWARDED, HOST, HeaderName, VIA};
use http::uri::Authority;
use http::{Request, Version};

const NOT_LOCAL: &str = "This page is for clients on the node itself. Open it there, at a loopback \
                         address such as http://127.0.0.1, or through 'kubectl port-forward'.";
const NOT_LOOPBACK_NAME: &str = "This page is answered only at a loopback address or localhost, so \
                                 that no web site can read it through a browser. Open it as \
                                 http://127.0.0.1 or http://localhost.";

const PROXIED: &str = "This page is not answered through a proxy. Open it on the node itself, or \
                       through 'kubectl port-forward'.";

/// The headers that proxies add to a request, besides headers that begin with `X-Forwarded-`.
const OF_PROXIES: [HeaderName; 3] = [FORWARDED, HeaderName::from_static("x-real-ip"), VIA];

/// Returns an error with the reason if the client at `peer` may not read the status pages.
pub(super) fn check<B>(request: &Request<B>, peer: SocketAddr) -> Result<(), &'static str> {
    if !peer.ip().to_canonical().is_loopback() {
        return Err(NOT_LOCAL);
    }
    let is_of_proxies =
        |name: &HeaderName| OF_PROXIES.contains(name) || name.as_str().starts_with("x-forwarded-");
    if request.version() < Version::HTTP_11 || request.headers().keys().any(is_of_proxies) {
        return Err(PROXIED);
    }
    let mut hosts = request.headers().get_all(HOST).iter();
    let named_in_header = match (hosts.next(), hosts.next()) {
        (Some(host), None) => {
            Authority::try_from(host.as_bytes()).is_ok_and(|host| is_loopback(&host))
        }
        _ => false,
    };
    // A request line may name the host as well.
    let named_in_line = request.uri().authority().is_none_or(is_loopback);
    if named_in_header && named_in_line {
        Ok(())
    } else {
        Err(NOT_LOOPBACK_NAME)
    }
}

fn is_loopback(authority: &Authority) -> bool {
    let host = authority.host();
    let address = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    host.eq_ignore_ascii_case("localhost")
        || address
            .parse()
            .is_ok_and(|address: IpAddr| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use http::{Request, Version};

    use super::check;

    fn is_allowed(peer: &str, line: &str, hosts: &[&str]) -> bool {
        let mut request = Request::get(line);
        for host in hosts {
            request = request.header("Host", *host);
        }
        check(
            &request.body(()).unwrap(),
            peer.parse::<SocketAddr>().unwrap(),
        )
        .is_ok()
    }

    #[test]
    fn only_clients_on_the_node_itself_are_answered() {
        for local in [
            "127.0.0.1:5000",
            "127.8.9.1:5000",
            "[::1]:5000",
            "[::ffff:127.0.0.1]:5000",
        ] {
            assert!(is_allowed(local, "/", &["127.0.0.1:8888"]), "{local}");
        }
        for other in [
            "10.0.0.7:5000",
            "[2001:db8::1]:5000",
            "[::ffff:10.0.0.7]:5000",
            "0.0.0.0:5000",
            "[fe80::1]:5000",
        ] {
            assert!(!is_allowed(other, "/", &["127.0.0.1:8888"]), "{other}");
        }
    }

    #[test]
    fn a_request_that_a_proxy_passes_on_is_refused() {
        for header in [
            "Forwarded",
            "X-Forwarded-For",
            "X-Forwarded-Host",
            "X-Forwarded-Proto",
            "X-Real-IP",
            "Via",
        ] {
            let request = Request::get("/")
                .header("Host", "localhost")
                .header(header, "10.0.0.7")
                .body(())
                .unwrap();
            let refused = check(&request, "127.0.0.1:5000".parse().unwrap());
            assert!(
                refused.is_err_and(|reason| reason.contains("proxy")),
                "{header}"
            );
        }
        let of_nginx = Request::get("/")
            .version(Version::HTTP_10)
            .header("Host", "127.0.0.1:8888")
            .body(())
            .unwrap();
        let refused = check(&of_nginx, "127.0.0.1:5000".parse().unwrap());
        assert!(refused.is_err_and(|reason| reason.contains("proxy")));
    }

    #[test]
    fn a_name_that_a_web_site_could_have_is_refused() {
        for loopback in [
            "127.0.0.1",
            "127.0.0.1:8888",
            "[::1]:8888",
            "[::1]",
            "localhost:8888",
            "LocalHost",
        ] {
            assert!(is_allowed("127.0.0.1:5000", "/", &[loopback]), "{loopback}");
        }
        for other in [
            "evil.example:8888",
            "node-7",
            "10.0.0.7:8888",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "evil@evil.example",
            "[::2]",
            "",
            "0.0.0.0:8888",
        ] {
            assert!(!is_allowed("127.0.0.1:5000", "/", &[other]), "{other}");
        }
        assert!(!is_allowed("127.0.0.1:5000", "/", &[]), "no name");
        assert!(
            !is_allowed("127.0.0.1:5000", "/", &["localhost", "evil.example"]),
            "two names"
        );
        assert!(
            !is_allowed("127.0.0.1:5000", "http://evil.example/", &["localhost"]),
            "a name in the request line"
        );
        assert!(is_allowed(
            "127.0.0.1:5000",
            "http://localhost:8888/",
            &["localhost:8888"]
        ));
    }
}
