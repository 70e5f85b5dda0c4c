//! The operations on paths, on a path that an attacker changes at the same time.
//!
//! The path is `pods\a\p` in kubelet's directory. The targets of the attacker's links contain
//! entries with the names of the path's components, so that an operation that follows a link finds
//! something to damage.

use os_sim::{Builder, Sim};
use storage_ops::{
    CreateSymlink, GetClosestVolumeIdFromTargetPath, GetVolumeIdFromTargetPath, IsSymlink, Mkdir,
    MountVolume, PathExists, Rmdir, RmdirContents, UnmountVolume,
};

use super::filesystem::{PATH, tree};
use super::nested::{MOVED, nested};
use super::smb::{PASSWORD, map};
use super::{GIB, Scenario, Spec, State, boxed, combine_all, path, state, volume};

/// The components that the attacker changes.
pub const COMPONENTS: &[&str] = &[
    "pods",
    r"pods\a",
    r"pods\a\p",
    r"pods\a\p\d",
    r"pods\a\p\d\m",
    r"pods\a\p\new",
    r"pods\a\p\d\f",
];

/// Everything in kubelet's directory, and the volumes that are mounted there.
const INSIDE: &[&str] = &[
    r"disk 0 partition 2 \var\lib\kubelet\",
    r"disk 0 partition 2 mounted at C:\var\lib\kubelet\",
    r"disk 1 partition 2 mounted at C:\var\lib\kubelet\",
    r"disk 2 partition 2 mounted at C:\var\lib\kubelet\",
    r"mapping \\files\one ",
    // What the attacker creates on the volume that is mounted at the path.
    r"disk 1 partition 2 \new",
    r"disk 1 partition 2 \d",
];

/// The same, and the data on the volume that is mounted at the path.
const INSIDE_AND_VOLUME: &[&str] = &[
    r"disk 0 partition 2 \var\lib\kubelet\",
    r"disk 0 partition 2 mounted at C:\var\lib\kubelet\",
    r"disk 1 partition 2 mounted at C:\var\lib\kubelet\",
    r"disk 2 partition 2 mounted at C:\var\lib\kubelet\",
    r"disk 1 partition 2 \",
];

/// Adds directories where nothing may change, some full and some empty.
fn outside() -> Builder {
    let mut node = os_sim::node()
        .smb_server("files")
        .share("one")
        .user(r"domain\user", PASSWORD);
    for full in [
        r"C:\outside\a\p\d",
        r"C:\outside\p\d",
        r"C:\outside\d",
        r"C:\outside\m",
    ] {
        node = node
            .file(&format!(r"{full}\kept"), b"kept")
            .dir(&format!(r"{full}\empty"));
    }
    for vacant in [
        r"C:\vacant\a\p",
        r"C:\vacant\p",
        r"C:\vacant\d",
        r"C:\vacant\m",
    ] {
        node = node.dir(vacant);
    }
    node = node
        .dir(r"C:\var\lib\kubelet\plugins\source")
        .dir(r"C:\var\lib\kubelet\pods\a");
    node.disk(GIB).partitioned().formatted("NTFS")
}

/// Also mounts disk 1's volume outside kubelet's directory.
fn mounted_outside(mut node: Builder) -> Builder {
    for mounted in [
        r"C:\mounts\a\p",
        r"C:\mounts\p",
        r"C:\mounts\d",
        r"C:\mounts\m",
    ] {
        node = node.mounted(mounted);
    }
    for mounted in [r"C:\deep\a\p\d\m", r"C:\deep\p\d\m", r"C:\deep\d\m"] {
        node = node.mounted(mounted);
    }
    node
}

fn other_disk(node: Builder) -> Sim {
    let sim = node
        .disk(GIB)
        .partitioned()
        .formatted("NTFS")
        .mounted(r"C:\other")
        .build();
    let external = sim.external();
    external
        .mkdir_all(r"C:\other\a\p\d\m")
        .expect("a mounted volume");
    external
        .mkdir_all(r"C:\other\p\d")
        .expect("a mounted volume");
    external
        .write(r"C:\other\precious", b"precious")
        .expect("a mounted volume");
    // Fails where the volume is not mounted, which is fine.
    let _ = external.write(r"C:\mounts\p\precious", b"precious");
    sim
}

const STATES: &[State] = &[
    state("nothing", || other_disk(mounted_outside(outside()))),
    state("an empty directory", || {
        other_disk(mounted_outside(outside()).dir(PATH))
    }),
    state("a tree with a mount point in it", || {
        other_disk(tree(mounted_outside(outside())).mounted(r"C:\var\lib\kubelet\pods\a\p\d\m"))
    }),
    state("a volume mounted only here", || {
        other_disk(outside().mounted(PATH))
    }),
    state("a volume mounted here too", || {
        other_disk(mounted_outside(outside().mounted(PATH)))
    }),
];

const OPERATIONS: &[Spec] = &[
    Spec::new("PathExists", |_| {
        boxed(PathExists {
            path: path(PATH),
            context: None,
        })
    }),
    Spec::new("Rmdir", |_| {
        boxed(Rmdir {
            path: path(PATH),
            context: None,
            force: false,
        })
    }),
    Spec::new("Rmdir(with force)", |_| {
        boxed(Rmdir {
            path: path(PATH),
            context: None,
            force: true,
        })
    }),
    Spec::new("CreateSymlink", |_| {
        boxed(CreateSymlink {
            source: path(r"C:\var\lib\kubelet\plugins\source"),
            target: path(PATH),
        })
    }),
    Spec::new("NewSmbGlobalMapping", |_| {
        boxed(map(r"domain\user", PASSWORD, Some(PATH)))
    }),
    Spec::new("MountVolume", |sim| {
        boxed(MountVolume {
            volume: volume(sim, 1),
            target: path(PATH),
        })
    }),
    Spec::new("UnmountVolume", |sim| {
        boxed(UnmountVolume {
            volume: volume(sim, 1),
            target: path(PATH),
        })
    }),
    Spec::new("IsSymlink", |_| boxed(IsSymlink { path: path(PATH) })),
    Spec::new("GetVolumeIDFromTargetPath", |_| {
        boxed(GetVolumeIdFromTargetPath { target: path(PATH) })
    }),
    Spec::new("GetClosestVolumeIDFromTargetPath", |_| {
        boxed(GetClosestVolumeIdFromTargetPath { target: path(PATH) })
    }),
];

const OPERATIONS_ON_THE_VOLUME: &[Spec] = &[
    Spec::new("Mkdir", |_| {
        boxed(Mkdir {
            path: path(r"C:\var\lib\kubelet\pods\a\p\new\deep"),
            context: None,
        })
    }),
    // Its purpose is to empty the volume that is mounted at the path.
    Spec::new("RmdirContents", |_| {
        boxed(RmdirContents { path: path(PATH) })
    }),
];

/// The states of nested working directories.
const NESTED_STATES: &[State] = &[
    state("an inner directory", || {
        other_disk(tree(mounted_outside(outside())).dir(MOVED))
    }),
    state("an inner directory that was moved", || {
        let sim = other_disk(mounted_outside(outside()).dir(r"C:\moved\pods\a\p\d"));
        sim.external()
            .remove_all(r"C:\var\lib\kubelet\pods")
            .expect("a directory");
        sim.external()
            .junction(r"C:\var\lib\kubelet\pods", MOVED)
            .expect("a free name");
        sim
    }),
];

/// Everything in kubelet's directory, and in the one to which `pods` was moved.
const INSIDE_OR_MOVED: &[&str] = &[
    r"disk 0 partition 2 \var\lib\kubelet\",
    r"disk 0 partition 2 \moved\pods\",
    r"disk 0 partition 2 mounted at C:\var\lib\kubelet\",
    r"disk 1 partition 2 mounted at C:\var\lib\kubelet\",
    r"disk 2 partition 2 mounted at C:\var\lib\kubelet\",
    r"disk 1 partition 2 \new",
];

const NESTED: &[Spec] = &[
    Spec::new("Mkdir(inner)", |_| {
        boxed(Mkdir {
            path: path(r"C:\var\lib\kubelet\pods\a\p\new\deep"),
            context: None,
        })
    }),
    Spec::new("Rmdir(inner)", |_| {
        boxed(Rmdir {
            path: path(PATH),
            context: None,
            force: true,
        })
    }),
    Spec::new("RmdirContents(inner)", |_| {
        boxed(RmdirContents { path: path(PATH) })
    }),
    Spec::new("CreateSymlink(inner)", |_| {
        boxed(CreateSymlink {
            source: path(r"C:\var\lib\kubelet\plugins\source"),
            target: path(PATH),
        })
    }),
];

/// Returns each operation on paths in each state that an attacker can exploit.
pub fn scenarios() -> Vec<Scenario> {
    [
        combine_all(OPERATIONS, STATES, |spec| spec.may_change(INSIDE)),
        combine_all(OPERATIONS_ON_THE_VOLUME, STATES, |spec| {
            spec.may_change(INSIDE_AND_VOLUME)
        }),
        combine_all(NESTED, NESTED_STATES, |spec| {
            spec.with(nested).may_change(INSIDE_OR_MOVED)
        }),
    ]
    .concat()
}
