//! The servers that are compared, and running one of them.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process::KillOnDrop;
use crate::workspace;

/// The program that serves the simulated node, and the package that it is in.
pub(super) const DAEMON: &str = "csi-proxy-sim";
pub(super) const MINIMAL_TONIC: &str = "csi-proxy-bench-tonic";
pub(super) const MINIMAL_TONIC_PACKAGE: &str = "csi-proxy-bench";

/// A server that can be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) name: String,
    pub(super) kind: Kind,
    path: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A build of the daemon, on the simulated node.
    Ours,
    /// A server without the daemon's checks, on Linux files.
    Minimal,
}

impl Program {
    pub(super) fn of_this_tree(path: PathBuf) -> Self {
        Self { name: "csi-proxy".into(), kind: Kind::Ours, path }
    }

    pub(super) fn minimal(name: &str, path: PathBuf) -> Self {
        Self { name: name.into(), kind: Kind::Minimal, path }
    }

    /// Reads `NAME=PATH`.
    pub(super) fn daemon(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, path)) if !name.is_empty() && !path.is_empty() => {
                Ok(Self { name: name.into(), kind: Kind::Ours, path: path.into() })
            }
            _ => Err("write it as NAME=PATH".into()),
        }
    }

    /// Starts the server with its sockets and files below `scratch` and its log in `logs`. The client waits until it
    /// accepts connections.
    pub(super) fn start(&self, scratch: &Path, logs: &Path) -> io::Result<Running> {
        let sockets = scratch.join("sockets");
        // A socket of the server before would look like this one's, and cannot be bound again. The server makes the
        // folder itself, since the daemon accepts only one that is closed to others.
        if sockets.exists() {
            fs::remove_dir_all(&sockets)?;
        }
        let more: [OsString; 2] = match self.kind {
            Kind::Ours => ["--node".into(), workspace::root().join("verify/bench/node.toml").into()],
            Kind::Minimal => ["--root".into(), scratch.into()],
        };
        let log = logs.join(format!("{}.log", self.name));
        let mut command = Command::new(&self.path);
        command.arg("--socket-folder").arg(&sockets).args(more);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log)?).spawn().map_err(
            |error| io::Error::new(error.kind(), format!("{} cannot be started: {error}", self.path.display())),
        )?;
        Ok(Running { process: KillOnDrop(child), sockets, log })
    }
}

/// A server process.
pub(super) struct Running {
    process: KillOnDrop,
    pub(super) sockets: PathBuf,
    /// What it wrote to standard error.
    pub(super) log: PathBuf,
}

impl Running {
    pub(super) fn pid(&self) -> u32 {
        self.process.0.id()
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Program};

    #[test]
    fn a_build_is_given_by_name_and_path() {
        let before = Program { name: "before".into(), kind: Kind::Ours, path: "/a=b/csi-proxy".into() };
        assert_eq!(Program::daemon("before=/a=b/csi-proxy"), Ok(before));
        for text in ["/csi-proxy", "=/csi-proxy", "before="] {
            assert!(Program::daemon(text).is_err(), "{text}");
        }
    }
}
