//! `get disks`.

use std::collections::BTreeSet;

use clap::{Arg, Command};
use command_line::failure::Failure;
use command_line::quantity::{self, short_size};
use command_line::table::{Column, shown};
use csi_proxy_client::{Client, DiskNumber, DiskState, ErrorKind};
use futures_util::future::join;
use serde_json::{Value, json};

use super::Listing;
use crate::last_seen::{LastSeen, with_age};

pub(crate) const COLUMNS: [Column; 9] = [
    Column::number("DISK", |row| shown(&row["disk"])).name(),
    Column::text("STATE", |row| shown(&row["state"])),
    Column::number("SIZE", |row| {
        row["size_bytes"]
            .as_u64()
            .map_or_else(|| "-".into(), short_size)
    }),
    Column::text("SERIAL NUMBER", |row| {
        with_age(&row["serial_number"], &row["identity_seconds_ago"])
    }),
    Column::text("PAGE83", |row| shown(&row["page83"])).wide(),
    Column::text("ADAPTER", |row| shown(&row["location"]["adapter"])).wide(),
    Column::text("BUS", |row| shown(&row["location"]["bus"])).wide(),
    Column::text("TARGET", |row| shown(&row["location"]["target"])).wide(),
    Column::text("LUN", |row| shown(&row["location"]["lun"])).wide(),
];

pub(super) fn command() -> Command {
    Command::new("disks")
        .visible_alias("disk")
        .about("Disks: state, size, identifiers; with -o wide, locations")
        .arg(
            Arg::new("disk")
                .value_name("NUMBER")
                .num_args(0..)
                .value_parser(quantity::number::<u32>)
                .help("Only these disks"),
        )
}

/// Returns the disks with these numbers, or all.
pub(crate) async fn fetch(
    asked: Option<BTreeSet<DiskNumber>>,
    client: &Client,
    last_seen: &LastSeen,
) -> Result<Listing, Failure> {
    let disks = client.disk();
    let (ids, locations) = join(disks.list_disk_ids(), disks.list_disk_locations()).await;
    let is_asked = asked.is_some();
    let mut late = Listing::default();
    let ids = late.answer_in_time("the identifiers", ids, is_asked)?;
    let locations = late.answer_in_time("the locations", locations, is_asked)?;
    let numbers = asked.unwrap_or_else(|| ids.keys().chain(locations.keys()).copied().collect());
    let mut listing = Listing::of_each(numbers, async |number| {
        let mut listing = Listing::default();
        let object = format!("disk {number}");
        let state = disks.get_disk_state(number).await.map(|state| match state {
            DiskState::Online => "Online",
            DiskState::Offline => "Offline",
        });
        if let Err(error) = &state
            && error.kind() == ErrorKind::NotFound
        {
            // A disk that was listed and does not exist now has been removed in between.
            if is_asked {
                listing.value_or_problem(&object, state);
            }
            return listing;
        }
        let size = match &state {
            // A disk that has not answered would not answer this call either.
            Err(error) if error.kind() == ErrorKind::DeadlineExceeded => Value::Null,
            _ => listing.value_or_problem(&object, disks.get_disk_stats(number).await),
        };
        let seen = last_seen.disk(number.0);
        let identity = ids.get(&number).map_or_else(
            || json!({ "serial_number": seen["serial_number"], "page83": seen["page83"], "seconds_ago": seen["seconds_ago"] }),
            |ids| json!({ "serial_number": ids.serial_number, "page83": ids.page83 }),
        );
        let location = match locations.get(&number) {
            Some(at) => json!({ "adapter": at.adapter, "bus": at.bus, "target": at.target, "lun": at.lun }),
            None if seen.is_null() => Value::Null,
            None => json!({ "adapter": seen["adapter"], "bus": seen["bus"], "target": seen["target"], "lun": seen["lun"] }),
        };
        let row = json!({
            "disk": number.0,
            "state": listing.value_or_problem(&object, state),
            "size_bytes": size,
            "serial_number": identity["serial_number"],
            "page83": identity["page83"],
            "identity_seconds_ago": identity["seconds_ago"],
            "location": location,
        });
        listing.rows.push(row);
        listing
    })
    .await;
    listing.problems.append(&mut late.problems);
    Ok(listing)
}
