//! The operations on paths, on one that lies beside kubelet's directory and whose text begins like it.

use os_sim::Sim;
use storage_ops::{CreateSymlink, Mkdir, MountVolume, PathExists, Rmdir, RmdirContents, UnmountVolume};

use super::smb::{PASSWORD, map};
use super::{GIB, ask, path, volume};
use crate::request::{Asked, Scenario, State, all_of};

const BESIDE: &str = r"C:\var\lib\kubelet-evil\p";

const SOURCE: &str = r"C:\var\lib\kubelet\plugins\source";

/// The path, and what it becomes in kubelet's directory for whoever cuts off as many letters or components as that
/// directory has.
fn node(full: bool) -> Sim {
    let mut node = os_sim::node().smb_server("files").share("one").user(r"domain\user", PASSWORD).dir(SOURCE);
    for parent in [r"C:\var\lib\kubelet-evil", r"C:\var\lib\kubelet", r"C:\var\lib\kubelet\-evil"] {
        node = if full { node.file(&format!(r"{parent}\p\kept"), b"kept") } else { node.dir(parent) };
    }
    node.disk(GIB).partitioned().formatted("NTFS").build()
}

const STATES: &[State] = &[
    State { name: "nothing beside", build: || node(false) },
    State { name: "a full directory beside", build: || node(true) },
];

const OPERATIONS: &[Asked] = &[
    Asked::new("PathExists(beside)", |_| ask(PathExists { path: path(BESIDE), context: None })).refused(),
    Asked::new("Mkdir(beside)", |_| ask(Mkdir { path: path(BESIDE), context: None })).refused(),
    Asked::new("Rmdir(beside)", |_| ask(Rmdir { path: path(BESIDE), context: None, force: true })).refused(),
    Asked::new("RmdirContents(beside)", |_| ask(RmdirContents { path: path(BESIDE) })).refused(),
    Asked::new("CreateSymlink(beside)", |_| ask(CreateSymlink { source: path(SOURCE), target: path(BESIDE) }))
        .refused(),
    Asked::new("CreateSymlink(to what is beside)", |_| {
        ask(CreateSymlink { source: path(BESIDE), target: path(r"C:\var\lib\kubelet\link") })
    })
    .refused(),
    Asked::new("NewSmbGlobalMapping(beside)", |_| ask(map(r"domain\user", PASSWORD, Some(BESIDE)))).refused(),
    Asked::new("MountVolume(beside)", |sim| ask(MountVolume { volume: volume(sim, 1), target: path(BESIDE) }))
        .refused(),
    Asked::new("UnmountVolume(beside)", |sim| ask(UnmountVolume { volume: volume(sim, 1), target: path(BESIDE) }))
        .refused(),
];

/// Each operation that must keep to the working directories.
pub fn scenarios() -> Vec<Scenario> {
    all_of(OPERATIONS, STATES)
}
