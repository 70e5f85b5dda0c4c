//! `get iscsi`.

use clap::{Arg, ArgAction, ArgMatches, Command};
use command_line::failure::Failure;
use command_line::table::{Column, shown};
use csi_proxy_client::Client;
use serde_json::{Value, json};

use super::Listing;

static COLUMNS: [Column; 4] = [
    Column::text("ADDRESS", |row| shown(&row["address"])).name(),
    Column::number("PORT", |row| shown(&row["port"])),
    Column::text("TARGET", |row| shown(&row["target"])).name(),
    Column::text("DISKS", |row| {
        let disks: Vec<String> = row["disks"]
            .as_array()
            .into_iter()
            .flatten()
            .map(Value::to_string)
            .collect();
        disks.join(" ")
    }),
];

pub(super) fn command() -> Command {
    Command::new("iscsi")
        .about("Target portals; with --targets, also their targets and disks")
        .after_help("Without --timeout, get iscsi waits 2 minutes for the answer to each call.")
        .arg(Arg::new("targets").long("targets").action(ArgAction::SetTrue).help(
            "Ask each portal for its targets. The initiator does so over the network, and renews \
             its list of targets",
        ))
}

/// Returns the columns: those of portals, or those of targets too.
pub(super) fn columns(matches: &ArgMatches) -> &'static [Column] {
    if matches.get_flag("targets") {
        &COLUMNS
    } else {
        &COLUMNS[..2]
    }
}

pub(super) async fn fetch(matches: &ArgMatches, client: &Client) -> Result<Listing, Failure> {
    let iscsi = client.iscsi();
    let mut listing = Listing::default();
    for portal in iscsi.list_target_portals().await? {
        if !matches.get_flag("targets") {
            listing
                .rows
                .push(json!({ "address": portal.address, "port": portal.port }));
            continue;
        }
        let targets = iscsi
            .discover_target_portal(&portal)
            .await
            .unwrap_or_else(|error| {
                listing.problems.push(error.into());
                Vec::new()
            });
        let mut row = |target: Value, disks: Value| {
            listing
                .rows
                .push(json!({ "address": portal.address, "port": portal.port, "target": target, "disks": disks }));
        };
        if targets.is_empty() {
            row(Value::Null, Value::Null);
        }
        for target in targets {
            match iscsi.get_target_disks(&portal, &target).await {
                Ok(disks) => row(target.into(), disks.iter().map(|disk| disk.0).collect()),
                Err(error) => {
                    row(target.into(), Value::Null);
                    listing.problems.push(error.into());
                }
            }
        }
    }
    Ok(listing)
}
