//! `get`: what the node has, as tables. Nothing is changed.

pub(crate) mod disks;
mod iscsi;
mod mounts;
mod services;
mod smb;
pub(crate) mod volumes;

use std::env;
use std::io::Write as _;

use clap::{Arg, ArgAction, ArgMatches, Command};
use command_line::args::{self, Format};
use command_line::failure::Failure;
use command_line::output::Form;
use command_line::progress::with_progress;
use command_line::quantity;
use command_line::table::{self, Column};
use csi_proxy_client::{DiskNumber, Error, ErrorKind};
use futures_util::stream::{self, StreamExt as _};
use serde_json::Value;

use crate::last_seen::LastSeen;
use crate::session::Session;
use crate::status_page::address_arg;
use crate::watch::{clock, interval, interval_arg, watch};

const WATCH: &str = "watch";
/// How long a call may take by default: one disk that does not answer must not delay the table of
/// the others for long.
pub(crate) const LIMIT: &str = "10s";
/// How many objects are asked at the same time, so that several that do not answer cost the time of
/// one. The node gives one client more threads than this.
const AT_ONCE: usize = 8;

/// The objects that the node has.
#[derive(Default)]
pub(crate) struct Listing {
    /// JSON objects, which are also the rows of the table.
    pub(crate) rows: Vec<Value>,
    /// Why values are missing.
    pub(crate) problems: Vec<Failure>,
}

impl Listing {
    /// Asks several objects side by side with `ask`, and returns what they have in their order.
    async fn of_each<T>(
        objects: impl IntoIterator<Item = T>,
        ask: impl AsyncFn(T) -> Self,
    ) -> Self {
        let parts: Vec<Self> = stream::iter(objects)
            .map(|object| ask(object))
            .buffered(AT_ONCE)
            .collect()
            .await;
        parts.into_iter().fold(Self::default(), |mut all, part| {
            all.rows.extend(part.rows);
            all.problems.extend(part.problems);
            all
        })
    }

    /// Returns the objects of a kind that were last seen.
    fn of_last_seen(kind: &str, last_seen: &LastSeen) -> Self {
        Self {
            rows: last_seen.of(kind).cloned().collect(),
            problems: Vec::new(),
        }
    }

    /// Returns the value, or notes the failure of the call for `object` and returns null.
    fn value_or_problem<T: Into<Value>>(
        &mut self,
        object: &str,
        result: Result<T, Error>,
    ) -> Value {
        match result {
            Ok(value) => value.into(),
            Err(error) => {
                self.add_problem(object, error);
                Value::Null
            }
        }
    }

    /// Returns an answer. If it was late and `may_be_late`, notes that and returns an empty one.
    fn answer_in_time<T: Default>(
        &mut self,
        object: &str,
        result: Result<T, Error>,
        may_be_late: bool,
    ) -> Result<T, Failure> {
        match result {
            Err(error) if may_be_late && error.kind() == ErrorKind::DeadlineExceeded => {
                self.add_problem(object, error);
                Ok(T::default())
            }
            result => Ok(result?),
        }
    }

    /// Notes the failure of a call for `object`.
    fn add_problem(&mut self, object: &str, error: Error) {
        self.problems.push(Failure::Call {
            error: Box::new(error),
            object: Some(object.to_owned()),
        });
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
        smb::command(),
    ];
    Command::new("get")
        .about("Shows disks, volumes, mounts, SMB mappings, iSCSI portals or services as a table")
        .after_help(
            "By default, get waits 10 seconds for each call, and get iscsi 2 minutes. Objects that \
             do not answer in time are listed below the table.\n\n\
             Mounts, SMB mappings, and the identity of a disk that does not answer come from the \
             status page (see csi-proxyctl top --help). They may have changed since.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(kinds.map(with_common_flags))
}

fn with_common_flags(command: Command) -> Command {
    // The initiator asks portals over the network, and may wait long for them.
    let limit = (command.get_name() != "iscsi").then(|| args::timeout_arg(LIMIT));
    let has_last_seen = !["iscsi", "services"].contains(&command.get_name());
    let address = has_last_seen.then(address_arg);
    args::with_table_of_names(command.args(limit).args(address))
        .arg(
            Arg::new(WATCH)
                .short('w')
                .long(WATCH)
                .action(ArgAction::SetTrue)
                .help("Refresh the output until q or Ctrl-C"),
        )
        .arg(interval_arg().requires(WATCH))
}

/// Refuses a time right after `--watch`, which would be taken for what to show, such as the number
/// of a disk.
fn check_watch(arguments: impl Iterator<Item = String>) -> Result<(), Failure> {
    let mut arguments =
        arguments.skip_while(|argument| !["-w", "--watch"].contains(&argument.as_str()));
    match arguments.nth(1) {
        Some(value) if quantity::duration(&value).is_ok() => Err(Failure::Usage(format!(
            "{value} after --watch is ambiguous: for the time between refreshes, write `--watch \
             --interval {value}`; to show only {value}, write it before --watch"
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
        "mounts" => (
            mounts::columns(matches),
            "no mounts seen since csi-proxy started",
        ),
        "iscsi" => (
            iscsi::columns(matches),
            "no target portals: the initiator knows none",
        ),
        "smb" => (
            &smb::COLUMNS,
            "no SMB mappings seen since csi-proxy started",
        ),
        _ => (&services::COLUMNS, ""),
    };
    check_watch(env::args_os().map(|argument| argument.to_string_lossy().into_owned()))?;
    let format = args::format(matches);
    if matches.get_flag(WATCH) {
        let mut is_first = true;
        let frame = async || {
            let listing = fetch(kind, matches, session).await;
            let listing = listing.unwrap_or_else(|failure| Listing {
                rows: Vec::new(),
                problems: vec![failure],
            });
            let separator = separator(format, std::mem::take(&mut is_first));
            let columns = known(columns, &listing.rows);
            format!("{separator}{}", frame(format, columns, &listing, session))
        };
        return watch(&format!("get {kind}"), interval(matches), frame).await;
    }
    let Listing { rows, problems } =
        with_progress(&format!("get {kind}"), fetch(kind, matches, session)).await?;
    let is_table = matches!(format, Format::Table { .. });
    if rows.is_empty() && is_table && problems.is_empty() {
        writeln!(anstream::stderr(), "{none_found}")?;
    } else if !rows.is_empty() || !is_table {
        let columns = known(columns, &rows);
        let text = table::formatted(format, columns, &rows, table::terminal_width());
        write!(anstream::stdout(), "{text}")?;
    }
    all_reported(problems, session)
}

/// Returns the columns without that of mounts, which is the last one, if no row has any.
fn known<'a>(columns: &'a [Column], rows: &[Value]) -> &'a [Column] {
    let is_unknown = |row: &Value| row["mounted_at"].as_array().is_some_and(Vec::is_empty);
    let without = columns.len() - usize::from(rows.iter().all(is_unknown) && !rows.is_empty());
    &columns[..without]
}

/// Returns the first failure, after printing the others.
pub(crate) fn all_reported(problems: Vec<Failure>, session: &Session) -> Result<(), Failure> {
    let mut problems = problems.into_iter();
    let Some(first) = problems.next() else {
        return Ok(());
    };
    for other in problems {
        write!(anstream::stderr(), "{}", other.report(&session.endpoints))?;
    }
    Err(first)
}

/// Returns the text before an output of `--watch`. On a terminal, an output replaces the previous
/// one.
fn separator(format: Format, is_first: bool) -> String {
    match format {
        Format::Table { .. } if table::terminal_width().is_none() => {
            format!("{}{}\n", if is_first { "" } else { "\n" }, clock())
        }
        Format::Value(Form::Yaml) if !is_first => "---\n".to_owned(),
        _ => String::new(),
    }
}

/// Returns one output of `--watch`.
fn frame(format: Format, columns: &[Column], listing: &Listing, session: &Session) -> String {
    let reports: String = listing
        .problems
        .iter()
        .map(|problem| problem.report(&session.endpoints))
        .collect();
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
    let client = session.client.with_deadline(args::timeout(matches));
    let numbers = || {
        matches
            .get_many("disk")
            .map(|numbers| numbers.copied().map(DiskNumber).collect())
    };
    // Without it, only ages and mounts are missing.
    let last_seen = async || LastSeen::read(matches, session).await.unwrap_or_default();
    match kind {
        "disks" => disks::fetch(numbers(), &client, &last_seen().await).await,
        "volumes" => volumes::fetch(numbers(), &client, &last_seen().await).await,
        "mounts" => mounts::fetch(matches, &client, session).await,
        "smb" => smb::fetch(matches, session).await,
        "iscsi" => iscsi::fetch(matches, &client).await,
        _ => services::fetch(matches, &client).await,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn limit_of(arguments: &str) -> Duration {
        let program = Command::new("csi-proxyctl")
            .arg(args::timeout_arg("2m").global(true))
            .subcommand(command());
        let matches = program.get_matches_from(arguments.split(' '));
        let (_, get) = matches.subcommand().expect("get");
        let (_, matches) = get.subcommand().expect("a kind");
        args::timeout(matches)
    }

    #[test]
    fn a_call_for_a_table_has_a_short_limit_unless_the_command_line_gives_one() {
        for (arguments, seconds) in [
            ("csi-proxyctl get disks", 10),
            ("csi-proxyctl get volumes --watch", 10),
            ("csi-proxyctl get disks --timeout 2m", 120),
            ("csi-proxyctl --timeout 1s get disks", 1),
            ("csi-proxyctl get --timeout 2m disks", 120),
            ("csi-proxyctl get iscsi --targets", 120),
        ] {
            assert_eq!(
                limit_of(arguments),
                Duration::from_secs(seconds),
                "{arguments}"
            );
        }
    }
}
