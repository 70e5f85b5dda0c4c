//! Disks that come, go and grow, and other objects that are added.

use std::fmt::Write as _;

use clap::Subcommand;
use command_line::table::{Column, shown};
use command_line::{quantity, text_input};
use serde_json::{Value, json};

use super::{Error, Output, Simulator, UNDETECTED};
use crate::control_api::{
    AddRequest, Disk, GrowDiskRequest, ListDisksRequest, PlugDiskRequest, UnplugDiskRequest,
    UnpluggedDisk,
};

static COLUMNS: [Column; 9] = [
    Column::number("DISK", |row| shown(&row["disk"])),
    Column::text("STATE", |row| shown(&row["state"])),
    Column::number("HANDLE", |row| shown(&row["handle"])),
    Column::number("SIZE", |row| {
        row["size_bytes"]
            .as_u64()
            .map_or_else(|| "-".into(), quantity::short_size)
    }),
    Column::text("SERIAL NUMBER", |row| shown(&row["serial_number"])),
    Column::text("TABLE", |row| shown(&row["partition_table"])),
    Column::text("MOUNTED AT", mounts),
    Column::number("SIZE SEEN", |row| {
        row["size_seen_bytes"]
            .as_u64()
            .map_or_else(|| "-".into(), quantity::short_size)
    })
    .wide(),
    Column::text("LOCATION", |row| shown(&row["location"])).wide(),
];

fn mounts(row: &Value) -> String {
    let volumes = row["volumes"].as_array().into_iter().flatten();
    let paths: Vec<&str> = volumes
        .flat_map(|volume| volume["paths"].as_array().into_iter().flatten())
        .filter_map(Value::as_str)
        .collect();
    paths.join(" ")
}

#[derive(Subcommand)]
pub(super) enum Task {
    /// Lists the disks of the simulated node, including unplugged disks
    #[command(
        before_help = "Shows the actual size of each disk. -o wide also shows the size that \
                       Windows last read."
    )]
    Disks,
    /// Adds disks, servers, services and files from a node file
    #[command(
        before_help = "Adds all objects of the file, or none. The file is a node file without \
                       bios_serial and timing."
    )]
    Add {
        /// Node file; - for standard input
        file: String,
        #[arg(long, help = UNDETECTED)]
        undetected: bool,
    },
    /// Plugs in a new disk
    AddDisk {
        /// Size of the disk, such as 10Gi
        #[arg(long, value_parser = size)]
        size: u64,
        /// Serial number of the disk [default: a new one]
        #[arg(long, value_name = "TEXT")]
        serial: Option<String>,
        /// Location of the disk, which contains the LUN
        #[arg(long, value_name = "TEXT")]
        location: Option<String>,
        /// Number of a disk whose content the new disk begins with, as a restored snapshot does.
        /// Windows leaves it offline
        #[arg(long, value_name = "NUMBER", value_parser = quantity::number::<u32>)]
        copy_of: Option<u32>,
        /// Another key of a disk in a node file, with its value in TOML, such as offline=true or
        /// 'page83={ ascii = "Google  pvc-1" }'. May be repeated
        #[arg(long, value_name = "KEY=VALUE")]
        set: Vec<String>,
        #[arg(long, help = UNDETECTED)]
        undetected: bool,
    },
    /// Unplugs a disk without warning, and keeps its data
    #[command(
        before_help = "Prints the handle with which `csi-proxy-sim ctl plug` plugs the disk in \
                       again."
    )]
    Unplug {
        /// Number of the disk
        #[arg(value_name = "NUMBER", value_parser = quantity::number::<u32>)]
        disk: u32,
    },
    /// Plugs an unplugged disk in again
    #[command(before_help = "Prints the number of the disk, which may have changed.")]
    Plug {
        /// Handle of the disk, as `csi-proxy-sim ctl disks` shows it
        #[arg(value_parser = quantity::number::<u64>)]
        handle: u64,
        #[arg(long, help = UNDETECTED)]
        undetected: bool,
    },
    /// Enlarges a disk
    #[command(
        before_help = "Windows shows the new size only after a rescan (csi-proxyctl disk rescan)."
    )]
    Grow {
        /// Number of the disk
        #[arg(value_name = "NUMBER", value_parser = quantity::number::<u32>)]
        disk: u32,
        /// New size, such as 20Gi
        #[arg(value_parser = size)]
        size: u64,
    },
}

fn size(text: &str) -> Result<u64, String> {
    quantity::size(text).map(i64::cast_unsigned)
}

impl Task {
    pub(super) async fn run(
        self,
        Simulator { mut simulation, .. }: Simulator,
    ) -> Result<Output, Error> {
        let response = match self {
            Self::Disks => {
                let list = simulation
                    .list_disks(ListDisksRequest {})
                    .await?
                    .into_inner();
                let plugged = list.disks.into_iter().map(plugged_row);
                return Ok(Output::Rows(
                    &COLUMNS,
                    plugged
                        .chain(list.unplugged.iter().map(unplugged_row))
                        .collect(),
                ));
            }
            Self::Add { file, undetected } => {
                let node_file = text_input::read(&file, "the node file")?;
                let added = simulation
                    .add(AddRequest {
                        node_file,
                        undetected,
                    })
                    .await?;
                json!({ "disk_numbers": added.into_inner().disk_numbers })
            }
            Self::AddDisk {
                size,
                serial,
                location,
                copy_of,
                mut set,
                undetected,
            } => {
                set.extend(copy_of.map(|number| format!("copy_of = {number}")));
                let node_file =
                    disk_table(size, [("serial", serial), ("location", location)], &set);
                let added = simulation
                    .add(AddRequest {
                        node_file,
                        undetected,
                    })
                    .await?;
                json!({ "disk_numbers": added.into_inner().disk_numbers })
            }
            Self::Unplug { disk } => {
                let unplugged = simulation
                    .unplug_disk(UnplugDiskRequest { disk_number: disk })
                    .await?;
                json!({ "handle": unplugged.into_inner().handle })
            }
            Self::Plug { handle, undetected } => {
                let plugged = simulation
                    .plug_disk(PlugDiskRequest { handle, undetected })
                    .await?;
                json!({ "disk_number": plugged.into_inner().disk_number })
            }
            Self::Grow { disk, size } => {
                simulation
                    .grow_disk(GrowDiskRequest {
                        disk_number: disk,
                        size,
                    })
                    .await?;
                return Ok(Output::DONE);
            }
        };
        Ok(Output::Response(response))
    }
}

/// Returns the table of the disk in a node file.
fn disk_table(size: u64, texts: [(&str, Option<String>); 2], set: &[String]) -> String {
    let mut table = format!("[[disk]]\nsize = {size}\n");
    for (key, text) in texts {
        if let Some(text) = text {
            // A string of JSON is one of TOML. Writing to a String does not fail.
            let _ = writeln!(table, "{key} = {}", Value::from(text));
        }
    }
    for pair in set {
        let _ = writeln!(table, "{pair}");
    }
    table
}

fn plugged_row(disk: Disk) -> Value {
    let state = match (disk.detected, disk.offline, disk.read_only) {
        (false, ..) => "Undetected",
        (_, true, _) => "Offline",
        (_, _, true) => "Read-only",
        _ => "Online",
    };
    let volumes = disk.volumes.into_iter().map(|volume| {
        let file_system = Some(volume.file_system).filter(|name| !name.is_empty());
        json!({
            "id": volume.id, "file_system": file_system, "size_bytes": volume.size, "paths": volume.paths,
        })
    });
    json!({
        "disk": disk.number,
        "state": state,
        "handle": null,
        "size_bytes": disk.size,
        "size_seen_bytes": disk.size_seen,
        "serial_number": disk.serial,
        "location": disk.location,
        "partition_table": disk.partition_table,
        "volumes": volumes.collect::<Vec<_>>(),
    })
}

fn unplugged_row(disk: &UnpluggedDisk) -> Value {
    json!({
        "disk": null,
        "state": "Unplugged",
        "handle": disk.handle,
        "size_bytes": disk.size,
        "serial_number": disk.serial,
    })
}
