//! The pages of the HTTP server. `/metrics`, `/healthz` and `/readyz` are for every client;
//! `/statusz` and `/flagz`, which components of Kubernetes have too, and `/`, the status in a
//! browser, only for clients on the node itself.
//!
//! `/metrics` has only counts and durations. The status pages name paths, volumes and servers, so
//! `pages/access.rs` decides who may read them. No page names a user or contains a secret, changes
//! anything, or asks Windows: a device that hangs must not make the status hang. `csi-proxy doctor`
//! shows the disks and volumes.

mod access;
mod html;
mod metrics;
mod text;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use api::GROUP_VERSIONS;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Bytes;
use serde::Serialize;
use server::{Metrics, Status};
use tokio::sync::Mutex;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{self, FormatTime as _};
use transport::address::Location;

use crate::flags::Flags;
use crate::program::VERSION;

/// Prometheus' text format.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";

/// Headers that forbid a browser to store a page, to load or run anything for it, to guess its
/// type, and to show it inside another page.
const BROWSER: [(HeaderName, &str); 5] = [
    (CACHE_CONTROL, "no-store"),
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (REFERRER_POLICY, "no-referrer"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
];

/// The pages of one program.
#[derive(Debug)]
pub struct Pages {
    program: &'static str,
    system: String,
    endpoints: String,
    started: SystemTime,
    /// [`Self::started`] as RFC 3339 has it, in UTC.
    started_text: String,
    flags: Vec<(&'static str, String)>,
    /// The services of the group-versions that are served, such as `v1.Disk`.
    served: Vec<&'static str>,
    metrics: Arc<Metrics>,
    /// Held while a page is written.
    writing: Mutex<()>,
}

/// The status of a program: who it is, and the fields of [`Status`].
#[derive(Debug, Serialize)]
struct ProgramStatus<'a> {
    program: &'static str,
    version: &'static str,
    /// The name of the node, such as "this Windows node".
    system: &'a str,
    /// The pattern of its endpoints, by which `csi-proxyctl top` recognizes the daemon.
    endpoints: &'a str,
    process_id: u32,
    /// When it started, in UTC.
    started: &'a str,
    up_seconds: f64,
    served: &'a [&'static str],
    #[serde(flatten)]
    status: Status,
}

impl Pages {
    /// Creates the pages of the program that was started with `flags` and serves `system` at
    /// `location`.
    pub fn new(flags: &Flags, system: &str, location: &Location, metrics: Arc<Metrics>) -> Self {
        let served = GROUP_VERSIONS
            .iter()
            .filter(|row| flags.api_groups.contains(&row.group))
            .map(|row| row.service);
        let mut started_text = String::new();
        // Writing to a String does not fail.
        let _ = time::SystemTime.format_time(&mut Writer::new(&mut started_text));
        Self {
            program: flags.program,
            system: system.to_owned(),
            endpoints: location.address("csi-proxy-*").to_string(),
            started: SystemTime::now(),
            started_text,
            flags: flags.shown.values.clone(),
            served: served.collect(),
            metrics,
            writing: Mutex::default(),
        }
    }

    /// Answers a request of the client at `peer`. Writes one page at a time, so that a flood of
    /// requests leaves the other threads of the runtime to calls.
    pub(crate) async fn answer<B>(
        &self,
        request: &Request<B>,
        peer: SocketAddr,
    ) -> Response<Full<Bytes>> {
        let is_probe = matches!(request.uri().path(), "/healthz" | "/readyz");
        let _writing = if is_probe {
            None
        } else {
            Some(self.writing.lock().await)
        };
        self.respond(request, peer)
    }

    fn respond<B>(&self, request: &Request<B>, peer: SocketAddr) -> Response<Full<Bytes>> {
        let path = request.uri().path();
        if !matches!(
            path,
            "/metrics" | "/healthz" | "/readyz" | "/" | "/statusz" | "/flagz"
        ) {
            let text = "only /, /statusz, /flagz, /metrics, /healthz and /readyz exist\n";
            return response(StatusCode::NOT_FOUND, PLAIN, text.to_owned());
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut refusal = response(StatusCode::METHOD_NOT_ALLOWED, PLAIN, String::new());
            refusal
                .headers_mut()
                .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refusal;
        }
        match path {
            "/metrics" => return response(StatusCode::OK, METRICS, self.metrics_text()),
            "/healthz" => return response(StatusCode::OK, PLAIN, "ok\n".to_owned()),
            "/readyz" => return self.readiness(),
            _ => {}
        }
        if let Err(refused) = access::check(request, peer) {
            return response(StatusCode::FORBIDDEN, PLAIN, format!("{refused}\n"));
        }
        let (kind, text) = match (path, request.uri().query()) {
            ("/statusz", Some("format=json")) => (JSON, json(&self.status())),
            ("/statusz", _) => (PLAIN, text::statusz(&self.status())),
            ("/flagz", Some("format=json")) => (JSON, json(&self.flags_by_name())),
            ("/flagz", _) => (PLAIN, text::flagz(self.program, &self.flags)),
            (_, query) => (
                HTML,
                html::page(
                    self.program,
                    &text::statusz(&self.status()),
                    query == Some("refresh"),
                ),
            ),
        };
        response(StatusCode::OK, kind, text)
    }

    fn readiness(&self) -> Response<Full<Bytes>> {
        match self.metrics.check_ready() {
            Ok(()) => response(StatusCode::OK, PLAIN, "ok\n".to_owned()),
            Err(reason) => response(
                StatusCode::SERVICE_UNAVAILABLE,
                PLAIN,
                format!("not ready: {reason}\n"),
            ),
        }
    }

    fn metrics_text(&self) -> String {
        let mut text = self.metrics.render();
        metrics::append(&mut text, self.started);
        text
    }

    fn status(&self) -> ProgramStatus<'_> {
        ProgramStatus {
            program: self.program,
            version: VERSION,
            system: &self.system,
            endpoints: &self.endpoints,
            process_id: std::process::id(),
            started: &self.started_text,
            up_seconds: server::seconds(self.started.elapsed().unwrap_or(Duration::ZERO)),
            served: &self.served,
            status: self.metrics.status(),
        }
    }

    fn flags_by_name(&self) -> serde_json::Map<String, serde_json::Value> {
        self.flags
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.as_str().into()))
            .collect()
    }
}

fn json(value: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(value).expect("numbers and text have a form in JSON");
    terminal_text::escaped_json(&text) + "\n"
}

fn response(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = BROWSER.into_iter().chain([(CONTENT_TYPE, kind)]);
    response
        .headers_mut()
        .extend(headers.map(|(name, value)| (name, HeaderValue::from_static(value))));
    response
}

#[cfg(test)]
pub(crate) mod tests;
