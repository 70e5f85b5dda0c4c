//! The operations on paths, on a path that somebody else works on at the same time.
//!
//! The path is `pods\a\p` in kubelet's directory. The directories that the attacker's links lead to hold what the
//! path's components are called, so that whoever is led there finds something to do damage to.

use os_sim::{Builder, Sim};
use storage_ops::{
    CreateSymlink, GetClosestVolumeIdFromTargetPath, GetVolumeIdFromTargetPath, IsSymlink, Mkdir, MountVolume,
    PathExists, Rmdir, RmdirContents, UnmountVolume,
};

use super::filesystem::{PATH, tree};
use super::smb::{PASSWORD, map};
use super::{GIB, ask, path, volume};
use crate::request::{Asked, Scenario, State, all_of};

/// The components that are attacked.
pub const COMPONENTS: &[&str] = &["pods", r"pods\a", r"pods\a\p", r"pods\a\p\d", r"pods\a\p\d\m", r"pods\a\p\new"];

/// Everything inside, and what is mounted inside.
const INSIDE: &[&str] = &[
    r"disk 0 partition 2 \var\lib\kubelet\",
    r"disk 0 partition 2 mounted at C:\var\lib\kubelet\",
    r"disk 1 partition 2 mounted at C:\var\lib\kubelet\",
    r"disk 2 partition 2 mounted at C:\var\lib\kubelet\",
    r"mapping \\files\one ",
    // What the attacker makes on the volume that is mounted at the path.
    r"disk 1 partition 2 \new",
    r"disk 1 partition 2 \d",
];

/// The same, and the data of the volume that is mounted at the path.
const INSIDE_AND_VOLUME: &[&str] = &[
    r"disk 0 partition 2 \var\lib\kubelet\",
    r"disk 0 partition 2 mounted at C:\var\lib\kubelet\",
    r"disk 1 partition 2 mounted at C:\var\lib\kubelet\",
    r"disk 2 partition 2 mounted at C:\var\lib\kubelet\",
    r"disk 1 partition 2 \",
];

/// Where nothing may happen: full directories, empty ones, and mount points.
fn outside() -> Builder {
    let mut node = os_sim::node().smb_server("files").share("one").user(r"domain\user", PASSWORD);
    for full in [r"C:\outside\a\p\d", r"C:\outside\p\d", r"C:\outside\d", r"C:\outside\m"] {
        node = node.file(&format!(r"{full}\kept"), b"kept").dir(&format!(r"{full}\empty"));
    }
    for vacant in [r"C:\vacant\a\p", r"C:\vacant\p", r"C:\vacant\d", r"C:\vacant\m"] {
        node = node.dir(vacant);
    }
    node = node.dir(r"C:\var\lib\kubelet\plugins\source").dir(r"C:\var\lib\kubelet\pods\a");
    node.disk(GIB).partitioned().formatted("NTFS")
}

/// Disk 1's volume is mounted outside, too.
fn mounted_outside(mut node: Builder) -> Builder {
    for mounted in [r"C:\mounts\a\p", r"C:\mounts\p", r"C:\mounts\d", r"C:\mounts\m"] {
        node = node.mounted(mounted);
    }
    for mounted in [r"C:\deep\a\p\d\m", r"C:\deep\p\d\m", r"C:\deep\d\m"] {
        node = node.mounted(mounted);
    }
    node
}

fn other_disk(node: Builder) -> Sim {
    let sim = node.disk(GIB).partitioned().formatted("NTFS").mounted(r"C:\other").build();
    let door = sim.external();
    door.mkdir_all(r"C:\other\a\p\d\m").expect("a mounted volume");
    door.mkdir_all(r"C:\other\p\d").expect("a mounted volume");
    door.write(r"C:\other\precious", b"precious").expect("a mounted volume");
    // Not where the volume is mounted nowhere yet.
    let _ = door.write(r"C:\mounts\p\precious", b"precious");
    sim
}

const STATES: &[State] = &[
    State { name: "nothing", build: || other_disk(mounted_outside(outside())) },
    State { name: "an empty directory", build: || other_disk(mounted_outside(outside()).dir(PATH)) },
    State {
        name: "a tree with a mount point in it",
        build: || other_disk(tree(mounted_outside(outside())).mounted(r"C:\var\lib\kubelet\pods\a\p\d\m")),
    },
    State { name: "a volume mounted here alone", build: || other_disk(outside().mounted(PATH)) },
    State { name: "a volume mounted here too", build: || other_disk(mounted_outside(outside().mounted(PATH))) },
];

const OPERATIONS: &[Asked] = &[
    Asked::new("PathExists", |_| ask(PathExists { path: path(PATH), context: None })).changing(INSIDE),
    Asked::new("Mkdir", |_| ask(Mkdir { path: path(r"C:\var\lib\kubelet\pods\a\p\new\deep"), context: None }))
        .changing(INSIDE_AND_VOLUME),
    Asked::new("Rmdir", |_| ask(Rmdir { path: path(PATH), context: None, force: false })).changing(INSIDE),
    Asked::new("Rmdir(with force)", |_| ask(Rmdir { path: path(PATH), context: None, force: true })).changing(INSIDE),
    Asked::new("CreateSymlink", |_| {
        ask(CreateSymlink { source: path(r"C:\var\lib\kubelet\plugins\source"), target: path(PATH) })
    })
    .changing(INSIDE),
    Asked::new("NewSmbGlobalMapping", |_| ask(map(r"domain\user", PASSWORD, Some(PATH)))).changing(INSIDE),
    Asked::new("MountVolume", |sim| ask(MountVolume { volume: volume(sim, 1), target: path(PATH) })).changing(INSIDE),
    Asked::new("UnmountVolume", |sim| ask(UnmountVolume { volume: volume(sim, 1), target: path(PATH) }))
        .changing(INSIDE),
    Asked::new("IsSymlink", |_| ask(IsSymlink { path: path(PATH) })).changing(INSIDE),
    Asked::new("GetVolumeIDFromTargetPath", |_| ask(GetVolumeIdFromTargetPath { target: path(PATH) })).changing(INSIDE),
    Asked::new("GetClosestVolumeIDFromTargetPath", |_| ask(GetClosestVolumeIdFromTargetPath { target: path(PATH) }))
        .changing(INSIDE),
    // What is mounted at the path is emptied: that is what it is for.
    Asked::new("RmdirContents", |_| ask(RmdirContents { path: path(PATH) })).changing(INSIDE_AND_VOLUME),
];

/// Each operation on paths in each state that an attacker can use.
pub fn scenarios() -> Vec<Scenario> {
    all_of(OPERATIONS, STATES)
}
