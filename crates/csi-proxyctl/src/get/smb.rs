//! `get smb`: the mappings of shares. No RPC lists them.

use clap::{ArgMatches, Command};
use command_line::failure::Failure;
use command_line::table::{Column, shown};

use super::Listing;
use crate::last_seen::{LastSeen, age};
use crate::session::Session;

pub(super) const COLUMNS: [Column; 2] = [
    Column::text("SHARE", |row| shown(&row["remote"])).name(),
    SEEN,
];

/// How long ago a call saw an object.
pub(super) const SEEN: Column = Column::number("LAST SEEN", |row| {
    row["seconds_ago"].as_f64().map_or_else(|| "-".into(), age)
});

pub(super) fn command() -> Command {
    Command::new("smb")
        .about("SMB mappings that csi-proxy has made or used since it started")
        .after_help("Get-SmbGlobalMapping on the node lists all mappings.")
}

pub(super) async fn fetch(matches: &ArgMatches, session: &Session) -> Result<Listing, Failure> {
    let last_seen = LastSeen::read(matches, session).await?;
    Ok(Listing::of_last_seen("mappings", &last_seen))
}
