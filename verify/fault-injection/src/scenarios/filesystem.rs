//! The operations on files and directories, each on one path.

use os_sim::Builder;
use storage_ops::{
    CreateSymlink, GetClosestVolumeIdFromTargetPath, GetVolumeIdFromTargetPath, IsSymlink, Mkdir,
    PathExists, Rmdir, RmdirContents,
};

use super::{GIB, KUBELET, Scenario, Spec, State, boxed, combine, path, state};

/// The path that the operations work on.
pub(crate) const PATH: &str = r"C:\var\lib\kubelet\pods\a\p";

/// An empty directory, to which links are made.
pub(crate) const SOURCE: &str = r"C:\var\lib\kubelet\plugins\source";

fn parent() -> Builder {
    os_sim::node()
        .dir(SOURCE)
        .dir(r"C:\outside\kept")
        .dir(r"C:\var\lib\kubelet\pods\a")
}

/// Adds a directory that contains each kind of entry.
pub(crate) fn tree(node: Builder) -> Builder {
    node.dir(r"C:\var\lib\kubelet\pods\a\p\d\deep\deeper")
        .file(r"C:\var\lib\kubelet\pods\a\p\d\f", b"1")
        .file(r"C:\var\lib\kubelet\pods\a\p\g", b"2")
        .symlink(r"C:\var\lib\kubelet\pods\a\p\link", r"C:\outside")
        .junction(r"C:\var\lib\kubelet\pods\a\p\d\junction", r"C:\outside")
}

const STATES: &[State] = &[
    state("nothing", || parent().build()),
    state("no parent", || os_sim::node().dir(SOURCE).build()),
    state("kubelet's directory missing", || {
        let sim = os_sim::node().build();
        sim.external().remove_all(KUBELET).expect("a directory");
        sim
    }),
    state("an empty directory", || parent().dir(PATH).build()),
    state("a tree", || {
        let sim = tree(parent()).build();
        sim.external()
            .set_read_only(r"C:\var\lib\kubelet\pods\a\p\d\f", true)
            .expect("a file");
        sim
    }),
    state("a tree with a mount point in it", || {
        let disk = tree(parent()).disk(GIB).partitioned().formatted("NTFS");
        let sim = disk.mounted(r"C:\var\lib\kubelet\pods\a\p\d\m").build();
        sim.external()
            .write(r"C:\var\lib\kubelet\pods\a\p\d\m\precious", b"precious")
            .expect("a volume");
        sim
    }),
    state("a file", || parent().file(PATH, b"1").build()),
    state("the same link", || parent().symlink(PATH, SOURCE).build()),
    state("another link", || {
        parent().symlink(PATH, r"C:\outside").build()
    }),
    state("a dangling link", || {
        parent().symlink(PATH, r"C:\gone").build()
    }),
    state("a junction", || {
        parent().junction(PATH, r"C:\outside").build()
    }),
    state("a mounted volume", || {
        let sim = parent()
            .disk(GIB)
            .partitioned()
            .formatted("NTFS")
            .mounted(PATH)
            .build();
        let external = sim.external();
        external
            .mkdir_all(r"C:\var\lib\kubelet\pods\a\p\d\e")
            .expect("a volume");
        external
            .write(r"C:\var\lib\kubelet\pods\a\p\f", b"1")
            .expect("a volume");
        external
            .symlink(r"C:\var\lib\kubelet\pods\a\p\l", r"C:\outside")
            .expect("a volume");
        sim
    }),
    state("a mounted FAT volume", || {
        let sim = parent()
            .disk(GIB)
            .partitioned()
            .formatted("FAT32")
            .mounted(PATH)
            .build();
        let external = sim.external();
        external
            .mkdir_all(r"C:\var\lib\kubelet\pods\a\p\d\e")
            .expect("a volume");
        external
            .write(r"C:\var\lib\kubelet\pods\a\p\f", b"1")
            .expect("a volume");
        external
            .set_read_only(r"C:\var\lib\kubelet\pods\a\p\f", true)
            .expect("a file");
        sim
    }),
    state("kubelet's directory on a FAT volume", || {
        let fat = parent()
            .dir(PATH)
            .disk(GIB)
            .partitioned()
            .formatted("FAT32")
            .mounted(r"C:\fat");
        let sim = fat
            .dir(r"C:\fat\kubelet\pods\a\p\d")
            .dir(r"C:\fat\kubelet\plugins\source")
            .build();
        let external = sim.external();
        external.remove_all(KUBELET).expect("a directory");
        external
            .symlink(KUBELET, r"C:\fat\kubelet")
            .expect("a free name");
        sim
    }),
    state("Windows on a FAT volume", || {
        let sim = os_sim::node()
            .disk(GIB)
            .partitioned()
            .formatted("FAT32")
            .build();
        let external = sim.external();
        external.set_drive_letter('C', sim.volume_on(1).expect("a volume").id);
        external
            .mkdir_all(&format!(r"{PATH}\d"))
            .expect("a directory");
        external.mkdir_all(SOURCE).expect("a directory");
        sim
    }),
    state("a stale mount point", || {
        let sim = parent()
            .disk(GIB)
            .partitioned()
            .formatted("NTFS")
            .mounted(PATH)
            .build();
        sim.unplug_disk(1).expect("disk 1");
        sim
    }),
    state("a link as parent directory", || {
        os_sim::node()
            .dir(SOURCE)
            .dir(r"C:\outside\p\kept")
            .symlink(PARENT, r"C:\outside")
            .build()
    }),
    state("a junction as parent directory", || {
        os_sim::node()
            .dir(SOURCE)
            .dir(r"C:\outside\p\kept")
            .junction(PARENT, r"C:\outside")
            .build()
    }),
    state("kubelet's directory a link", || {
        let sim = parent().dir(r"C:\moved").build();
        let external = sim.external();
        external
            .rename(KUBELET, r"C:\moved\kubelet")
            .expect("a directory");
        external
            .symlink(KUBELET, r"C:\moved\kubelet")
            .expect("a free name");
        sim
    }),
];

const PARENT: &str = r"C:\var\lib\kubelet\pods\a";

/// The path in a snapshot. The system's files are on the second partition of disk 0.
const AT_PATH: &str = r"disk 0 partition 2 \var\lib\kubelet\pods\a";
const AT_MOVED_PATH: &str = r"disk 0 partition 2 \moved\kubelet\pods\a";
const AT_FAT_PATH: &str = r"disk 1 partition 2 \kubelet\pods\a";
const AT_PATH_ON_FAT: &str = r"disk 1 partition 2 \var\lib\kubelet\pods\a";
const MOUNTED: &str = r"disk 1 partition 2 mounted at C:\var\lib\kubelet\pods\a\p";

const OPERATIONS: &[Spec] = &[
    Spec::new("PathExists", |_| {
        boxed(PathExists {
            path: path(PATH),
            context: None,
        })
    }),
    Spec::new("Mkdir", |_| {
        boxed(Mkdir {
            path: path(PATH),
            context: None,
        })
    })
    .may_change(&[AT_PATH, AT_MOVED_PATH, AT_FAT_PATH, AT_PATH_ON_FAT])
    .ensures(|sim| sim.external().exists(PATH)),
    Spec::new("Rmdir", |_| {
        boxed(Rmdir {
            path: path(PATH),
            context: None,
            force: false,
        })
    })
    .may_change(&[AT_PATH, AT_MOVED_PATH, AT_FAT_PATH, AT_PATH_ON_FAT, MOUNTED])
    .ensures(|sim| !sim.external().exists(PATH)),
    Spec::new("Rmdir(with force)", |_| {
        boxed(Rmdir {
            path: path(PATH),
            context: None,
            force: true,
        })
    })
    .may_change(&[AT_PATH, AT_MOVED_PATH, AT_FAT_PATH, AT_PATH_ON_FAT, MOUNTED])
    .ensures(|sim| !sim.external().exists(PATH)),
    Spec::new("RmdirContents", |_| {
        boxed(RmdirContents { path: path(PATH) })
    })
    .may_change(&[
        r"disk 0 partition 2 \var\lib\kubelet\pods\a\p\",
        r"disk 1 partition 2 \kubelet\pods\a\p\",
        r"disk 1 partition 2 \var\lib\kubelet\pods\a\p\",
        r"disk 1 partition 2 \d",
        r"disk 1 partition 2 \f",
        r"disk 1 partition 2 \l",
        r"disk 1 partition 2 mounted at C:\var\lib\kubelet\pods\a\p\d\m",
    ])
    .ensures(|sim| {
        sim.external()
            .read_dir(PATH)
            .is_ok_and(|names| names.is_empty())
    }),
    Spec::new("CreateSymlink", |_| {
        boxed(CreateSymlink {
            source: path(SOURCE),
            target: path(PATH),
        })
    })
    .may_change(&[AT_PATH, AT_MOVED_PATH, AT_FAT_PATH, AT_PATH_ON_FAT])
    .ensures(|sim| sim.external().is_link(PATH)),
    Spec::new("IsSymlink", |_| boxed(IsSymlink { path: path(PATH) })),
    Spec::new("GetVolumeIDFromTargetPath", |_| {
        boxed(GetVolumeIdFromTargetPath { target: path(PATH) })
    }),
    Spec::new("GetClosestVolumeIDFromTargetPath", |_| {
        boxed(GetClosestVolumeIdFromTargetPath { target: path(PATH) })
    }),
];

/// Returns each operation on paths in each state of a path.
pub fn scenarios() -> Vec<Scenario> {
    combine(OPERATIONS, STATES)
}
