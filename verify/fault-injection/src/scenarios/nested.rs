//! The operations on paths if working directories are inside other ones, or are reached over other
//! volumes.

use os_sim::{Builder, Sim};
use storage_ops::{
    Config, CreateSymlink, DiskNumber, Mkdir, MountVolume, PathExists, Rmdir, RmdirContents,
    SetDiskState, UnmountVolume,
};

use super::filesystem::{PATH, SOURCE, tree};
use super::smb::{PASSWORD, map};
use super::{GIB, Scenario, Spec, State, boxed, combine_all, path, state, volume};

/// Where an administrator has moved kubelet's directory `pods`, in some states.
pub(crate) const MOVED: &str = r"C:\moved\pods";

const PODS: &str = r"C:\var\lib\kubelet\pods";

/// What contains a working directory.
const ABOVE: &str = r"C:\var\lib\kubelet\plugins";

/// Settings with two working directories in kubelet's.
pub(crate) fn nested() -> Config {
    Config::default().with(|c| {
        c.pod_dir = Some(path(PODS));
        c.plugin_dir = Some(path(r"C:\var\lib\kubelet\plugins\source\csi"));
        c.working_dirs = vec![path(MOVED)];
    })
}

fn node() -> Builder {
    let node = os_sim::node()
        .smb_server("files")
        .share("one")
        .user(r"domain\user", PASSWORD);
    let node = node
        .dir(SOURCE)
        .file(r"C:\outside\a\p\kept", b"kept")
        .dir(r"C:\var\lib\kubelet\pods\a")
        .dir(MOVED);
    node.disk(GIB).partitioned().formatted("NTFS")
}

/// Makes kubelet's `pods` a link, as an administrator or a container that has kubelet's directory
/// can.
fn replaced(node: &Builder, target: &str) -> Sim {
    let sim = node.build();
    sim.external().remove_all(PODS).expect("a directory");
    sim.external().junction(PODS, target).expect("a free name");
    sim
}

const STATES: &[State] = &[
    state("an inner directory", || tree(node()).build()),
    state("an inner directory that was moved", || {
        replaced(&node().dir(r"C:\moved\pods\a\p\d"), MOVED)
    }),
    state("an inner directory that leads out", || {
        replaced(&node(), r"C:\outside")
    }),
];

const CHANGES: &[&str] = &[
    r"disk 0 partition 2 \var\lib\kubelet\pods\a",
    r"disk 0 partition 2 \moved\pods\a",
    r"disk 1 partition 2 mounted at C:\var\lib\kubelet\pods\a",
    r"disk 1 partition 2 mounted at C:\moved\pods\a",
];

const OPERATIONS: &[Spec] = &[
    Spec::new("PathExists(inner)", |_| {
        boxed(PathExists {
            path: path(PATH),
            context: None,
        })
    }),
    Spec::new("Mkdir(inner)", |_| {
        boxed(Mkdir {
            path: path(r"C:\var\lib\kubelet\pods\a\p\new"),
            context: None,
        })
    })
    .may_change(CHANGES),
    Spec::new("Rmdir(inner)", |_| {
        boxed(Rmdir {
            path: path(PATH),
            context: None,
            force: true,
        })
    })
    .may_change(CHANGES)
    .ensures(|sim| !sim.external().exists(PATH)),
    Spec::new("RmdirContents(inner)", |_| {
        boxed(RmdirContents { path: path(PATH) })
    })
    .may_change(CHANGES),
    Spec::new("CreateSymlink(inner)", |_| {
        boxed(CreateSymlink {
            source: path(SOURCE),
            target: path(PATH),
        })
    })
    .may_change(CHANGES),
    Spec::new("MountVolume(inner)", |sim| {
        boxed(MountVolume {
            volume: volume(sim, 1),
            target: path(r"C:\var\lib\kubelet\pods\a\p\d"),
        })
    })
    .may_change(CHANGES),
];

const OPERATIONS_ABOVE: &[Spec] = &[
    Spec::new("Rmdir(above)", |_| {
        boxed(Rmdir {
            path: path(ABOVE),
            context: None,
            force: true,
        })
    }),
    Spec::new("RmdirContents(above)", |_| {
        boxed(RmdirContents { path: path(ABOVE) })
    }),
    Spec::new("CreateSymlink(above)", |_| {
        boxed(CreateSymlink {
            source: path(PODS),
            target: path(ABOVE),
        })
    }),
    Spec::new("NewSmbGlobalMapping(above)", |_| {
        boxed(map(r"domain\user", PASSWORD, Some(ABOVE)))
    }),
    Spec::new("MountVolume(above)", |sim| {
        boxed(MountVolume {
            volume: volume(sim, 1),
            target: path(ABOVE),
        })
    }),
    Spec::new("UnmountVolume(above)", |sim| {
        boxed(UnmountVolume {
            volume: volume(sim, 1),
            target: path(ABOVE),
        })
    }),
];

/// Settings with kubelet's directory behind a link on the volume of disk 1 to that of disk 2.
fn behind_links() -> Config {
    Config::default().with(|c| c.kubelet_dir = path(r"C:\first\k"))
}

const BEHIND_LINKS: State = state("a working directory behind links", || {
    let node = os_sim::node()
        .disk(GIB)
        .partitioned()
        .formatted("NTFS")
        .mounted(r"C:\first");
    let node = node
        .disk(GIB)
        .partitioned()
        .formatted("NTFS")
        .mounted(r"C:\second");
    node.dir(r"C:\second\kubelet\pods\a\p")
        .junction(r"C:\first\k", r"C:\second\kubelet")
        .build()
});

const ON_THE_WAY: &[Spec] = &[
    Spec::new("MountVolume(on the way)", |sim| {
        boxed(MountVolume {
            volume: volume(sim, 1),
            target: path(r"C:\first\k\pods\a\p"),
        })
    }),
    Spec::new("SetDiskState(on the way)", |_| {
        boxed(SetDiskState {
            disk: DiskNumber(1),
            online: false,
        })
    }),
];

/// Returns each operation on paths with nested working directories, and with one behind links.
pub fn scenarios() -> Vec<Scenario> {
    let above = |spec: Spec| spec.with(nested).must_be_denied();
    let on_the_way = |spec: Spec| spec.with(behind_links).must_be_denied();
    [
        combine_all(OPERATIONS, STATES, |spec| spec.with(nested)),
        combine_all(OPERATIONS_ABOVE, STATES, above),
        combine_all(ON_THE_WAY, &[BEHIND_LINKS], on_the_way),
    ]
    .concat()
}
