//! `versions`: which group-versions the node serves.

use std::io::Write as _;

use api::{Group, GroupVersion};
use clap::{ArgMatches, Command};
use serde_json::{Value, json};

use crate::args;
use crate::failure::Failure;
use crate::progress::with_progress;
use crate::session::Session;
use crate::table::{self, Column, shown};

const COLUMNS: [Column; 3] = [
    Column::text("GROUP", |row| shown(&row["group"])),
    Column::text("SERVED", |row| joined(&row["served"])),
    Column::text("NOT SERVED", |row| joined(&row["not_served"])),
];

fn joined(list: &Value) -> String {
    let words: Vec<&str> = list.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    words.join(" ")
}

/// Returns the command.
pub(crate) fn command() -> Command {
    Command::new("versions")
        .about("Shows which versions of which groups the node serves")
        .after_help("A version is served if its pipe or socket accepts a connection. No RPC is called.")
        .arg(args::output_arg(&["table", "json", "yaml"]).default_value("table"))
}

/// Runs the command.
pub(crate) async fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let served = with_progress("versions", session.client.served_versions()).await?;
    if served.is_empty() {
        // An RPC that fails says how nothing was found.
        session.client.disk().list_disk_ids().await?;
    }
    let is_served = |row: &&GroupVersion| {
        served.iter().any(|found| found.group == row.group.name() && found.version == row.version)
    };
    let row = |group: Group| {
        let (served, not_served): (Vec<_>, Vec<_>) = GroupVersion::of(group).partition(is_served);
        let names = |rows: Vec<&GroupVersion>| rows.iter().map(|row| row.version).collect::<Vec<_>>();
        json!({ "group": group.name(), "served": names(served), "not_served": names(not_served) })
    };
    let rows: Vec<Value> = Group::ALL.into_iter().map(row).collect();
    let text = table::formatted(args::format(matches), &COLUMNS, &rows, table::terminal_width());
    Ok(write!(anstream::stdout(), "{text}")?)
}
