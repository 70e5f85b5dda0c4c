//! The programs that are measured, and building them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::client::Client;
use super::server::{Kind, Program};
use super::{Options, PACKAGE};
use crate::windows::{self, NoDaemon};
use crate::wine::Prefix;
use crate::{Error, parity, process, workspace};

/// The program that serves the simulated node, and the package that it is in.
const SIMULATOR: &str = "csi-proxy-sim";
const MINIMAL_TONIC: &str = "csi-proxy-bench-tonic";
const PING_PONG: &str = "csi-proxy-bench-ping-pong";

/// How our programs and the minimal ones in Rust are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Build {
    Release,
    /// As the tests build them.
    Debug,
}

/// The servers to compare, built, and the client.
pub(super) struct Programs {
    pub(super) servers: Vec<Program>,
    pub(super) client: Client,
}

impl Programs {
    pub(super) fn for_linux(options: &Options, build: Build) -> Result<Self, Error> {
        build_go("linux", &["./client", "./server"])?;
        // In a build of its own, because another package in the same build may enable features of shared dependencies.
        build.package(PACKAGE)?;
        let mut servers = options.ours.clone();
        if servers.is_empty() {
            build.package(SIMULATOR)?;
            servers.push(Program::new("csi-proxy", Kind::Ours, build.program(SIMULATOR)));
        }
        servers.push(Program::new("grpc-go", Kind::Minimal, folder().join("linux/server")));
        servers.push(Program::new("tonic", Kind::Minimal, build.program(MINIMAL_TONIC)));
        servers.push(Program::new("ping-pong", Kind::PingPong, build.program(PING_PONG)));
        Ok(Self { servers, client: Client::new(folder().join("linux/client")) })
    }

    /// Also starts Wine. The inner error states what is missing.
    pub(super) fn for_wine(build: Build) -> Result<Result<(Self, [Prefix; 2]), String>, Error> {
        let Some(go_program) = parity::build_go_program()? else {
            return Ok(Err("the Go program cannot be built: its modules cannot be downloaded".into()));
        };
        let ping_pong = || match build {
            Build::Release => windows::optimised_program(PACKAGE, PING_PONG),
            Build::Debug => windows::debug_program(PACKAGE, PING_PONG),
        };
        let (own, ping_pong) = match windows::daemon().and_then(|own| Ok((own, ping_pong()?))) {
            Ok(programs) => programs,
            Err(NoDaemon::NoCompiler(reason)) => return Ok(Err(reason)),
            Err(NoDaemon::Broken(reason)) => return Err(reason.into()),
        };
        build_go("windows", &["./client"])?;
        let start = |name| Prefix::start_in(workspace::target().join(name));
        let prefixes = match start("wine").and_then(|own| Ok([own, start("wine-go")?])) {
            Ok(prefixes) => prefixes,
            Err(reason) => return Ok(Err(reason)),
        };
        let servers = vec![
            Program::new("csi-proxy", Kind::Ours, own),
            Program::new("Go program", Kind::GoProgram, go_program),
            Program::new("ping-pong", Kind::PingPong, ping_pong),
        ];
        Ok(Ok((Self { servers, client: Client::new(folder().join("windows/client.exe")) }, prefixes)))
    }
}

impl Build {
    fn package(self, package: &str) -> Result<(), Error> {
        let mut cargo = workspace::cargo();
        cargo.args(["build", "-p", package]).args((self == Self::Release).then_some("--release"));
        if process::succeeds(&mut cargo)? { Ok(()) } else { Err(format!("{package} does not build").into()) }
    }

    fn program(self, name: &str) -> PathBuf {
        let profile = match self {
            Self::Release => "release",
            Self::Debug => "debug",
        };
        workspace::target().join(profile).join(name)
    }
}

fn build_go(system: &str, programs: &[&str]) -> Result<(), Error> {
    let output = folder().join(system);
    fs::create_dir_all(&output)?;
    let mut go = Command::new("go");
    go.current_dir(go_module()).env("CGO_ENABLED", "0").env("GOOS", system);
    // go accepts only a folder as the output of several programs, and recognises it by the separator at its end.
    go.args(["build", "-o"]).arg(output.join("")).args(programs);
    if process::succeeds(&mut go)? { Ok(()) } else { Err("the Go client and server do not build".into()) }
}

pub(super) fn go_module() -> PathBuf {
    workspace::root().join("verify/bench/go")
}

/// Returns the folder of the Go programs and of the servers' logs.
pub(super) fn folder() -> PathBuf {
    workspace::target().join("bench")
}
