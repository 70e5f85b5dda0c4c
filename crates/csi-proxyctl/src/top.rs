//! `top`: the status page of the daemon, with its calls, locks and pools, and the last failures.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use clap::{Arg, ArgMatches, Command};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use terminal_text::escaped;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::args::{self, Format};
use crate::exit;
use crate::failure::Failure;
use crate::session::Session;
use crate::watch::{interval, interval_arg, watch};

const ADDRESS: &str = "address";
/// The largest status that is read. The daemon limits its calls, and each has a few hundred bytes.
const MAX_STATUS: usize = 16 << 20;

pub(crate) fn command() -> Command {
    Command::new("top")
        .about("Shows the running calls, the locks and their waiters, the thread pools, and the last failures")
        .before_help(
            "Reads the status page of csi-proxy, which exists if csi-proxy runs with -metrics-bind-address, and which \
             answers only clients on the node itself. On a terminal, the output is refreshed until Ctrl-C.",
        )
        .arg(
            Arg::new(ADDRESS)
                .long(ADDRESS)
                .value_name("HOST:PORT")
                .value_parser(|text: &str| address(text))
                .default_value("127.0.0.1:9818")
                .help("Address of the HTTP server"),
        )
        .arg(interval_arg())
        .arg(args::output_arg(&["table", "json", "yaml"]).default_value("table"))
}

/// Checks the form of an address, which is resolved for each connection.
fn address(text: &str) -> Result<String, &'static str> {
    text.rsplit_once(':')
        .filter(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
        .map(|_| text.to_owned())
        .ok_or("expected HOST:PORT")
}

pub(crate) async fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let address = args::required(matches, ADDRESS);
    let limit = args::timeout(matches);
    let text = match args::format(matches) {
        Format::Value(form) => {
            let page = page(address, "/statusz?format=json", limit).await?;
            let status: Value = serde_json::from_str(&page).map_err(|error| is_not_csi_proxy(address, error))?;
            form.text(&status)
        }
        Format::Table { .. } if io::stdout().is_terminal() => {
            return watch("top", interval(matches), async || {
                status(address, limit).await.unwrap_or_else(|failure| failure.report(&session.endpoints))
            })
            .await;
        }
        Format::Table { .. } => status(address, limit).await?,
    };
    Ok(write!(anstream::stdout(), "{text}")?)
}

/// Returns the status as text, without the lines that introduce the page.
async fn status(address: &str, limit: Duration) -> Result<String, Failure> {
    let page = page(address, "/statusz", limit).await?;
    let (head, status) =
        page.split_once("\n\n").ok_or_else(|| is_not_csi_proxy(address, "the status has no heading"))?;
    if !head.lines().any(|line| line.ends_with(" statusz")) {
        return Err(is_not_csi_proxy(address, "the answer is not a status"));
    }
    Ok(status.lines().map(|line| escaped(line) + "\n").collect())
}

fn is_not_csi_proxy(address: &str, why: impl Display) -> Failure {
    Failure::response(format!("{address} is not csi-proxy: {why}"))
}

/// Reads a page.
async fn page(address: &str, path: &str, limit: Duration) -> Result<String, Failure> {
    let unreachable = |error: &dyn Display| Failure::Other {
        code: exit::Code::Unreachable,
        text: format!("cannot read the status from {address}: {error}"),
        hint: Some("start csi-proxy with -metrics-bind-address, and give the same address here with --address".into()),
    };
    let read = async {
        let stream = TcpStream::connect(address).await.map_err(|error| unreachable(&error))?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| unreachable(&error))?;
        // The request gets the error of the connection.
        tokio::spawn(async move { drop(connection.await) });
        let request = Request::get(path).header("Host", address).body(Empty::<Bytes>::new());
        let request = request.map_err(|error| Failure::Usage(format!("{address} is not an address: {error}")))?;
        let response = sender.send_request(request).await.map_err(|error| unreachable(&error))?;
        let code = response.status();
        let body =
            Limited::new(response.into_body(), MAX_STATUS).collect().await.map_err(|error| unreachable(&error))?;
        Ok::<_, Failure>((code, body.to_bytes()))
    };
    let (code, body) = timeout(limit, read).await.map_err(|_| unreachable(&"no answer in time"))??;
    let text = String::from_utf8_lossy(&body).into_owned();
    if code != StatusCode::OK {
        return Err(Failure::response(format!("{address} answers {code}: {}", text.trim())));
    }
    Ok(text)
}
