//! The parts of `csi-proxyctl`, the administrator's tool for csi-proxy: it shows what a node has,
//! and calls any RPC of its csi-proxy.
//!
//! It is a client like a CSI driver: it opens the same pipes and reads nothing of the node by
//! itself.

// The modules, from the lowest: `session`, `status_page`, `last_seen`, `watch`, `choose_version`, `request`, `call`, `completions`,
// `get`, `describe`, `operations`, `served_versions`, `top`, `cli`.

mod call;
mod choose_version;
mod cli;
mod completions;
mod describe;
mod get;
mod last_seen;
mod operations;
mod request;
mod served_versions;
mod session;
mod status_page;
mod top;
mod watch;

use std::env;
use std::process::ExitCode;

use clap::ArgMatches;
use command_line::args;
use command_line::failure::{self, Failure};
use session::Session;

/// Runs the program with the arguments of this process.
pub async fn main() -> ExitCode {
    let api_version = choose_version::api_version(
        env::args_os().map(|argument| argument.to_string_lossy().into_owned()),
    );
    let command = cli::command(api_version.as_deref());
    let matches = match args::parse(command, env::args_os()) {
        Ok(matches) => matches,
        Err(code) => return code,
    };
    let session = Session::new(&matches);
    failure::exit_code(run(&matches, &session).await, &session.endpoints)
}

async fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    match matches.subcommand().expect("a subcommand is required") {
        ("get", matches) => get::run(matches, session).await,
        ("describe", matches) => describe::run(matches, session).await,
        ("call", matches) => call::run(matches, session).await,
        ("versions", matches) => served_versions::run(matches, session).await,
        ("top", matches) => top::run(matches, session).await,
        ("completions", matches) => completions::run(matches, cli::command(None)),
        (group, matches) => operations::run(group, matches, session).await,
    }
}
