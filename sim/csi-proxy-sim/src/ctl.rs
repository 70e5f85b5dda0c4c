//! `ctl`: changes a running csi-proxy-sim, and acts as kubelet and the driver's container on the
//! file system of its node.

mod changes;
mod disks;
mod faults;
mod files;

use std::env;
use std::io::{self, Write as _};
use std::iter;
use std::process::ExitCode;

use clap::{ArgMatches, Command, FromArgMatches as _, Subcommand};
use command_line::args::{self, response_arg, table_arg};
use command_line::endpoints::{Endpoints, NO_FOLDER};
use command_line::failure::{self, Failure};
use command_line::progress::with_progress;
use command_line::table::{self, Column};
use command_line::{exit, output};
use serde_json::Value;
use tokio::time::timeout;
use tonic::transport::Channel;
use tonic::{Code, Status};
use transport::address::Location;

use crate::control_api::{self, ContainerFilesClient, SimulationClient};

/// The program in the help and in errors.
const NAME: &str = "csi-proxy-sim ctl";

/// The help of the flag for disks that Windows does not show at once.
const UNDETECTED: &str = "Windows shows the disk only after a rescan (csi-proxyctl disk rescan)";

/// The commands that print a table.
const WITH_TABLE: [&str; 4] = ["disks", "faults", "primitives", "ls"];

/// The commands that print a response.
const WITH_RESPONSE: [&str; 7] = [
    "add",
    "add-disk",
    "unplug",
    "plug",
    "inject",
    "wait-fault",
    "stat",
];

#[derive(Subcommand)]
enum Task {
    #[command(flatten)]
    Disks(disks::Task),
    #[command(flatten)]
    Changes(changes::Task),
    #[command(flatten)]
    Faults(faults::Task),
    #[command(flatten)]
    Files(files::Task),
}

/// The clients of a running csi-proxy-sim.
struct Simulator {
    simulation: SimulationClient<Channel>,
    files: ContainerFilesClient<Channel>,
}

/// The output of a command.
enum Output {
    /// The response of an operation, which may be empty.
    Response(Value),
    /// Rows of a table.
    Rows(&'static [Column], Vec<Value>),
    /// The content of a file.
    Bytes(Vec<u8>),
    /// The differences of two nodes, each of which is a failure.
    Differences(Vec<String>),
}

impl Output {
    /// Nothing: the command has changed the node.
    const DONE: Self = Self::Response(Value::Null);
}

/// Why a command failed.
enum Error {
    /// The command line or a file that it names is not valid, or the output cannot be written.
    Command(Failure),
    /// csi-proxy-sim refused the command or does not answer.
    Simulator(Box<Status>),
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::Command(failure)
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        Self::Simulator(Box::new(status))
    }
}

/// Runs the command with the arguments of this process, the first of which is `ctl`.
pub fn main() -> io::Result<ExitCode> {
    let program = iter::once(NAME.into());
    let matches = match args::parse(command(), program.chain(env::args_os().skip(2))) {
        Ok(matches) => matches,
        Err(code) => return Ok(code),
    };
    let endpoints = Endpoints::new(&matches);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let result = runtime.block_on(run(&matches, &endpoints));
    let result = result.map_err(|error| match error {
        Error::Command(failure) => failure,
        Error::Simulator(status) => failure_of(&status, &endpoints),
    });
    Ok(failure::exit_code(result, &endpoints))
}

/// Returns the command line.
fn command() -> Command {
    let command = args::program(NAME, "2m")
        .version(csi_proxy::VERSION)
        .about("Changes a running csi-proxy-sim: disks, servers, faults, files")
        .before_help(
            "These commands work only with csi-proxy-sim, never with a real node. They use the \
             socket sim-control.sock in the folder of --endpoint-dir.",
        );
    let command =
        Task::augment_subcommands(command).mut_subcommands(|command| match command.get_name() {
            name if WITH_TABLE.contains(&name) => command.arg(table_arg()),
            name if WITH_RESPONSE.contains(&name) => command.arg(response_arg()),
            _ => command,
        });
    args::with_template(command)
}

async fn run(matches: &ArgMatches, endpoints: &Endpoints) -> Result<(), Error> {
    let task = Task::from_arg_matches(matches).expect("clap has parsed the task");
    let (name, matches) = matches.subcommand().expect("a subcommand is required");
    let work = async {
        let simulator = connect(endpoints).await?;
        match task {
            Task::Disks(task) => task.run(simulator).await,
            Task::Changes(task) => task.run(simulator).await,
            Task::Faults(task) => task.run(simulator).await,
            Task::Files(task) => task.run(simulator).await,
        }
    };
    let done = timeout(
        args::timeout(matches),
        with_progress(&format!("ctl {name}"), work),
    )
    .await;
    let output =
        done.unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer in time").into()))?;
    show(&output, matches).map_err(Failure::from)?;
    match output {
        Output::Differences(lines) if !lines.is_empty() => {
            let text = format!("the node differs in {} ways", lines.len());
            Err(Failure::Other {
                code: exit::Code::Failed,
                text,
                hint: None,
            }
            .into())
        }
        _ => Ok(()),
    }
}

async fn connect(endpoints: &Endpoints) -> Result<Simulator, Error> {
    let location = match endpoints {
        Endpoints::Folder(folder) => Location::Directory(folder.clone()),
        Endpoints::Pipes => Location::NamedPipes,
        Endpoints::Nowhere => return Err(Status::unavailable(NO_FOLDER).into()),
    };
    let address = control_api::address(&location);
    let channel = control_api::connect(&location).await;
    let channel = channel.map_err(|error| {
        Status::unavailable(format!(
            "cannot connect to {address}: {}",
            innermost(&error)
        ))
    })?;
    // A node file has the contents of the node's files, without a limit.
    let simulation = SimulationClient::new(channel.clone()).max_decoding_message_size(usize::MAX);
    Ok(Simulator {
        simulation,
        files: ContainerFilesClient::new(channel),
    })
}

/// Returns the innermost error, which is the error of the system.
fn innermost(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source())
        .last()
        .unwrap_or(error)
        .to_string()
}

/// Returns the exit code for a status of csi-proxy-sim, and what to do next.
fn failure_of(status: &Status, endpoints: &Endpoints) -> Failure {
    let (code, hint) = match status.code() {
        Code::Unavailable => (exit::Code::Unreachable, Some(endpoints.hint())),
        Code::NotFound => (
            exit::Code::NotFound,
            Some(
                "`csi-proxy-sim ctl disks`, `ctl faults` and `ctl ls` show what exists, and `ctl \
                 node` shows the servers"
                    .to_owned(),
            ),
        ),
        Code::DeadlineExceeded => (
            exit::Code::Timeout,
            Some("--timeout gives csi-proxy-sim more time".to_owned()),
        ),
        Code::Unimplemented => (
            exit::Code::Unimplemented,
            Some("the running csi-proxy-sim is older than this program: start it again".to_owned()),
        ),
        _ => (exit::Code::Failed, None),
    };
    Failure::Other {
        code,
        text: status.message().to_owned(),
        hint,
    }
}

fn show(output: &Output, matches: &ArgMatches) -> io::Result<()> {
    match output {
        Output::Bytes(bytes) => io::stdout().write_all(bytes),
        Output::Differences(lines) => lines
            .iter()
            .try_for_each(|line| writeln!(io::stdout(), "{line}")),
        Output::Response(value) => output::show(value, args::response_form(matches)),
        Output::Rows(columns, rows) => {
            let text = table::formatted(
                args::format(matches),
                columns,
                rows,
                table::terminal_width(),
            );
            write!(anstream::stdout(), "{text}")
        }
    }
}
