//! `describe`: all that csi-proxy knows of one disk and its volumes, which may be given by a volume
//! or a mount point.

use std::collections::BTreeSet;
use std::io::Write as _;

use clap::{ArgMatches, Command};
use command_line::args::{self, argument};
use command_line::failure::Failure;
use command_line::progress::with_progress;
use command_line::{quantity, table};
use csi_proxy_client::{DiskNumber, Error, ErrorKind, VolumeId};
use futures_util::future::join;
use serde_json::{Value, json};

use crate::get::{self, disks, volumes};
use crate::last_seen::LastSeen;
use crate::request;
use crate::session::Session;
use crate::status_page::address_arg;

/// How long the command may take by default. What a disk that hangs has last told is on the status
/// page.
const LIMIT: &str = "2s";

/// Returns the command.
pub(crate) fn command() -> Command {
    let command = |name, aliases: &'static [&'static str], value, help, about| {
        Command::new(name)
            .visible_aliases(aliases.iter().copied())
            .about(about)
            .arg(argument("object", value, help))
            .arg(args::timeout_arg(LIMIT))
            .arg(address_arg())
            .arg(args::response_arg())
    };
    let disk = command(
        "disk",
        &["disks"],
        "NUMBER",
        "Its number",
        "A disk with its volumes",
    );
    Command::new("describe")
        .about("Shows all that is known of a disk, a volume or a mount point")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(disk.mut_arg("object", |arg| arg.value_parser(quantity::number::<u32>)))
        .subcommand(command(
            "volume",
            &["volumes", "vol"],
            "VOLUME",
            "Its GUID path or GUID",
            "A volume, and its disk",
        ))
        .subcommand(command(
            "mount",
            &["mounts", "mnt"],
            "PATH",
            "A path on the node",
            "The volume that is mounted at a path, and its disk",
        ))
}

/// Runs the command.
pub(crate) async fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (kind, matches) = matches.subcommand().expect("a subcommand is required");
    // At most two calls find the disk of a mount, and two more ask a disk, one after the other.
    let limit = args::timeout(matches);
    let client = match kind {
        "disk" => session.client.with_deadline(limit / 2),
        _ => session.client.with_deadline(limit / 4),
    };
    let last_seen = LastSeen::read(matches, session).await.unwrap_or_default();
    let text = || args::required(matches, "object");
    let found = async {
        let volumes = client.volume();
        let volume = match kind {
            "disk" => None,
            "volume" => Some(VolumeId::new(request::volume_id(text()))),
            _ => {
                let seen = last_seen
                    .mount("path", text())
                    .map(|mount| &mount["source"]);
                let seen = seen.and_then(Value::as_str).map(VolumeId::new);
                let found = volumes.get_volume_id_from_target_path(text()).await;
                Some(in_time_or(found, seen)?)
            }
        };
        let disk = match &volume {
            None => DiskNumber(*matches.get_one("object").expect("it is required")),
            Some(volume) => {
                let seen = last_seen.mount("source", volume.as_str());
                let seen = seen.and_then(|mount| mount["disk"].as_u64()?.try_into().ok());
                let found = volumes.get_disk_number_from_volume_id(volume).await;
                in_time_or(found, seen.map(DiskNumber))?
            }
        };
        let asked = Some(BTreeSet::from([disk]));
        let (disks, volumes) = join(
            disks::fetch(asked.clone(), &client, &last_seen),
            volumes::fetch(asked, &client, &last_seen),
        )
        .await;
        let (mut disks, mut volumes) = (disks?, volumes?);
        let is_given = |row: &Value| {
            let own = row["volume"].as_str().unwrap_or_default();
            volume
                .as_ref()
                .is_none_or(|id| own.eq_ignore_ascii_case(id.as_str()))
        };
        volumes.rows.retain(is_given);
        let is_empty = |failure: &Failure| matches!(failure, Failure::Call { error, .. } if error.kind() == ErrorKind::NotFound);
        volumes.problems.retain(|failure| !is_empty(failure));
        disks.problems.append(&mut volumes.problems);
        Ok::<_, Failure>((disks, volumes.rows))
    };
    let (disks, volumes) = Box::pin(with_progress("describe", found)).await?;
    let text = if let Some(form) = args::response_form(matches) {
        form.text(&json!({ "disks": disks.rows, "volumes": volumes }))
    } else {
        let separator = if volumes.is_empty() { "" } else { "\n" };
        table::lists(&disks::COLUMNS, &disks.rows)
            + separator
            + &table::lists(&volumes::COLUMNS, &volumes)
    };
    write!(anstream::stdout(), "{text}")?;
    get::all_reported(disks.problems, session)
}

/// Returns what was found, or what was seen if there was no answer in time.
fn in_time_or<T>(found: Result<T, Error>, seen: Option<T>) -> Result<T, Error> {
    match (found, seen) {
        (Err(error), Some(seen)) if error.kind() == ErrorKind::DeadlineExceeded => Ok(seen),
        (found, _) => found,
    }
}
