//! `versions`: which group-versions the node serves.

use std::io::Write as _;

use api::{Group, GroupVersion};
use clap::{ArgMatches, Command};
use command_line::args;
use command_line::exit;
use command_line::failure::{self, Failure};
use command_line::progress::with_progress;
use command_line::table::{self, Column, shown};
use serde_json::{Value, json};

use crate::session::Session;

const COLUMNS: [Column; 4] = [
    Column::text("GROUP", |row| shown(&row["group"])),
    Column::text("SERVED", |row| joined(&row["served"])),
    Column::text("NOT SERVED", |row| joined(&row["not_served"])),
    Column::text("NO ANSWER", |row| joined(&row["no_answer"])),
];

fn joined(list: &Value) -> String {
    let words: Vec<&str> = list
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    words.join(" ")
}

/// Returns the command.
pub(crate) fn command() -> Command {
    Command::new("versions")
        .about("Shows which versions of which groups the node serves")
        .after_help(
            "A version is served if the daemon answers a connection to its pipe or socket. No RPC \
             is called.",
        )
        .arg(args::output_arg(&["table", "json", "yaml"]).default_value("table"))
}

/// Runs the command.
pub(crate) async fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let served = with_progress("versions", session.client.served_versions()).await?;
    if served.is_empty() {
        // An RPC that fails says how nothing was found.
        session.client.disk().list_disk_ids().await?;
    }
    let of = |group: Group, answers: Option<bool>| -> Vec<&str> {
        let found = |row: &GroupVersion| {
            let found = served
                .iter()
                .find(|found| found.group == group.name() && found.version == row.version);
            found.map(|found| found.answers) == answers
        };
        GroupVersion::of(group)
            .filter(|row| found(row))
            .map(|row| row.version)
            .collect()
    };
    let row = |group: Group| {
        let [served, not_served, no_answer] =
            [Some(true), None, Some(false)].map(|answers| of(group, answers));
        json!({ "group": group.name(), "served": served, "not_served": not_served, "no_answer": no_answer })
    };
    let rows: Vec<Value> = Group::ALL.into_iter().map(row).collect();
    let hangs = served.iter().any(|found| !found.answers);
    let columns = if hangs { &COLUMNS[..] } else { &COLUMNS[..3] };
    let text = table::formatted(
        args::format(matches),
        columns,
        &rows,
        table::terminal_width(),
    );
    write!(anstream::stdout(), "{text}")?;
    if !hangs {
        return Ok(());
    }
    Err(Failure::Other {
        code: exit::Code::Timeout,
        text: "csi-proxy does not answer on some of its pipes".to_owned(),
        hint: Some(format!(
            "if this lasts, restart csi-proxy: {}; running pods keep their volumes",
            failure::restart(&session.endpoints)
        )),
    })
}
