//! `get`: what the node has, as tables. Nothing is changed.

mod disks;
mod iscsi;
mod mounts;
mod services;
mod volumes;

use std::env;
use std::io::Write as _;
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use csi_proxy_client::Error;
use serde_json::Value;

use crate::args::{self, Format, TIMEOUT};
use crate::failure::Failure;
use crate::output::Form;
use crate::progress::with_progress;
use crate::quantity;
use crate::session::Session;
use crate::table::{self, Column};
use crate::watch::{interval, interval_arg, watch};

const WATCH: &str = "watch";
/// How long a call may take by default: one disk that does not answer must not delay the table of the others for long.
const DEFAULT_LIMIT: Duration = Duration::from_secs(10);

/// The objects that the node has.
#[derive(Default)]
struct Listing {
    /// JSON objects, which are also the rows of the table.
    rows: Vec<Value>,
    /// Why values are missing.
    problems: Vec<Failure>,
}

impl Listing {
    /// Returns the value, or notes the failure of the call for `object` and returns null.
    fn value_or_problem<T: Into<Value>>(&mut self, object: &str, result: Result<T, Error>) -> Value {
        match result {
            Ok(value) => value.into(),
            Err(error) => {
                self.add_problem(object, error);
                Value::Null
            }
        }
    }

    /// Notes the failure of a call for `object`.
    fn add_problem(&mut self, object: &str, error: Error) {
        self.problems.push(Failure::Call { error: Box::new(error), object: Some(object.to_owned()) });
    }
}

/// Returns the command.
pub(crate) fn command() -> Command {
    let kinds = [
        disks::command(),
        volumes::command(),
        mounts::command(),
        iscsi::command(),
        services::command(),
        // No RPC lists SMB mappings: the command fails with a sentence.
        Command::new("smb").hide(true),
    ];
    Command::new("get")
        .about("Shows disks, volumes, mounts, iSCSI portals or services as a table")
        .after_help(
            "By default, get waits 10 seconds for each call, and get iscsi 2 minutes. Objects that do not answer in time \
             are listed below the table.\n\n\
             csi-proxy has no RPC that lists SMB mappings. Run Get-SmbGlobalMapping on the node.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(kinds.map(with_common_flags))
}

fn with_common_flags(command: Command) -> Command {
    command
        .arg(args::table_arg())
        .arg(Arg::new(WATCH).short('w').long(WATCH).action(ArgAction::SetTrue).help("Refresh the output until Ctrl-C"))
        .arg(interval_arg().requires(WATCH))
}

/// Refuses a time right after `--watch`, which would be taken for what to show, such as the number of a disk.
fn check_watch(arguments: impl Iterator<Item = String>) -> Result<(), Failure> {
    let mut arguments = arguments.skip_while(|argument| !["-w", "--watch"].contains(&argument.as_str()));
    match arguments.nth(1) {
        Some(value) if quantity::duration(&value).is_ok() => Err(Failure::Usage(format!(
            "{value} after --watch is ambiguous: for the time between refreshes, write `--watch --interval {value}`; to \
             show only {value}, write it before --watch"
        ))),
        _ => Ok(()),
    }
}

/// Runs the command.
pub(crate) async fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (kind, matches) = matches.subcommand().expect("a subcommand is required");
    let (columns, none_found): (&[Column], _) = match kind {
        "disks" => (&disks::COLUMNS, "no disks found"),
        "volumes" => (&volumes::COLUMNS, "no volumes found"),
        "mounts" => (&mounts::COLUMNS, ""),
        "iscsi" => (iscsi::columns(matches), "no target portals: the initiator knows none"),
        "services" => (&services::COLUMNS, ""),
        _ => {
            return Err(Failure::Usage(
                "csi-proxy has no RPC that lists SMB mappings; run Get-SmbGlobalMapping on the node".into(),
            ));
        }
    };
    check_watch(env::args_os().map(|argument| argument.to_string_lossy().into_owned()))?;
    let format = args::format(matches);
    if matches.get_flag(WATCH) {
        let mut is_first = true;
        let frame = async || {
            let listing = fetch(kind, matches, session).await;
            let listing = listing.unwrap_or_else(|failure| Listing { rows: Vec::new(), problems: vec![failure] });
            let separator = separator(format, std::mem::take(&mut is_first));
            format!("{separator}{}", frame(format, columns, &listing, session))
        };
        return watch(&format!("get {kind}"), interval(matches), frame).await;
    }
    let Listing { rows, problems } = with_progress(&format!("get {kind}"), fetch(kind, matches, session)).await?;
    let is_table = matches!(format, Format::Table { .. });
    if rows.is_empty() && is_table && problems.is_empty() {
        writeln!(anstream::stderr(), "{none_found}")?;
    } else if !rows.is_empty() || !is_table {
        let text = table::formatted(format, columns, &rows, table::terminal_width());
        write!(anstream::stdout(), "{text}")?;
    }
    let mut problems = problems.into_iter();
    let Some(first) = problems.next() else { return Ok(()) };
    for other in problems {
        write!(anstream::stderr(), "{}", other.report(&session.endpoints))?;
    }
    Err(first)
}

/// Returns the text between two outputs of `--watch`. On a terminal, an output replaces the previous one.
fn separator(format: Format, is_first: bool) -> &'static str {
    match format {
        _ if is_first => "",
        Format::Table { .. } if table::terminal_width().is_none() => "\n",
        Format::Value(Form::Yaml) => "---\n",
        _ => "",
    }
}

/// Returns one output of `--watch`.
fn frame(format: Format, columns: &[Column], listing: &Listing, session: &Session) -> String {
    let reports: String = listing.problems.iter().map(|problem| problem.report(&session.endpoints)).collect();
    let rows = || table::formatted(format, columns, &listing.rows, table::terminal_width());
    let is_empty = listing.rows.is_empty() && !reports.is_empty();
    if let Format::Value(_) = format {
        // A program that reads the values must not read the errors.
        let _ = write!(anstream::stderr(), "{reports}");
        return if is_empty { String::new() } else { rows() };
    }
    if is_empty { reports } else { rows() + &reports }
}

async fn fetch(kind: &str, matches: &ArgMatches, session: &Session) -> Result<Listing, Failure> {
    let client =
        limit(kind, matches).map_or_else(|| session.client.clone(), |limit| session.client.with_deadline(limit));
    match kind {
        "disks" => disks::fetch(matches, &client).await,
        "volumes" => volumes::fetch(matches, &client).await,
        "mounts" => mounts::fetch(matches, &client).await,
        "iscsi" => iscsi::fetch(matches, &client).await,
        _ => services::fetch(matches, &client).await,
    }
}

/// Returns how long each call may take, if that is not the time of `--timeout`.
fn limit(kind: &str, matches: &ArgMatches) -> Option<Duration> {
    // The initiator asks portals over the network, and may wait long for them.
    let is_short = kind != "iscsi" && matches.value_source(TIMEOUT) == Some(ValueSource::DefaultValue);
    is_short.then_some(DEFAULT_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit_of(arguments: &str) -> Option<Duration> {
        let program = Command::new("csi-proxyctl").arg(args::timeout_arg()).subcommand(command());
        let matches = program.get_matches_from(arguments.split(' '));
        let (_, get) = matches.subcommand().expect("get");
        let (kind, matches) = get.subcommand().expect("a kind");
        limit(kind, matches)
    }

    #[test]
    fn a_call_for_a_table_has_a_short_limit_unless_the_command_line_gives_one() {
        assert_eq!(limit_of("csi-proxyctl get disks"), Some(Duration::from_secs(10)));
        assert_eq!(limit_of("csi-proxyctl get volumes --watch"), Some(Duration::from_secs(10)));
        assert_eq!(limit_of("csi-proxyctl get disks --timeout 2m"), None);
        assert_eq!(limit_of("csi-proxyctl --timeout 1s get disks"), None);
        assert_eq!(limit_of("csi-proxyctl get iscsi --targets"), None);
    }
}
