//! `get mounts`: what is mounted at given paths, or the mounts that calls have last seen. No RPC
//! lists all mount points.

use clap::{Arg, ArgMatches, Command};
use command_line::failure::Failure;
use command_line::table::{Column, shown};
use csi_proxy_client::{Client, ErrorKind};
use serde_json::{Value, json};

use super::Listing;
use super::smb::SEEN;
use crate::last_seen::LastSeen;
use crate::session::Session;

static COLUMNS: [Column; 3] = [
    Column::text("PATH", |row| shown(&row["path"])).name(),
    Column::number("DISK", |row| shown(&row["disk"])),
    Column::text("VOLUME", |row| match row["state"].as_str() {
        Some(STALE) => "stale: its volume no longer exists".to_owned(),
        Some(NOT_MOUNTED) => shown(&row["reason"]),
        Some(MISSING) => "no such path".to_owned(),
        Some(SHARE) => "a share, which is no volume".to_owned(),
        _ => shown(&row["volume"]),
    }),
];

/// The columns of mounts that were last seen.
static LAST_SEEN: [Column; 4] = [
    Column::text("PATH", |row| shown(&row["path"])).name(),
    Column::number("DISK", |row| shown(&row["disk"])),
    Column::text("VOLUME OR SHARE", |row| shown(&row["source"])),
    SEEN,
];

/// The states of a path.
const MOUNTED: &str = "mounted";
const STALE: &str = "stale";
const NOT_MOUNTED: &str = "not mounted";
const MISSING: &str = "missing";
const SHARE: &str = "share";

/// What precedes the reason in the error of a path where nothing is mounted, and how the reasons of
/// a stale mount point, of a missing path and of a share begin. The response has no other details. The golden
/// files of `get mounts` hold the texts.
const BEFORE_REASON: &str = "because it does not exist (";
const STALE_TEXT: &str = "the mount point is stale";
const MISSING_TEXT: &str = "there is no file or directory at the path";
const SHARE_TEXT: &str = "the path leads to a share";

pub(super) fn command() -> Command {
    Command::new("mounts")
        .visible_aliases(["mount", "mnt"])
        .about("Volumes mounted at given paths; without a path, mounts that calls have last seen")
        .after_help(
            "csi-proxy has no RPC that lists mount points. Without a path, the status page tells \
             the mounts and links that calls have made or found since csi-proxy started. A mount \
             point is stale if its volume no longer exists, such as after its disk was detached.",
        )
        .arg(
            Arg::new("path")
                .value_name("PATH")
                .num_args(0..)
                .help("Paths on the node; links are followed"),
        )
}

/// Returns the columns: those of paths that are asked for, or of mounts that were last seen.
pub(super) fn columns(matches: &ArgMatches) -> &'static [Column] {
    if matches.contains_id("path") {
        &COLUMNS
    } else {
        &LAST_SEEN
    }
}

pub(super) async fn fetch(
    matches: &ArgMatches,
    client: &Client,
    session: &Session,
) -> Result<Listing, Failure> {
    if !matches.contains_id("path") {
        let last_seen = LastSeen::read(matches, session).await?;
        return Ok(Listing::of_last_seen("mounts", &last_seen));
    }
    let volumes = client.volume();
    let mut listing = Listing::default();
    for path in matches.get_many::<String>("path").into_iter().flatten() {
        let [mut volume, mut disk, mut state, mut reason] = [const { Value::Null }; 4];
        match volumes.get_volume_id_from_target_path(path).await {
            Ok(id) => {
                let number = volumes
                    .get_disk_number_from_volume_id(&id)
                    .await
                    .map(|disk| disk.0);
                disk = listing.value_or_problem(path, number);
                (volume, state) = (id.as_str().into(), MOUNTED.into());
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let (_, text) = error
                    .message()
                    .split_once(BEFORE_REASON)
                    .unwrap_or_default();
                let text = text.strip_suffix(')').unwrap_or("not a mount point");
                state = if text.starts_with(STALE_TEXT) {
                    STALE
                } else if text.starts_with(MISSING_TEXT) {
                    MISSING
                } else if error.message().contains(SHARE_TEXT) {
                    SHARE
                } else {
                    NOT_MOUNTED
                }
                .into();
                reason = text.into();
            }
            Err(error) if error.kind() == ErrorKind::Unimplemented => return Err(error.into()),
            Err(error) => listing.add_problem(path, error),
        }
        listing
            .rows
            .push(json!({ "path": path, "state": state, "volume": volume, "disk": disk, "reason": reason }));
    }
    Ok(listing)
}
