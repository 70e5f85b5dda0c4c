//! What `doctor` reads of the simulated node beyond the primitives that `os-sim` simulates. The
//! tests of the crate `doctor` compile this file too.

use std::collections::BTreeMap;

use ::doctor::{Pipe, ServiceRegistration, System};
use os::abi::{AccessEntry, EntryKind, SecurityDescriptor, Sid};
use os::{OsError, OsResult};

/// `GENERIC_READ` and `GENERIC_WRITE` of a pipe.
const READ_AND_WRITE: u32 = 0x12_019f;

/// The path of the program that serves the pipes by default. It must exist on the node.
pub(crate) const PROGRAM: &str = r"C:\etc\kubernetes\node\bin\csi-proxy.exe";

const ADMINISTRATORS: &str = "S-1-5-32-544";
const SYSTEM: &str = "S-1-5-18";

/// The answers of a [`System`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SimulatedSystem {
    /// The build number of Windows.
    pub(crate) build: u32,
    /// The pipes that are served, by name.
    pub(crate) pipes: BTreeMap<String, Pipe>,
    /// The registration of the daemon's service, if it is installed.
    pub(crate) service: Option<ServiceRegistration>,
}

impl SimulatedSystem {
    /// Returns a system on which one process serves `pipes`, with the access that csi-proxy gives
    /// them, and no service is installed.
    pub(crate) fn serving(pipes: &[String]) -> Self {
        let pipe = Pipe {
            process: 4242,
            program: Some(PROGRAM.to_owned()),
            access: Ok(pipe_access(&[])),
        };
        let pipes = pipes
            .iter()
            .map(|name| (name.clone(), pipe.clone()))
            .collect();
        Self {
            build: 20348,
            pipes,
            service: None,
        }
    }
}

impl System for SimulatedSystem {
    fn build(&self) -> OsResult<u32> {
        Ok(self.build)
    }

    fn pipe(&self, name: &str) -> OsResult<Pipe> {
        self.pipes.get(name).cloned().ok_or(OsError::FILE_NOT_FOUND)
    }

    fn service(&self, _name: &str) -> OsResult<ServiceRegistration> {
        self.service.clone().ok_or(OsError::SERVICE_DOES_NOT_EXIST)
    }
}

/// Returns the access that csi-proxy gives its pipes, and the same for further accounts
/// (`S-1-...`).
pub(crate) fn pipe_access(accounts: &[&str]) -> SecurityDescriptor {
    granting(accounts, READ_AND_WRITE)
}

/// Returns these rights for Windows, administrators and further accounts.
pub(crate) fn granting(accounts: &[&str], rights: u32) -> SecurityDescriptor {
    let sid = |text: &str| text.parse::<Sid>().expect("a SID in numbers");
    let entry = |text: &&str| AccessEntry {
        kind: EntryKind::Allow,
        flags: 0,
        rights,
        sid: sid(text),
    };
    let entries = [SYSTEM, ADMINISTRATORS]
        .iter()
        .chain(accounts)
        .map(entry)
        .collect();
    SecurityDescriptor {
        owner: Some(sid(ADMINISTRATORS)),
        entries: Some(entries),
    }
}
