//! The servers that are compared, where they run, and running one of them.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::workload::{DEEPEST, PING_PONG_BYTES, System};
use crate::process::KillOnDrop;
use crate::wine::Prefix;
use crate::{parity, workspace};

/// A server that can be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) path: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A build of csi-proxy: on Linux with the simulated node, under Wine the shipped program.
    Ours,
    /// A server without the daemon's checks, on Linux files.
    Minimal,
    /// The csi-proxy that is written in Go, under Wine.
    GoProgram,
    /// Bytes for bytes, without gRPC.
    PingPong,
}

impl Program {
    pub(super) fn new(name: &str, kind: Kind, path: PathBuf) -> Self {
        Self { name: name.into(), kind, path }
    }

    /// Reads `NAME=PATH`.
    pub(super) fn daemon(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, path)) if !name.is_empty() && !path.is_empty() => Ok(Self::new(name, Kind::Ours, path.into())),
            _ => Err("write it as NAME=PATH".into()),
        }
    }

    /// Starts the server with its sockets, if it has any, in the folder of its name. The client waits until it accepts
    /// connections.
    pub(super) fn start(&self, site: &Site) -> io::Result<Running> {
        let sockets = site.sockets(self);
        // The server makes the folder itself, since the daemon accepts only one that is closed to others.
        if sockets.exists() {
            fs::remove_dir_all(&sockets)?;
        }
        let log = site.logs.join(format!("{}.log", self.name));
        let mut command = site.command(self.kind, &self.path);
        if site.system() == System::Linux {
            command.arg("--socket-folder").arg(&sockets).args(self.arguments_on_linux(site));
        }
        if self.kind == Kind::PingPong {
            let [request, reply] = PING_PONG_BYTES.map(|bytes| bytes.to_string());
            command.args(["--request-bytes", &request, "--reply-bytes", &reply]);
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log)?).spawn().map_err(
            |error| io::Error::new(error.kind(), format!("{} cannot be started: {error}", self.path.display())),
        )?;
        Ok(Running { process: KillOnDrop(child), wineserver: site.wineserver(self.kind), log })
    }

    fn arguments_on_linux(&self, site: &Site) -> Vec<OsString> {
        match self.kind {
            Kind::Ours => vec!["--node".into(), workspace::root().join("verify/bench/node.toml").into()],
            Kind::Minimal => vec!["--root".into(), site.scratch.0.clone().into()],
            Kind::GoProgram | Kind::PingPong => Vec::new(),
        }
    }
}

/// Where programs run, with the folder for their files.
pub(super) struct Site {
    scratch: Scratch,
    logs: PathBuf,
    /// That of our programs and that of the Go program, whose pipes have the same names.
    prefixes: Option<[Prefix; 2]>,
}

impl Site {
    pub(super) fn linux(logs: PathBuf) -> io::Result<Self> {
        Ok(Self { scratch: Scratch::make()?, logs, prefixes: None })
    }

    pub(super) fn wine(logs: PathBuf, prefixes: [Prefix; 2]) -> io::Result<Self> {
        for prefix in &prefixes {
            fs::create_dir_all(parity::kubelet(&prefix.drive_c()).join(unix_path(DEEPEST)))?;
        }
        Ok(Self { scratch: Scratch::make()?, logs, prefixes: Some(prefixes) })
    }

    pub(super) fn system(&self) -> System {
        if self.prefixes.is_some() { System::Wine } else { System::Linux }
    }

    /// Returns a command for a server of this kind, or for a client of it.
    pub(super) fn command(&self, kind: Kind, program: &Path) -> Command {
        self.prefix(kind).map_or_else(|| Command::new(program), |prefix| prefix.command(program))
    }

    pub(super) fn sockets(&self, program: &Program) -> PathBuf {
        self.scratch.0.join(&program.name)
    }

    fn wineserver(&self, kind: Kind) -> Option<u32> {
        self.prefix(kind)?.server_process()
    }

    fn prefix(&self, kind: Kind) -> Option<&Prefix> {
        let [own, go] = self.prefixes.as_ref()?;
        Some(if kind == Kind::GoProgram { go } else { own })
    }
}

/// A server process.
pub(super) struct Running {
    process: KillOnDrop,
    pub(super) wineserver: Option<u32>,
    /// What it wrote to standard error.
    pub(super) log: PathBuf,
}

impl Running {
    pub(super) fn pid(&self) -> u32 {
        self.process.0.id()
    }
}

fn unix_path(path: &str) -> String {
    path.replace('\\', "/")
}

/// A folder for sockets and files, removed when dropped. Not in `target`, where the path of a socket may become too
/// long.
struct Scratch(PathBuf);

impl Scratch {
    fn make() -> io::Result<Self> {
        let folder = std::env::temp_dir().join(format!("csi-proxy-bench-{}", std::process::id()));
        fs::create_dir_all(folder.join(unix_path(DEEPEST)))?;
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that remains in the temporary directory does no harm.
        let _removed = fs::remove_dir_all::<&Path>(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Program};

    #[test]
    fn a_build_is_given_by_name_and_path() {
        let before = Program::new("before", Kind::Ours, "/a=b/csi-proxy".into());
        assert_eq!(Program::daemon("before=/a=b/csi-proxy"), Ok(before));
        for text in ["/csi-proxy", "=/csi-proxy", "before="] {
            assert!(Program::daemon(text).is_err(), "{text}");
        }
    }
}
