//! `get disks`.

use std::collections::BTreeSet;

use clap::{Arg, Command};
use command_line::failure::Failure;
use command_line::quantity::{self, short_size};
use command_line::table::{Column, shown};
use csi_proxy_client::{Client, DiskNumber, DiskState, ErrorKind};
use serde_json::{Value, json};

use super::Listing;

pub(crate) const COLUMNS: [Column; 9] = [
    Column::number("DISK", |row| shown(&row["disk"])).name(),
    Column::text("STATE", |row| shown(&row["state"])),
    Column::number("SIZE", |row| {
        row["size_bytes"]
            .as_u64()
            .map_or_else(|| "-".into(), short_size)
    }),
    Column::text("SERIAL NUMBER", |row| shown(&row["serial_number"])),
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
) -> Result<Listing, Failure> {
    let disks = client.disk();
    let (ids, locations) = (
        disks.list_disk_ids().await?,
        disks.list_disk_locations().await?,
    );
    let is_asked = asked.is_some();
    let numbers = asked.unwrap_or_else(|| ids.keys().chain(locations.keys()).copied().collect());
    Ok(Listing::of_each(numbers, async |number| {
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
        let location = locations.get(&number).map_or(
            Value::Null,
            |found| json!({ "adapter": found.adapter, "bus": found.bus, "target": found.target, "lun": found.lun }),
        );
        let row = json!({
            "disk": number.0,
            "state": listing.value_or_problem(&object, state),
            "size_bytes": size,
            "serial_number": ids.get(&number).map(|ids| ids.serial_number.as_str()),
            "page83": ids.get(&number).map(|ids| ids.page83.as_str()),
            "location": location,
        });
        listing.rows.push(row);
        listing
    })
    .await)
}
