//! `describe`: all that csi-proxy knows of one disk and its volumes, which may be given by a volume
//! or a mount point.

use std::collections::BTreeSet;
use std::io::Write as _;

use clap::{ArgMatches, Command};
use command_line::args::{self, argument};
use command_line::failure::Failure;
use command_line::progress::with_progress;
use command_line::{quantity, table};
use csi_proxy_client::{DiskNumber, ErrorKind, VolumeId};
use serde_json::{Value, json};

use crate::get::{self, disks, volumes};
use crate::request;
use crate::session::Session;

/// Returns the command.
pub(crate) fn command() -> Command {
    let command = |name, aliases: &'static [&'static str], value, help, about| {
        Command::new(name)
            .visible_aliases(aliases.iter().copied())
            .about(about)
            .arg(argument("object", value, help))
            .arg(args::timeout_arg(get::LIMIT))
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
    let client = session.client.with_deadline(args::timeout(matches));
    let text = || args::required(matches, "object");
    let found = async {
        let volume = match kind {
            "disk" => None,
            "volume" => Some(VolumeId::new(request::volume_id(text()))),
            _ => Some(
                client
                    .volume()
                    .get_volume_id_from_target_path(text())
                    .await?,
            ),
        };
        let disk = match &volume {
            None => DiskNumber(*matches.get_one("object").expect("it is required")),
            Some(volume) => {
                client
                    .volume()
                    .get_disk_number_from_volume_id(volume)
                    .await?
            }
        };
        let asked = Some(BTreeSet::from([disk]));
        let mut disks = disks::fetch(asked.clone(), &client).await?;
        let mut volumes = volumes::fetch(asked, &client).await?;
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
    let (disks, volumes) = with_progress("describe", found).await?;
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
