//! `top`: the status page of the daemon, with its calls, locks and pools, and the last failures.

use std::io::{self, IsTerminal as _, Write as _};

use clap::{ArgMatches, Command};
use command_line::args::{self, Format};
use command_line::failure::Failure;

use crate::session::Session;
use crate::status_page::{Source, address_arg};
use crate::watch::{interval, interval_arg, watch};

pub(crate) fn command() -> Command {
    Command::new("top")
        .about(
            "Shows the running calls, the locks and their waiters, the thread pools, and the last \
             failures",
        )
        .before_help(
            "Reads the status page of csi-proxy, which exists if csi-proxy runs with \
             -metrics-bind-address, and which answers only clients on the node itself. On a \
             terminal, the output is refreshed until you type q.",
        )
        .arg(address_arg())
        .arg(interval_arg())
        .arg(args::output_arg(&["table", "json", "yaml"]).default_value("table"))
}

pub(crate) async fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let source = Source::new(matches, session, args::timeout(matches));
    let text = match args::format(matches) {
        Format::Value(form) => form.text(&source.status().await?),
        _ if io::stdout().is_terminal() => {
            return watch(
                &format!("top of {}", source.address),
                interval(matches),
                async || {
                    source.text().await.map_or_else(
                        |failure| failure.report(&session.endpoints),
                        |text| by_interest(&text),
                    )
                },
            )
            .await;
        }
        _ => source.text().await?,
    };
    Ok(write!(anstream::stdout(), "{text}")?)
}

/// Returns the status with its first section, which says what the daemon is, at the end. A small
/// terminal has no room for the end, and so the first line names the daemon too.
fn by_interest(status: &str) -> String {
    let Some((daemon, rest)) = status.split_once("\n\n") else {
        return status.to_owned();
    };
    let value = |name| {
        daemon
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap_or("unknown")
    };
    let [version, process, node] = ["Binary version: ", "Process: ", "Node: "].map(value);
    format!("csi-proxy {version}, process {process}, node: {node}\n{rest}\n{daemon}\n")
}

#[cfg(test)]
mod tests {
    use super::by_interest;
    use crate::watch::fitted;

    #[test]
    fn a_small_terminal_shows_whose_status_it_is() {
        let daemon = "Started: x\nUp: 1 s\nBinary version: 0.1.0+1a2b3c4d5e6f\nProcess: \
                      4711\nNode: WIN-7\nEndpoints: x\n";
        let status = format!(
            "{daemon}\nConnections: 1\n\nCalls in progress: 40\n{}",
            "  call\n".repeat(40)
        );
        let rows = fitted(&by_interest(&status), 80, 24);
        assert_eq!(
            rows[..2],
            [
                "csi-proxy 0.1.0+1a2b3c4d5e6f, process 4711, node: WIN-7",
                "Connections: 1"
            ]
        );
        assert_eq!(rows.len(), 24);
    }
}
