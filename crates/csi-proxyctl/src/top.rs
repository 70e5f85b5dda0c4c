//! `top`: the calls, locks and pools of the daemon, from its status page.

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
use crate::table::{self, Column, shown};
use crate::watch::{interval, interval_arg, watch};

const ADDRESS: &str = "address";
/// The largest status that is read. The daemon limits its calls, and each has a few hundred bytes.
const MAX_STATUS: usize = 16 << 20;

static CALLS: [Column; 5] = [
    Column::number("CALL", |row| shown(&row["call"])),
    Column::number("SECONDS", |row| seconds(&row["seconds"])),
    Column::text("RPC", |row| shown(&row["rpc"]).trim_start_matches('/').to_owned()),
    Column::number("CLIENT", |row| shown(&row["connection"])),
    Column::text("STATE", |row| {
        let state = shown(&row["state"]);
        if row["has_caller"] == false { format!("{state}, caller gone") } else { state }
    }),
];

static LOCKS: [Column; 3] = [
    Column::text("LOCK", |row| shown(&row["key"])),
    Column::text("HELD BY CALL", |row| {
        let held = numbers(&row["held_by"]);
        match row["held_by_others"].as_u64() {
            None | Some(0) => held,
            Some(others) if held.is_empty() => format!("{others} without a call"),
            Some(others) => format!("{held} and {others} without a call"),
        }
    }),
    Column::text("WAITING CALLS", |row| numbers(&row["waiting"])),
];

static POOLS: [Column; 4] = [
    Column::text("POOL", |row| shown(&row["name"])),
    Column::number("THREADS", |row| shown(&row["threads"])),
    Column::number("BUSY", |row| shown(&row["busy"])),
    Column::number("WAITING", |row| shown(&row["waiting"])),
];

fn seconds(value: &Value) -> String {
    value.as_f64().map_or_else(|| "-".into(), |seconds| format!("{seconds:.1}"))
}

fn numbers(list: &Value) -> String {
    let numbers: Vec<String> = rows(list).iter().map(Value::to_string).collect();
    numbers.join(" ")
}

fn rows(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn command() -> Command {
    Command::new("top")
        .about("Shows the running calls, the locks and their waiters, and the thread pools")
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
    let form = match args::format(matches) {
        Format::Value(form) => form,
        Format::Table { .. } if !io::stdout().is_terminal() => {
            return Ok(write!(anstream::stdout(), "{}", screen(&status(address, limit).await?))?);
        }
        Format::Table { .. } => {
            return watch("top", interval(matches), async || match status(address, limit).await {
                Ok(status) => screen(&status),
                Err(failure) => failure.report(&session.endpoints),
            })
            .await;
        }
    };
    Ok(write!(anstream::stdout(), "{}", form.text(&status(address, limit).await?))?)
}

/// Reads the status.
async fn status(address: &str, limit: Duration) -> Result<Value, Failure> {
    let unreachable = |error: &dyn std::fmt::Display| Failure::Other {
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
        let request = Request::get("/statusz?format=json").header("Host", address).body(Empty::<Bytes>::new());
        let request = request.map_err(|error| Failure::Usage(format!("{address} is not an address: {error}")))?;
        let response = sender.send_request(request).await.map_err(|error| unreachable(&error))?;
        let code = response.status();
        let body =
            Limited::new(response.into_body(), MAX_STATUS).collect().await.map_err(|error| unreachable(&error))?;
        Ok::<_, Failure>((code, body.to_bytes()))
    };
    let (code, body) = timeout(limit, read).await.map_err(|_| unreachable(&"no answer in time"))??;
    if code != StatusCode::OK {
        let reason = String::from_utf8_lossy(&body).trim().to_owned();
        return Err(Failure::response(format!("{address} answers {code}: {reason}")));
    }
    serde_json::from_slice(&body).map_err(|error| Failure::response(format!("{address} is not csi-proxy: {error}")))
}

/// Returns the status as text.
fn screen(status: &Value) -> String {
    let counts = &status["counts"];
    let mut text = format!(
        "{} {} on {}, up {}\n{}, {} in flight, {} waiting for a slot\n",
        shown(&status["program"]),
        shown(&status["version"]),
        escaped(&shown(&status["system"])),
        age(status["up_seconds"].as_f64().unwrap_or_default()),
        counted(&counts["connections"], "connection"),
        counted(&counts["in_flight"], "call"),
        shown(&counts["waiting_for_slot"]),
    );
    let calls = rows(&status["calls"]);
    text += "\n";
    if calls.is_empty() {
        text += "No calls are running.\n";
    } else {
        let table = table::text(&CALLS, false, calls, None);
        let mut lines = table.lines();
        text.extend(lines.next().into_iter().flat_map(|heading| [heading, "\n"]));
        // What a call is about can be long, so it has a line of its own.
        for (line, call) in lines.zip(calls) {
            for part in [line, "\n               ", &escaped(&shown(&call["object"])), "\n"] {
                text += part;
            }
        }
    }
    for (columns, list) in [(&LOCKS[..], &status["locks"]), (&POOLS[..], &status["pools"])] {
        if !rows(list).is_empty() {
            text += "\n";
            text += &table::text(columns, false, rows(list), table::terminal_width());
        }
    }
    text
}

/// Returns a number of things with their name, which is in the singular for one.
fn counted(count: &Value, name: &str) -> String {
    let plural = if *count == 1 { "" } else { "s" };
    format!("{} {name}{plural}", shown(count))
}

/// Returns a duration in its two largest units.
fn age(seconds: f64) -> String {
    let seconds = Duration::try_from_secs_f64(seconds).unwrap_or_default().as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The example in the documentation of the server's status.
    fn example() -> Value {
        let source = include_str!("../../server/src/status.rs");
        let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
        let block = lines.skip_while(|line| !line.contains("```json")).skip(1).take_while(|line| !line.contains("```"));
        serde_json::from_str(&block.collect::<String>()).expect("JSON")
    }

    #[test]
    fn a_screen_shows_calls_locks_and_pools() {
        let mut status = example();
        status["program"] = "csi-proxy".into();
        status["version"] = "0.1.0".into();
        status["system"] = "node\u{1b}7".into();
        status["up_seconds"] = json!(90_061.0);
        status["calls"].as_array_mut().unwrap().push(json!({
            "call": null, "rpc": "Rescan", "object": "rescan", "seconds": 0, "connection": null, "has_caller": false,
            "state": "running"
        }));
        let expected = r"csi-proxy 0.1.0 on node\u{1b}7, up 1 d 1 h
4 connections, 2 calls in flight, 0 waiting for a slot

CALL  SECONDS  RPC                     CLIENT  STATE
  17     12.5  v1.Volume/FormatVolume       3  waiting for lock disk 2
               format volume \\?\Volume{...}\
   -      0.0  Rescan                       -  running, caller gone
               rescan

LOCK    HELD BY CALL  WAITING CALLS
disk 2  16            17

POOL   THREADS  BUSY  WAITING
disks       16     1        0
";
        assert_eq!(anstream::adapter::strip_str(&screen(&status)).to_string(), expected);
    }

    #[test]
    fn a_daemon_at_rest_has_no_calls() {
        let screen = screen(&json!({ "program": "csi-proxy", "calls": [], "locks": [], "pools": [] }));
        assert!(screen.ends_with("\n\nNo calls are running.\n"), "{screen}");
    }

    #[test]
    fn one_connection_and_one_call_are_in_the_singular() {
        let screen = screen(&json!({ "counts": { "connections": 1, "in_flight": 1, "waiting_for_slot": 0 } }));
        assert!(screen.contains("\n1 connection, 1 call in flight, 0 waiting for a slot\n"), "{screen}");
    }

    #[test]
    fn an_age_has_two_units() {
        assert_eq!([5.9, 61.0, 3_660.0, 172_800.0, -1.0].map(age), ["5 s", "1 min 1 s", "1 h 1 min", "2 d 0 h", "0 s"]);
    }
}
