//! `cargo xtask bench`: builds the programs that verify/bench races, prepares Wine, and starts the
//! race. The whole race writes its table to docs/performance.md and the README.

use std::path::PathBuf;
use std::process::Command;

use clap::Args;

use crate::summary::Summary;
use crate::wine::Prefix;
use crate::{Error, differential, process, windows, workspace};

/// The package of the race.
pub(crate) const PACKAGE: &str = "csi-proxy-bench";

#[derive(Args, Default)]
pub(crate) struct Options {
    /// Options of the race, such as `--rounds 3 --seconds 1 --callers 1,32 --pause 0`; with one, no
    /// page is written
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<String>,
}

/// Races the servers. The race counts as one test, whatever its figures are.
pub(crate) fn run(options: &Options) -> Result<Summary, Error> {
    const NAME: &str = "bench";
    if std::env::consts::OS != "linux" || process::find("go").is_none() {
        return Ok(Summary::skipped(
            NAME,
            "it needs Linux and Go (https://go.dev/dl)",
        ));
    }
    let mut cargo = workspace::cargo();
    cargo.args([
        "build",
        "--release",
        "--package",
        PACKAGE,
        "--package",
        windows::SIMULATOR,
    ]);
    let grpc_go = workspace::target().join("go/grpc-go-server");
    let mut go = Command::new("go");
    go.current_dir(workspace::root().join("verify/bench/go"))
        .args(["build", "-o"])
        .arg(&grpc_go)
        .arg("./server");
    process::must_succeed(&mut cargo)?;
    process::must_succeed(&mut go)?;
    let release = workspace::target().join("release");
    let mut race = Command::new(release.join(PACKAGE));
    race.arg("race")
        .args(&options.options)
        .arg("--simulator")
        .arg(release.join(windows::SIMULATOR));
    if options.options.is_empty() {
        race.arg("--pages").arg(workspace::root());
    }
    race.arg("--grpc-go")
        .arg(grpc_go)
        .arg("--node")
        .arg(workspace::root().join("verify/bench/node.toml"));
    Ok(match under_wine() {
        Ok(Wine {
            go_program,
            own_program,
            client,
            go_prefix,
            own_prefix,
        }) => {
            race.arg("--wine")
                .arg(own_prefix.loader())
                .arg("--client")
                .arg(client);
            race.arg("--go-prefix")
                .arg(go_prefix.folder())
                .arg("--go-program")
                .arg(go_program);
            race.arg("--own-prefix")
                .arg(own_prefix.folder())
                .arg("--own-program")
                .arg(own_program);
            Summary::of_check(NAME, own_prefix.enter(&mut race))
        }
        Err(error) => {
            let mut summary = Summary::of_check(NAME, &mut race);
            summary += Summary::of_attempt("bench under Wine", Err(error));
            summary
        }
    })
}

/// What a race under Wine needs.
struct Wine {
    go_program: PathBuf,
    own_program: PathBuf,
    client: PathBuf,
    go_prefix: Prefix,
    own_prefix: Prefix,
}

/// Builds the programs and starts Wine.
fn under_wine() -> Result<Wine, Error> {
    let (go_program, own_program) = (differential::build_go_program()?, windows::daemon()?);
    let client = windows::release_program(PACKAGE)?;
    let [go_prefix, own_prefix] = differential::prefixes()?;
    Ok(Wine {
        go_program,
        own_program,
        client,
        go_prefix,
        own_prefix,
    })
}
