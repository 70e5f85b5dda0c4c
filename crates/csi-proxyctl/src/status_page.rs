//! The status page of the daemon, which says what runs, and what calls have last seen of the node.

use std::fmt::Display;
use std::fs;
use std::path::Path;
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches};
use command_line::args;
use command_line::endpoints::{Endpoints, given_folder};
use command_line::exit;
use command_line::failure::Failure;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use terminal_text::escaped;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::session::Session;

const ADDRESS: &str = "address";
const FORM: &str = "expected HOST:PORT or :PORT";
/// The largest status that is read. The daemon limits its calls, and each has a few hundred bytes.
const MAX_STATUS: usize = 16 << 20;

/// Returns the flag for the address of the daemon's HTTP server.
pub(crate) fn address_arg() -> Arg {
    Arg::new(ADDRESS)
        .long(ADDRESS)
        .value_name("HOST:PORT")
        .value_parser(|text: &str| address(text))
        .default_value("127.0.0.1:9818")
        .help("Address of the HTTP server")
}

/// Reads an address in any form in which csi-proxy takes or shows it. The address is resolved for
/// each connection.
fn address(text: &str) -> Result<String, &'static str> {
    let authority = text
        .trim_start_matches("http://")
        .split('/')
        .next()
        .unwrap_or_default();
    let (host, port) = authority.rsplit_once(':').ok_or(FORM)?;
    port.parse::<u16>().map_err(|_| FORM)?;
    Ok(format!(
        "{}:{port}",
        if ["", "0.0.0.0", "[::]"].contains(&host) {
            "127.0.0.1"
        } else {
            host
        }
    ))
}

/// The daemon to show.
pub(crate) struct Source<'a> {
    pub(crate) address: &'a str,
    limit: Duration,
    /// The endpoints that the daemon must serve; `None` if the user selects it by its address
    /// alone.
    endpoints: Option<&'a Endpoints>,
}

impl<'a> Source<'a> {
    /// Returns the source that a command line selects, whose answers may take `limit`.
    pub(crate) fn new(matches: &'a ArgMatches, session: &'a Session, limit: Duration) -> Self {
        let is_address_given = matches.value_source(ADDRESS) == Some(ValueSource::CommandLine);
        Self {
            address: args::required(matches, ADDRESS),
            limit,
            endpoints: (given_folder(matches).is_some() || !is_address_given)
                .then_some(&session.endpoints),
        }
    }

    /// Returns the status as JSON.
    pub(crate) async fn status(&self) -> Result<Value, Failure> {
        let page = self.page("/statusz?format=json").await?;
        let status: Value =
            serde_json::from_str(&page).map_err(|error| self.is_not_csi_proxy(error))?;
        self.check(status["endpoints"].as_str())?;
        Ok(status)
    }

    /// Returns the status as text, without the lines that introduce the page.
    pub(crate) async fn text(&self) -> Result<String, Failure> {
        let page = self.page("/statusz").await?;
        let (head, status) = page
            .split_once("\n\n")
            .ok_or_else(|| self.is_not_csi_proxy("the status has no heading"))?;
        if !head.lines().any(|line| line.ends_with(" statusz")) {
            return Err(self.is_not_csi_proxy("the answer is not a status"));
        }
        self.check(
            status
                .lines()
                .find_map(|line| line.strip_prefix("Endpoints: ")),
        )?;
        Ok(status.lines().map(|line| escaped(line) + "\n").collect())
    }

    /// Refuses the status of a daemon that serves other endpoints than the other commands call.
    fn check(&self, shown: Option<&str>) -> Result<(), Failure> {
        let pattern = shown.unwrap_or_default();
        let is_selected = match self.endpoints {
            None | Some(Endpoints::Nowhere) => true,
            Some(Endpoints::Pipes) => pattern == r"\\.\pipe\csi-proxy-*",
            Some(Endpoints::Folder(folder)) => Path::new(pattern)
                .parent()
                .is_some_and(|other| is_same(folder, other)),
        };
        if is_selected {
            return Ok(());
        }
        let what = match shown {
            Some(pattern) => {
                format!("is the address of another csi-proxy, with the endpoints {pattern}")
            }
            None => "does not say which endpoints it serves: it is an older csi-proxy".to_owned(),
        };
        Err(Failure::Other {
            code: exit::Code::Unreachable,
            text: format!("{} {what}", self.address),
            hint: Some(
                "give the address of this csi-proxy with --address, or the folder of the other one \
                 with --endpoint-dir"
                    .into(),
            ),
        })
    }

    fn is_not_csi_proxy(&self, why: impl Display) -> Failure {
        Failure::response(format!("{} is not csi-proxy: {why}", self.address))
    }

    /// Reads a page.
    async fn page(&self, path: &str) -> Result<String, Failure> {
        let address = self.address;
        let unreachable = |error: &dyn Display| Failure::Other {
            code: exit::Code::Unreachable,
            text: format!("cannot read the status from {address}: {error}"),
            hint: Some(
                "start csi-proxy with -metrics-bind-address; if its port is not 9818, give it \
                 here: --address :PORT"
                    .into(),
            ),
        };
        let read = async {
            let stream = TcpStream::connect(address)
                .await
                .map_err(|error| unreachable(&error))?;
            let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
                .await
                .map_err(|error| unreachable(&error))?;
            // The request gets the error of the connection.
            tokio::spawn(async move { drop(connection.await) });
            let request = Request::get(path)
                .header("Host", address)
                .body(Empty::<Bytes>::new());
            let request = request
                .map_err(|error| Failure::Usage(format!("{address} is not an address: {error}")))?;
            let response = sender
                .send_request(request)
                .await
                .map_err(|error| unreachable(&error))?;
            let code = response.status();
            let body = Limited::new(response.into_body(), MAX_STATUS)
                .collect()
                .await
                .map_err(|error| unreachable(&error))?;
            Ok::<_, Failure>((code, body.to_bytes()))
        };
        let (code, body) = timeout(self.limit, read)
            .await
            .map_err(|_| unreachable(&"no answer in time"))??;
        let text = String::from_utf8_lossy(&body).into_owned();
        if code != StatusCode::OK {
            return Err(Failure::response(format!(
                "{address} answers {code}: {}",
                text.trim()
            )));
        }
        Ok(text)
    }
}

/// Returns whether both paths lead to the same folder.
fn is_same(folder: &Path, other: &Path) -> bool {
    folder == other
        || fs::canonicalize(folder)
            .is_ok_and(|folder| fs::canonicalize(other).is_ok_and(|other| folder == other))
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn an_address_has_any_form_in_which_csi_proxy_takes_or_shows_it() {
        for text in [
            ":9818",
            "127.0.0.1:9818",
            "0.0.0.0:9818",
            "[::]:9818",
            "http://127.0.0.1:9818/metrics",
        ] {
            assert_eq!(address(text).as_deref(), Ok("127.0.0.1:9818"), "{text}");
        }
        assert_eq!(address("http://[::1]:9818/").as_deref(), Ok("[::1]:9818"));
        assert!(address("9818").is_err() && address(":port").is_err());
    }
}
