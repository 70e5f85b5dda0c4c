//! `csi-proxyctl`, the administrator's tool for csi-proxy: shows what a node has, and calls any RPC of its csi-proxy.
//!
//! It is a client like a CSI driver: it opens the same pipes and reads nothing of the node by itself.

mod call;
mod cli;
mod exit;
mod failure;
mod get;
mod operation;
mod operations;
mod output;
mod progress;
mod quantity;
mod request;
mod session;
mod sim;
mod table;
mod text_input;
mod top;
mod versions;
mod watch;
mod wrap;

use std::env;
use std::io::Write as _;
use std::process::ExitCode;

use clap::ArgMatches;

use failure::Failure;
use session::Session;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let api_version = cli::api_version(env::args_os().map(|argument| argument.to_string_lossy().into_owned()));
    let matches = match cli::command(api_version.as_deref()).try_get_matches() {
        Ok(matches) => matches,
        Err(error) => {
            // The text cannot be written if standard output is closed.
            let _ = error.print();
            return if error.use_stderr() { exit::Code::Usage.into() } else { ExitCode::SUCCESS };
        }
    };
    let session = Session::new(&matches);
    match run(&matches, &session).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            // Nothing else can be done if standard error is closed.
            let _ = write!(anstream::stderr(), "{}", failure.report(&session));
            failure.exit_code().into()
        }
    }
}

async fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    match matches.subcommand().expect("a subcommand is required") {
        ("get", matches) => get::run(matches, session).await,
        ("call", matches) => call::run(matches, session).await,
        ("versions", matches) => versions::run(matches, session).await,
        ("top", matches) => top::run(matches, session).await,
        ("sim", matches) => sim::run(matches, session).await,
        ("completions", matches) => cli::completions(matches),
        (group, matches) => operation::run(group, matches, session).await,
    }
}
