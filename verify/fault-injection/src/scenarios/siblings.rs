//! The operations on paths, on a sibling of kubelet's directory whose name begins with the same
//! text.

use os_sim::Sim;
use storage_ops::{
    CreateSymlink, Mkdir, MountVolume, PathExists, Rmdir, RmdirContents, UnmountVolume,
};

use super::smb::{PASSWORD, map};
use super::{GIB, Scenario, Spec, State, boxed, combine_all, path, state, volume};

const SIBLING: &str = r"C:\var\lib\kubelet-evil\p";

const SOURCE: &str = r"C:\var\lib\kubelet\plugins\source";

/// Builds a node with the path, and with the paths in kubelet's directory that it would be confused
/// with by code that cuts off as many characters or components as kubelet's directory has.
fn node(full: bool) -> Sim {
    let mut node = os_sim::node()
        .smb_server("files")
        .share("one")
        .user(r"domain\user", PASSWORD)
        .dir(SOURCE);
    for parent in [
        r"C:\var\lib\kubelet-evil",
        r"C:\var\lib\kubelet",
        r"C:\var\lib\kubelet\-evil",
    ] {
        node = if full {
            node.file(&format!(r"{parent}\p\kept"), b"kept")
        } else {
            node.dir(parent)
        };
    }
    node.disk(GIB).partitioned().formatted("NTFS").build()
}

const STATES: &[State] = &[
    state("no sibling", || node(false)),
    state("a full directory", || node(true)),
];

const OPERATIONS: &[Spec] = &[
    Spec::new("PathExists(sibling)", |_| {
        boxed(PathExists {
            path: path(SIBLING),
            context: None,
        })
    }),
    Spec::new("Mkdir(sibling)", |_| {
        boxed(Mkdir {
            path: path(SIBLING),
            context: None,
        })
    }),
    Spec::new("Rmdir(sibling)", |_| {
        boxed(Rmdir {
            path: path(SIBLING),
            context: None,
            force: true,
        })
    }),
    Spec::new("RmdirContents(sibling)", |_| {
        boxed(RmdirContents {
            path: path(SIBLING),
        })
    }),
    Spec::new("CreateSymlink(sibling)", |_| {
        boxed(CreateSymlink {
            source: path(SOURCE),
            target: path(SIBLING),
        })
    }),
    Spec::new("CreateSymlink(to a sibling)", |_| {
        boxed(CreateSymlink {
            source: path(SIBLING),
            target: path(r"C:\var\lib\kubelet\link"),
        })
    }),
    Spec::new("NewSmbGlobalMapping(sibling)", |_| {
        boxed(map(r"domain\user", PASSWORD, Some(SIBLING)))
    }),
    Spec::new("MountVolume(sibling)", |sim| {
        boxed(MountVolume {
            volume: volume(sim, 1),
            target: path(SIBLING),
        })
    }),
    Spec::new("UnmountVolume(sibling)", |sim| {
        boxed(UnmountVolume {
            volume: volume(sim, 1),
            target: path(SIBLING),
        })
    }),
];

/// Returns each operation that must stay in the working directories, on a path outside them.
pub fn scenarios() -> Vec<Scenario> {
    combine_all(OPERATIONS, STATES, Spec::must_be_denied)
}
