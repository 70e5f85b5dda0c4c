//! `sim`: changes a running csi-proxy-sim, and does the container's part on the file system of its node.

mod changes;
mod disks;
mod faults;
mod files;

use std::io::{self, Write as _};

use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::Value;
use sim_control::{ContainerFilesClient, SimulationClient};
use tokio::time::timeout;
use tonic::transport::Channel;
use tonic::{Response, Status};
use transport::address::Location;

use crate::cli::{self, TIMEOUT};
use crate::failure::{Failure, NO_FOLDER};
use crate::get::Format;
use crate::operation;
use crate::progress::with_progress;
use crate::session::{Endpoints, Session};
use crate::table::{self, Column};

/// The clients of a running csi-proxy-sim.
struct Simulator {
    simulation: SimulationClient<Channel>,
    files: ContainerFilesClient<Channel>,
}

/// What a command has to show.
enum Output {
    /// The response of an operation, which may be empty.
    Response(Value),
    /// Rows of a table.
    Rows(&'static [Column], Vec<Value>),
    /// The content of a file.
    Bytes(Vec<u8>),
}

impl Output {
    fn done() -> Self {
        Self::Response(Value::Null)
    }
}

/// Returns the command.
pub(crate) fn command() -> Command {
    Command::new("sim")
        .about("Change a running csi-proxy-sim: disks, servers, faults, files")
        .before_help(
            "These commands work with csi-proxy-sim only, and never with a real node. They use the socket \
             sim-control.sock in the folder of --endpoint-dir.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(disks::commands())
        .subcommands(changes::commands())
        .subcommands(faults::commands())
        .subcommands(files::commands())
}

/// Runs the command.
pub(crate) async fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (name, matches) = matches.subcommand().expect("a subcommand is required");
    let limit = cli::duration(matches, TIMEOUT).expect("it has a default");
    let work = async {
        let simulator = connect(&session.endpoints).await?;
        match name {
            "disks" | "add" | "add-disk" | "unplug" | "plug" | "grow" => disks::run(name, matches, simulator).await,
            "inject" | "faults" | "clear-faults" | "primitives" => faults::run(name, matches, simulator).await,
            "ls" | "stat" | "mkdir" | "cat" | "write" | "readlink" | "symlink" | "rm" => {
                files::run(name, matches, simulator).await
            }
            _ => changes::run(name, matches, simulator).await,
        }
    };
    let done = timeout(limit, with_progress(&format!("sim {name}"), work)).await;
    let output = done.map_err(|_| Failure::Simulator(Box::new(Status::deadline_exceeded("no answer in time"))))??;
    show(&output, matches)
}

async fn connect(endpoints: &Endpoints) -> Result<Simulator, Failure> {
    let location = match endpoints {
        Endpoints::Folder(folder) => Location::Directory(folder.clone()),
        Endpoints::Pipes => Location::NamedPipes,
        Endpoints::Nowhere => return Err(unreachable(NO_FOLDER)),
    };
    let address = sim_control::address(&location);
    let channel = sim_control::connect(&location).await;
    let channel = channel.map_err(|error| unreachable(&format!("cannot connect to {address}: {}", reason(&error))))?;
    // A node file has the contents of the node's files, without a limit.
    let simulation = SimulationClient::new(channel.clone()).max_decoding_message_size(usize::MAX);
    Ok(Simulator { simulation, files: ContainerFilesClient::new(channel) })
}

fn unreachable(what: &str) -> Failure {
    Failure::Simulator(Box::new(Status::unavailable(what)))
}

/// Returns the innermost error, which is that of the system.
fn reason(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source()).last().unwrap_or(error).to_string()
}

/// Returns the message of a response.
fn answered<T>(response: Result<Response<T>, Status>) -> Result<T, Failure> {
    response.map(Response::into_inner).map_err(|status| Failure::Simulator(Box::new(status)))
}

fn show(output: &Output, matches: &ArgMatches) -> Result<(), Failure> {
    match output {
        Output::Bytes(bytes) => Ok(io::stdout().write_all(bytes)?),
        Output::Response(value) => operation::show(value, output_form(matches)),
        Output::Rows(columns, rows) => {
            let text = match cli::format(matches) {
                Format::Table { is_wide } => table::text(columns, is_wide, rows, table::terminal_width()),
                Format::Value(form) => form.text(&rows.clone().into()),
            };
            Ok(write!(anstream::stdout(), "{text}")?)
        }
    }
}

/// Returns the form that the command line names, if the command has that flag.
fn output_form(matches: &ArgMatches) -> Option<&str> {
    matches.try_get_one::<String>("output").ok().flatten().map(String::as_str)
}

/// Returns the flag for the form of a table.
fn table_arg() -> Arg {
    cli::output_arg(&["table", "wide", "json", "yaml"]).default_value("table")
}

/// Returns the flag for the form of a response.
fn response_arg() -> Arg {
    cli::output_arg(&["yaml", "json"])
}

/// Returns a required argument.
fn argument(name: &'static str, value_name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).value_name(value_name).required(true).help(help)
}

/// Returns a switch.
fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

/// Returns the flag for disks that Windows does not show at once.
fn undetected_arg() -> Arg {
    switch("undetected", "Let Windows show the disk only after a rescan (csi-proxyctl disk rescan)")
}
