//! `doctor`: runs `csi-proxy doctor`, which examines the node by itself.

use std::env::{self, consts::EXE_SUFFIX};
use std::ffi::OsString;
use std::io::Error;
use std::path::Path;
use std::process::{self, ExitCode};

use clap::{Arg, ArgAction, ArgMatches, Command};

const FLAGS: &str = "flags";
/// The exit code of `csi-proxy doctor` if the node could not be examined.
const NOT_RUN: u8 = 2;

pub(crate) fn command() -> Command {
    Command::new("doctor")
        .about("Lists what is wrong on this node, and what to do")
        .after_help(
            "Runs csi-proxy doctor, from the folder of csi-proxyctl. Its flags: csi-proxyctl doctor \
             -- -help.",
        )
        .arg(
            Arg::new(FLAGS)
                .value_name("FLAGS")
                .action(ArgAction::Append)
                .num_args(0..)
                .trailing_var_arg(true)
                .allow_hyphen_values(true)
                .value_parser(clap::value_parser!(OsString))
                .help("Flags of csi-proxy doctor, such as -x"),
        )
}

/// Runs the command, and returns the exit code of `csi-proxy doctor`.
pub(crate) fn run(matches: &ArgMatches) -> ExitCode {
    let own = env::current_exe().unwrap_or_default();
    let program = own
        .parent()
        .unwrap_or(Path::new(""))
        .join(format!("csi-proxy{EXE_SUFFIX}"));
    let flags = matches.get_many::<OsString>(FLAGS).into_iter().flatten();
    let status = process::Command::new(&program)
        .arg("doctor")
        .args(flags)
        .status();
    match status {
        Ok(status) => ExitCode::from(
            status
                .code()
                .and_then(|code| u8::try_from(code).ok())
                .unwrap_or(NOT_RUN),
        ),
        Err(error) => not_run(&program, &error),
    }
}

fn not_run(program: &Path, error: &Error) -> ExitCode {
    eprintln!(
        "error: cannot run {}: {error}\nhint: csi-proxy and csi-proxyctl must be in the same folder",
        program.display()
    );
    ExitCode::from(NOT_RUN)
}
