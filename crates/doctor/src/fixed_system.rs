//! A [`System`] with fixed answers, for the simulated node and for tests: what `doctor` reads of
//! Windows beyond the primitives that `os-sim` simulates.

use std::collections::BTreeMap;

use os::abi::{AccessEntry, EntryKind, SecurityDescriptor, Sid};
use os::{OsError, OsResult};

use crate::system::{Pipe, ServiceRegistration, System};

/// `GENERIC_READ` and `GENERIC_WRITE` of a pipe.
const READ_AND_WRITE: u32 = 0x12_019f;
/// All access to a file.
const FULL: u32 = 0x1f_01ff;

/// The path of the program that serves the pipes by default. It must exist on the node.
pub const PROGRAM: &str = r"C:\etc\kubernetes\node\bin\csi-proxy.exe";

const ADMINISTRATORS: &str = "S-1-5-32-544";
const SYSTEM: &str = "S-1-5-18";

/// The answers of a [`System`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedSystem {
    /// The build number of Windows.
    pub build: u32,
    /// The pipes that are served, by name.
    pub pipes: BTreeMap<String, Pipe>,
    /// The registration of the daemon's service, if it is installed.
    pub service: Option<ServiceRegistration>,
}

impl FixedSystem {
    /// Returns a system on which one process serves `pipes`, with the access that csi-proxy gives
    /// them, and no service is installed.
    pub fn serving(pipes: &[String]) -> Self {
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

impl System for FixedSystem {
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
pub fn pipe_access(accounts: &[&str]) -> SecurityDescriptor {
    granting(&[SYSTEM, ADMINISTRATORS], accounts, READ_AND_WRITE)
}

/// Returns the access to a file that only administrators may change, and all access for further
/// accounts.
pub fn file_access(accounts: &[&str]) -> SecurityDescriptor {
    granting(&[SYSTEM, ADMINISTRATORS], accounts, FULL)
}

fn granting(first: &[&str], more: &[&str], rights: u32) -> SecurityDescriptor {
    let sid = |text: &str| text.parse::<Sid>().expect("a SID in numbers");
    let entry = |text: &&str| AccessEntry {
        kind: EntryKind::Allow,
        flags: 0,
        rights,
        sid: sid(text),
    };
    let entries = first.iter().chain(more).map(entry).collect();
    SecurityDescriptor {
        owner: Some(sid(ADMINISTRATORS)),
        entries: Some(entries),
    }
}
