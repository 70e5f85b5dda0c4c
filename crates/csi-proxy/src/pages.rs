//! What the HTTP server answers: `/metrics`, `/healthz` and `/readyz` to everybody, and to clients on the node itself `/statusz` and
//! `/flagz`, as components of Kubernetes have them, and a page at `/` for people.
//!
//! `/metrics` has only counts and durations. The others name paths, volumes and servers, so whether they are answered is
//! decided in `pages/access.rs`. None of them names a user or has a secret, none changes anything, and none asks Windows: a
//! device that hangs must not make the status hang too. `csi-proxy doctor` shows the disks and volumes.

mod access;
mod html;
mod metrics;
mod text;
mod utc;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use api::{GROUP_VERSIONS, GroupVersion};
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Bytes;
use serde::Serialize;
use server::{Metrics, Status};

use crate::flags::Flags;

/// Prometheus' text format.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";

/// Headers that keep a browser from storing a page, loading or running anything for it, taking it for another type, and
/// showing it inside another page.
const BROWSER: [(HeaderName, &str); 5] = [
    (CACHE_CONTROL, "no-store"),
    (CONTENT_SECURITY_POLICY, "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"),
    (REFERRER_POLICY, "no-referrer"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
];

/// The pages of one program.
#[derive(Debug)]
pub struct Pages {
    program: &'static str,
    system: String,
    started: SystemTime,
    flags: Vec<(&'static str, String)>,
    served: Vec<&'static GroupVersion>,
    metrics: Arc<Metrics>,
}

/// The status of a program: who it is, and the fields of [`Status`].
#[derive(Debug, Serialize)]
struct ProgramStatus<'a> {
    program: &'static str,
    version: &'static str,
    /// The name of the node's system, or of the simulated node.
    system: &'a str,
    process_id: u32,
    /// When it started, in UTC.
    started: String,
    up_seconds: f64,
    /// The services of the group-versions that are served, such as `v1.Disk`.
    served: Vec<&'static str>,
    #[serde(flatten)]
    status: Status,
}

impl Pages {
    /// Creates the pages of the program that was started with `flags` and serves `system`.
    pub fn new(flags: &Flags, system: &str, metrics: Arc<Metrics>) -> Self {
        let served = GROUP_VERSIONS.iter().filter(|row| flags.api_groups.contains(&row.group)).collect();
        let (program, flags) = (flags.program, flags.shown.values.clone());
        Self { program, system: system.to_owned(), started: SystemTime::now(), flags, served, metrics }
    }

    /// Answers a request of the client at `peer`.
    pub(crate) fn respond<B>(&self, request: &Request<B>, peer: SocketAddr) -> Response<Full<Bytes>> {
        let path = request.uri().path();
        if !matches!(path, "/metrics" | "/healthz" | "/readyz" | "/" | "/statusz" | "/flagz") {
            let text = "only /, /statusz, /flagz, /metrics, /healthz and /readyz exist\n";
            return response(StatusCode::NOT_FOUND, PLAIN, text.to_owned());
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut refusal = response(StatusCode::METHOD_NOT_ALLOWED, PLAIN, String::new());
            refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
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
            (_, query) => (HTML, html::page(&self.status(), &self.served, query == Some("refresh"))),
        };
        response(StatusCode::OK, kind, text)
    }

    fn readiness(&self) -> Response<Full<Bytes>> {
        match self.metrics.check_ready() {
            Ok(()) => response(StatusCode::OK, PLAIN, "ok\n".to_owned()),
            Err(reason) => response(StatusCode::SERVICE_UNAVAILABLE, PLAIN, format!("not ready: {reason}\n")),
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
            version: env!("CARGO_PKG_VERSION"),
            system: &self.system,
            process_id: std::process::id(),
            started: utc::format(self.started),
            up_seconds: self.started.elapsed().unwrap_or(Duration::ZERO).as_secs_f64(),
            served: self.served.iter().map(|row| row.service).collect(),
            status: self.metrics.status(),
        }
    }

    fn flags_by_name(&self) -> serde_json::Map<String, serde_json::Value> {
        self.flags.iter().map(|(name, value)| ((*name).to_owned(), value.as_str().into())).collect()
    }
}

fn json(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("numbers and text have a form in JSON");
    text.push('\n');
    text
}

fn response(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = BROWSER.into_iter().chain([(CONTENT_TYPE, kind)]);
    response.headers_mut().extend(headers.map(|(name, value)| (name, HeaderValue::from_static(value))));
    response
}

#[cfg(test)]
pub(crate) mod tests;
