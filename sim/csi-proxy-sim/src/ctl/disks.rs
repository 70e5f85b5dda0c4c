//! Disks that come, go and grow, and other objects that are added.

use std::fmt::Write as _;

use crate::control_api::{
    AddRequest, Disk, GrowDiskRequest, ListDisksRequest, PlugDiskRequest, UnplugDiskRequest, UnpluggedDisk,
};
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::{Value, json};

use super::{Error, Output, Simulator, answered, argument, response_arg, table_arg, undetected_arg};
use csi_proxyctl::args;
use csi_proxyctl::quantity;
use csi_proxyctl::table::{Column, shown};
use csi_proxyctl::text_input;

static COLUMNS: [Column; 9] = [
    Column::number("DISK", |row| shown(&row["disk"])),
    Column::text("STATE", |row| shown(&row["state"])),
    Column::number("HANDLE", |row| shown(&row["handle"])),
    Column::number("SIZE", |row| row["size_bytes"].as_u64().map_or_else(|| "-".into(), quantity::short_size)),
    Column::text("SERIAL NUMBER", |row| shown(&row["serial_number"])),
    Column::text("TABLE", |row| shown(&row["partition_table"])),
    Column::text("MOUNTED AT", mounts),
    Column::number("SIZE SEEN", |row| row["size_seen_bytes"].as_u64().map_or_else(|| "-".into(), quantity::short_size))
        .wide(),
    Column::text("LOCATION", |row| shown(&row["location"])).wide(),
];

fn mounts(row: &Value) -> String {
    let volumes = row["volumes"].as_array().into_iter().flatten();
    let paths: Vec<&str> =
        volumes.flat_map(|volume| volume["paths"].as_array().into_iter().flatten()).filter_map(Value::as_str).collect();
    paths.join(" ")
}

pub(super) fn commands() -> Vec<Command> {
    let number = || argument("disk", "NUMBER", "Number of the disk").value_parser(quantity::number::<u32>);
    vec![
        Command::new("disks")
            .about("Lists the disks of the simulated node, including unplugged ones")
            .before_help("Shows the actual size of each disk. -o wide also shows the size that Windows last read.")
            .arg(table_arg()),
        Command::new("add")
            .about("Adds disks, servers, services and files from a node file")
            .before_help(
                "Adds all objects of the file, or none. The file is a node file without bios_serial and timing.",
            )
            .arg(argument("file", "FILE", "The file; - for standard input"))
            .arg(undetected_arg())
            .arg(response_arg()),
        Command::new("add-disk")
            .about("Plugs in a new disk")
            .arg(
                Arg::new("size")
                    .long("size")
                    .value_name("SIZE")
                    .required(true)
                    .value_parser(|text: &str| quantity::size(text))
                    .help("Size of the disk, such as 10Gi"),
            )
            .arg(
                Arg::new("serial")
                    .long("serial")
                    .value_name("TEXT")
                    .help("Serial number of the disk [default: a new one]"),
            )
            .arg(
                Arg::new("location")
                    .long("location")
                    .value_name("TEXT")
                    .help("Location of the disk, which contains the LUN"),
            )
            .arg(Arg::new("set").long("set").value_name("KEY=VALUE").action(ArgAction::Append).help(
                "Another key of a disk in a node file, with a value in TOML, such as offline=true or \
                 'page83={ ascii = \"Google  pvc-1\" }'. May be repeated",
            ))
            .arg(undetected_arg())
            .arg(response_arg()),
        Command::new("unplug")
            .about("Unplugs a disk without warning, and keeps its data")
            .before_help("Prints the handle with which `csi-proxy-sim ctl plug` plugs the disk in again.")
            .arg(number())
            .arg(response_arg()),
        Command::new("plug")
            .about("Plugs an unplugged disk in again")
            .before_help("Prints the number of the disk, which may have changed.")
            .arg(
                argument("handle", "HANDLE", "Handle of the disk, as `csi-proxy-sim ctl disks` shows it")
                    .value_parser(quantity::number::<u64>),
            )
            .arg(undetected_arg())
            .arg(response_arg()),
        Command::new("grow")
            .about("Enlarges a disk")
            .before_help("Windows shows the new size only after a rescan (csi-proxyctl disk rescan).")
            .arg(number())
            .arg(
                argument("size", "SIZE", "The new size, such as 20Gi").value_parser(|text: &str| quantity::size(text)),
            ),
    ]
}

pub(super) async fn run(name: &str, matches: &ArgMatches, mut simulator: Simulator) -> Result<Output, Error> {
    let simulation = &mut simulator.simulation;
    let is_undetected = || matches.get_flag("undetected");
    let disk_number = || *matches.get_one::<u32>("disk").expect("it is required");
    match name {
        "disks" => {
            let list = answered(simulation.list_disks(ListDisksRequest {}).await)?;
            let plugged = list.disks.into_iter().map(plugged_row);
            Ok(Output::Rows(&COLUMNS, plugged.chain(list.unplugged.iter().map(unplugged_row)).collect()))
        }
        "add" | "add-disk" => {
            let node_file = if name == "add" {
                text_input::read(args::required(matches, "file"), "the node file")?
            } else {
                disk_table(matches)
            };
            let added = answered(simulation.add(AddRequest { node_file, undetected: is_undetected() }).await)?;
            Ok(Output::Response(json!({ "disk_numbers": added.disk_numbers })))
        }
        "unplug" => {
            let request = UnplugDiskRequest { disk_number: disk_number() };
            let unplugged = answered(simulation.unplug_disk(request).await)?;
            Ok(Output::Response(json!({ "handle": unplugged.handle })))
        }
        "plug" => {
            let handle = *matches.get_one("handle").expect("it is required");
            let plugged =
                answered(simulation.plug_disk(PlugDiskRequest { handle, undetected: is_undetected() }).await)?;
            Ok(Output::Response(json!({ "disk_number": plugged.disk_number })))
        }
        _ => {
            let request = GrowDiskRequest { disk_number: disk_number(), size: size(matches) };
            answered(simulation.grow_disk(request).await)?;
            Ok(Output::done())
        }
    }
}

fn size(matches: &ArgMatches) -> u64 {
    let size: i64 = *matches.get_one("size").expect("it is required");
    size.try_into().expect("it is not negative")
}

/// Returns the table of the disk in a node file.
fn disk_table(matches: &ArgMatches) -> String {
    let mut text = format!("[[disk]]\nsize = {}\n", size(matches));
    for key in ["serial", "location"] {
        if let Some(value) = matches.get_one::<String>(key) {
            // A string of JSON is one of TOML. Writing to a String does not fail.
            let _ = writeln!(text, "{key} = {}", Value::from(value.as_str()));
        }
    }
    for pair in matches.get_many::<String>("set").into_iter().flatten() {
        let _ = writeln!(text, "{pair}");
    }
    text
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
