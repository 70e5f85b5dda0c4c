//! The operations on files, each on one path in its states.

use os_sim::Builder;
use storage_ops::{
    CreateSymlink, GetClosestVolumeIdFromTargetPath, GetVolumeIdFromTargetPath, IsSymlink, Mkdir, PathExists, Rmdir,
    RmdirContents,
};

use super::{GIB, KUBELET, ask, path};
use crate::request::{Asked, Scenario, State, all_of};

/// What the operations are about.
pub(crate) const PATH: &str = r"C:\var\lib\kubelet\pods\a\p";

const SOURCE: &str = r"C:\var\lib\kubelet\plugins\source";

fn parent() -> Builder {
    os_sim::node().dir(SOURCE).dir(r"C:\outside\kept").dir(r"C:\var\lib\kubelet\pods\a")
}

/// A directory with one of everything in it.
pub(crate) fn tree(node: Builder) -> Builder {
    node.dir(r"C:\var\lib\kubelet\pods\a\p\d\deep\deeper")
        .file(r"C:\var\lib\kubelet\pods\a\p\d\f", b"1")
        .file(r"C:\var\lib\kubelet\pods\a\p\g", b"2")
        .symlink(r"C:\var\lib\kubelet\pods\a\p\link", r"C:\outside")
        .junction(r"C:\var\lib\kubelet\pods\a\p\d\junction", r"C:\outside")
}

const STATES: &[State] = &[
    State { name: "nothing", build: || parent().build() },
    State { name: "no parent", build: || os_sim::node().dir(SOURCE).build() },
    State {
        name: "kubelet's directory missing",
        build: || {
            let sim = os_sim::node().build();
            sim.external().remove_all(KUBELET).expect("a directory");
            sim
        },
    },
    State { name: "an empty directory", build: || parent().dir(PATH).build() },
    State {
        name: "a tree",
        build: || {
            let sim = tree(parent()).build();
            sim.external().set_read_only(r"C:\var\lib\kubelet\pods\a\p\d\f", true).expect("a file");
            sim
        },
    },
    State {
        name: "a tree with a mount point in it",
        build: || {
            let disk = tree(parent()).disk(GIB).partitioned().formatted("NTFS");
            let sim = disk.mounted(r"C:\var\lib\kubelet\pods\a\p\d\m").build();
            sim.external().write(r"C:\var\lib\kubelet\pods\a\p\d\m\precious", b"precious").expect("a volume");
            sim
        },
    },
    State { name: "a file", build: || parent().file(PATH, b"1").build() },
    State { name: "the link", build: || parent().symlink(PATH, SOURCE).build() },
    State { name: "another link", build: || parent().symlink(PATH, r"C:\outside").build() },
    State { name: "a dangling link", build: || parent().symlink(PATH, r"C:\gone").build() },
    State { name: "a junction", build: || parent().junction(PATH, r"C:\outside").build() },
    State {
        name: "a mounted volume",
        build: || {
            let sim = parent().disk(GIB).partitioned().formatted("NTFS").mounted(PATH).build();
            let door = sim.external();
            door.mkdir_all(r"C:\var\lib\kubelet\pods\a\p\d\e").expect("a volume");
            door.write(r"C:\var\lib\kubelet\pods\a\p\f", b"1").expect("a volume");
            door.symlink(r"C:\var\lib\kubelet\pods\a\p\l", r"C:\outside").expect("a volume");
            sim
        },
    },
    State {
        name: "a stale mount point",
        build: || {
            let sim = parent().disk(GIB).partitioned().formatted("NTFS").mounted(PATH).build();
            sim.detach_disk(1).expect("disk 1");
            sim
        },
    },
    State {
        name: "a link above",
        build: || os_sim::node().dir(SOURCE).dir(r"C:\outside\p\kept").symlink(ABOVE, r"C:\outside").build(),
    },
    State {
        name: "a junction above",
        build: || os_sim::node().dir(SOURCE).dir(r"C:\outside\p\kept").junction(ABOVE, r"C:\outside").build(),
    },
    State {
        name: "kubelet's directory a link",
        build: || {
            let sim = parent().dir(r"C:\moved").build();
            let door = sim.external();
            door.rename(KUBELET, r"C:\moved\kubelet").expect("a directory");
            door.symlink(KUBELET, r"C:\moved\kubelet").expect("a free name");
            sim
        },
    },
];

const ABOVE: &str = r"C:\var\lib\kubelet\pods\a";

/// Where a snapshot shows the path; the system's files are on the second partition of disk 0.
const AT_PATH: &str = r"disk 0 partition 2 \var\lib\kubelet\pods\a";
const WHERE_MOVED: &str = r"disk 0 partition 2 \moved\kubelet\pods\a";
const MOUNTED: &str = r"disk 1 partition 2 mounted at C:\var\lib\kubelet\pods\a\p";

const OPERATIONS: &[Asked] = &[
    Asked::new("PathExists", |_| ask(PathExists { path: path(PATH), context: None })),
    Asked::new("Mkdir", |_| ask(Mkdir { path: path(PATH), context: None }))
        .changing(&[AT_PATH, WHERE_MOVED])
        .reaching(|sim| sim.external().exists(PATH)),
    Asked::new("Rmdir", |_| ask(Rmdir { path: path(PATH), context: None, force: false }))
        .changing(&[AT_PATH, WHERE_MOVED, MOUNTED])
        .reaching(|sim| !sim.external().exists(PATH)),
    Asked::new("Rmdir(with force)", |_| ask(Rmdir { path: path(PATH), context: None, force: true }))
        .changing(&[AT_PATH, WHERE_MOVED, MOUNTED])
        .reaching(|sim| !sim.external().exists(PATH)),
    Asked::new("RmdirContents", |_| ask(RmdirContents { path: path(PATH) }))
        .changing(&[
            r"disk 0 partition 2 \var\lib\kubelet\pods\a\p\",
            r"disk 1 partition 2 \d",
            r"disk 1 partition 2 \f",
            r"disk 1 partition 2 \l",
            r"disk 1 partition 2 mounted at C:\var\lib\kubelet\pods\a\p\d\m",
        ])
        .reaching(|sim| sim.external().read_dir(PATH).is_ok_and(|names| names.is_empty())),
    Asked::new("CreateSymlink", |_| ask(CreateSymlink { source: path(SOURCE), target: path(PATH) }))
        .changing(&[AT_PATH, WHERE_MOVED])
        .reaching(|sim| sim.external().is_link(PATH)),
    Asked::new("IsSymlink", |_| ask(IsSymlink { path: path(PATH) })),
    Asked::new("GetVolumeIDFromTargetPath", |_| ask(GetVolumeIdFromTargetPath { target: path(PATH) })),
    Asked::new("GetClosestVolumeIDFromTargetPath", |_| ask(GetClosestVolumeIdFromTargetPath { target: path(PATH) })),
];

/// Each operation on paths in each state of a path.
pub fn scenarios() -> Vec<Scenario> {
    all_of(OPERATIONS, STATES)
}
