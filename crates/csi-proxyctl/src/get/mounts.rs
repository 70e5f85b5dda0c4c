//! `get mounts`: what is mounted at given paths. No RPC lists all mount points.

use clap::{Arg, ArgMatches, Command};
use command_line::failure::Failure;
use command_line::table::{Column, shown};
use csi_proxy_client::{Client, ErrorKind};
use serde_json::{Value, json};

use super::Listing;

pub(super) const COLUMNS: [Column; 3] = [
    Column::text("PATH", |row| shown(&row["path"])).name(),
    Column::number("DISK", |row| shown(&row["disk"])),
    Column::text("VOLUME", |row| match row["state"].as_str() {
        Some(STALE) => "stale: its volume no longer exists".to_owned(),
        Some(NOT_MOUNTED) => "not a mount point".to_owned(),
        Some(MISSING) => "no such path".to_owned(),
        Some(SHARE) => "a share, which is no volume".to_owned(),
        _ => shown(&row["volume"]),
    }),
];

/// The states of a path.
const MOUNTED: &str = "mounted";
const STALE: &str = "stale";
const NOT_MOUNTED: &str = "not mounted";
const MISSING: &str = "missing";
const SHARE: &str = "share";

/// What the errors of a stale mount point, of a missing path and of a share contain. The status
/// code is that of a path where nothing is mounted, so that drivers mount there again, and the
/// response has no other details. The golden files of `get mounts` hold the texts.
const STALE_TEXT: &str = "the mount point is stale";
const MISSING_TEXT: &str = "there is no file or directory at the path";
const SHARE_TEXT: &str = "the path leads to a share";

pub(super) fn command() -> Command {
    Command::new("mounts")
        .visible_aliases(["mount", "mnt"])
        .about("Volumes mounted at given paths; links are followed")
        .after_help(
            "csi-proxy has no RPC that lists mount points, so the paths must be given. A mount \
             point is stale if its volume no longer exists, such as after its disk was detached.",
        )
        .arg(
            Arg::new("path")
                .value_name("PATH")
                .num_args(1..)
                .required(true)
                .help("Paths on the node"),
        )
}

pub(super) async fn fetch(matches: &ArgMatches, client: &Client) -> Result<Listing, Failure> {
    let volumes = client.volume();
    let mut listing = Listing::default();
    for path in matches.get_many::<String>("path").into_iter().flatten() {
        let (mut volume, mut disk, mut state) = (Value::Null, Value::Null, Value::Null);
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
                let is = |text| error.message().contains(text);
                state = if is(STALE_TEXT) {
                    STALE
                } else if is(MISSING_TEXT) {
                    MISSING
                } else if is(SHARE_TEXT) {
                    SHARE
                } else {
                    NOT_MOUNTED
                }
                .into();
            }
            Err(error) if error.kind() == ErrorKind::Unimplemented => return Err(error.into()),
            Err(error) => listing.add_problem(path, error),
        }
        listing
            .rows
            .push(json!({ "path": path, "state": state, "volume": volume, "disk": disk }));
    }
    Ok(listing)
}
