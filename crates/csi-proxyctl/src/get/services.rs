//! `get services`: given services. No RPC lists all.

use clap::{Arg, ArgMatches, Command};
use command_line::failure::Failure;
use command_line::table::{Column, shown};
use csi_proxy_client::{Client, ErrorKind};
use serde_json::json;

use super::Listing;

/// The services on which the RPCs depend, and csi-proxy.
const DEFAULT: [&str; 3] = [CSI_PROXY, "LanmanWorkstation", "MSiSCSI"];

const CSI_PROXY: &str = "csiproxy";

pub(super) const COLUMNS: [Column; 4] = [
    Column::text("SERVICE", |row| shown(&row["name"])).name(),
    Column::text("STATUS", |row| shown(&row["status"])),
    Column::text("START TYPE", |row| shown(&row["start_type"])),
    Column::text("DISPLAY NAME", |row| shown(&row["display_name"])),
];

pub(super) fn command() -> Command {
    Command::new("services")
        .visible_aliases(["service", "svc"])
        .about("Windows services: status and start type")
        .after_help(
            "csi-proxy has no RPC that lists all services. Without names, csiproxy is \"Not a \
             service\" where csi-proxy runs in a container or is simulated.",
        )
        .arg(
            Arg::new("name")
                .value_name("NAME")
                .num_args(0..)
                .help(format!(
                    "Names of services, which are not their display names [default: {}]",
                    DEFAULT.join(" ")
                )),
        )
}

pub(super) async fn fetch(matches: &ArgMatches, client: &Client) -> Result<Listing, Failure> {
    let system = client.system();
    let asked: Option<Vec<&str>> = matches
        .get_many::<String>("name")
        .map(|names| names.map(String::as_str).collect());
    let is_asked = asked.is_some();
    let mut listing = Listing::default();
    for name in asked.unwrap_or_else(|| DEFAULT.to_vec()) {
        listing.rows.push(match system.get_service(name).await {
            Ok(service) => json!({
                "name": name,
                // The names of the variants are the words of PowerShell's Get-Service.
                "status": format!("{:?}", service.status),
                "start_type": format!("{:?}", service.start_type),
                "display_name": service.display_name,
            }),
            Err(error) if error.kind() == ErrorKind::NotFound && !is_asked => {
                // csi-proxy has answered, so it runs.
                let status = if name == CSI_PROXY {
                    "Not a service"
                } else {
                    "Not installed"
                };
                json!({ "name": name, "status": status, "start_type": null, "display_name": null })
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                listing.problems.push(error.into());
                continue;
            }
            // What fails for one service fails for all.
            Err(error) => return Err(error.into()),
        });
    }
    Ok(listing)
}
