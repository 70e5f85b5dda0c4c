//! `get volumes`.

use std::collections::BTreeSet;

use clap::{Arg, ArgAction, Command};
use command_line::failure::Failure;
use command_line::quantity::{self, short_size};
use command_line::table::{Column, shown};
use csi_proxy_client::{Client, DiskNumber, DiskState, ErrorKind};
use serde_json::{Value, json};

use super::Listing;
use crate::last_seen::{LastSeen, mounts};

pub(crate) const COLUMNS: [Column; 7] = [
    Column::number("DISK", |row| shown(&row["disk"])),
    Column::text("VOLUME", |row| shown(&row["volume"])).name(),
    Column::text("FORMATTED", |row| {
        row["formatted"]
            .as_bool()
            .map_or("-", |is| if is { "yes" } else { "no" })
            .into()
    }),
    Column::number("SIZE", |row| {
        row["size_bytes"]
            .as_u64()
            .map_or_else(|| "-".into(), short_size)
    }),
    Column::number("USED", |row| {
        share(row).map_or_else(|| "-".into(), |share| format!("{share}%"))
    }),
    Column::number("USED BYTES", |row| shown(&row["used_bytes"])).wide(),
    Column::text("MOUNTED AT", |row| mounts(&row["mounted_at"])),
];

/// Returns the used share of a volume in per cent, which is 100 only for a full one.
fn share(row: &Value) -> Option<u64> {
    let (used, size) = (row["used_bytes"].as_u64()?, row["size_bytes"].as_u64()?);
    (size > 0).then(|| u64::try_from(u128::from(used) * 100 / u128::from(size)).unwrap_or(u64::MAX))
}

pub(super) fn command() -> Command {
    Command::new("volumes")
        .visible_aliases(["volume", "vol"])
        .about("Volumes: disk, file system size and use")
        .after_help("The volumes of offline disks are not known.")
        .arg(
            Arg::new("disk")
                .long("disk")
                .value_name("NUMBER")
                .action(ArgAction::Append)
                .value_parser(quantity::number::<u32>)
                .help("Only the volumes on this disk; may be repeated"),
        )
}

/// Returns the volumes on the disks with these numbers, or on all.
pub(crate) async fn fetch(
    asked: Option<BTreeSet<DiskNumber>>,
    client: &Client,
    last_seen: &LastSeen,
) -> Result<Listing, Failure> {
    let is_asked = asked.is_some();
    let disks = if let Some(asked) = asked {
        asked
    } else {
        // ListDiskIDs leaves out a disk that cannot be read, but its volumes must not be missing
        // without a word.
        let (ids, locations) = (
            client.disk().list_disk_ids().await?,
            client.disk().list_disk_locations().await?,
        );
        ids.into_keys().chain(locations.into_keys()).collect()
    };
    let mut listing = Listing::of_each(disks, async |disk| {
        on_disk(disk, is_asked, client, last_seen).await
    })
    .await;
    // Without the group, the calls for all disks fail alike.
    let is_missing = |failure: &Failure| matches!(failure, Failure::Call { error, .. } if error.kind() == ErrorKind::Unimplemented);
    match listing.problems.iter().position(is_missing) {
        Some(at) => Err(listing.problems.swap_remove(at)),
        None => Ok(listing),
    }
}

/// Returns the volumes on a disk. `is_asked`: whether the disk was asked for by its number.
async fn on_disk(
    disk: DiskNumber,
    is_asked: bool,
    client: &Client,
    last_seen: &LastSeen,
) -> Listing {
    let volumes = client.volume();
    let mut listing = Listing::default();
    let object = format!("disk {disk}");
    if !is_asked {
        match client.disk().get_disk_state(disk).await {
            Ok(DiskState::Offline) => return listing,
            Err(error) if error.kind() == ErrorKind::DeadlineExceeded => {
                listing.add_problem(&object, error);
                return listing;
            }
            // What else fails will fail below, and is reported there.
            _ => {}
        }
    }
    let ids = match volumes.list_volumes_on_disk(disk, None).await {
        Ok(ids) => ids,
        // A disk without volumes.
        Err(error) if error.kind() == ErrorKind::NotFound && !is_asked => return listing,
        Err(error) if error.kind() == ErrorKind::Unimplemented => {
            listing.problems.push(error.into());
            return listing;
        }
        Err(error) => {
            if error.kind() == ErrorKind::DeadlineExceeded {
                let volumes = last_seen.volumes_on(disk.0).into_iter();
                let row = |volume: String| json!({ "mounted_at": last_seen.mounts_of(&volume), "volume": volume, "disk": disk.0 });
                listing.rows.extend(volumes.map(row));
            }
            listing.add_problem(&object, error);
            return listing;
        }
    };
    for volume in ids {
        let is_formatted = volumes.is_volume_formatted(&volume).await;
        let formatted = listing.value_or_problem(volume.as_str(), is_formatted);
        let (mut size, mut used) = (Value::Null, Value::Null);
        if formatted == true {
            match volumes.get_volume_stats(&volume).await {
                Ok(stats) => (size, used) = (stats.total_bytes.into(), stats.used_bytes.into()),
                Err(error) => listing.add_problem(volume.as_str(), error),
            }
        }
        listing.rows.push(json!({
            "volume": volume.as_str(),
            "disk": disk.0,
            "formatted": formatted,
            "size_bytes": size,
            "used_bytes": used,
            "mounted_at": last_seen.mounts_of(volume.as_str()),
        }));
    }
    listing
}
