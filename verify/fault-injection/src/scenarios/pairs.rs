//! The pairs of operations that can run at the same time on one object.

use std::time::Duration;

use os_sim::{Builder, Sim};
use storage_ops::{
    CreateSymlink, DiskNumber, FormatVolume, Mkdir, MountVolume, PartitionDisk,
    RemoveSmbGlobalMapping, ResizeTarget, ResizeVolume, Rmdir, RmdirContents, ServiceName,
    SetDiskState, StartService, StopService, UncPath, UnmountVolume,
};

use super::smb::{PASSWORD, map, server};
use super::volume::TARGET;
use super::{GIB, MakeRequest, boxed, path, volume};
use crate::fault_sweep::slow_down;
use crate::pair_sweep::Pair;

const ONE: DiskNumber = DiskNumber(1);
const OTHER_TARGET: &str = r"C:\var\lib\kubelet\plugins\w";

fn ntfs() -> Builder {
    os_sim::node()
        .disk(GIB)
        .partitioned()
        .formatted("NTFS")
        .dir(OTHER_TARGET)
}

fn two() -> Sim {
    ntfs()
        .disk(GIB)
        .partitioned()
        .formatted("NTFS")
        .dir(TARGET)
        .build()
}

/// Longer than any operation waits: a job of the first is still running when the second starts.
const BEYOND_TIMEOUTS: Duration = Duration::from_mins(15);

fn slowly(node: &Builder) -> Sim {
    let sim = node.build();
    slow_down(&sim, BEYOND_TIMEOUTS);
    sim
}

const PARTITION: MakeRequest = |_| boxed(PartitionDisk { disk: ONE });
const OFFLINE: MakeRequest = |_| {
    boxed(SetDiskState {
        disk: ONE,
        online: false,
    })
};
const ONLINE: MakeRequest = |_| {
    boxed(SetDiskState {
        disk: ONE,
        online: true,
    })
};
const FORMAT: MakeRequest = |sim| boxed(FormatVolume::new(volume(sim, 1)));
const MOUNT: MakeRequest = |sim| {
    boxed(MountVolume {
        volume: volume(sim, 1),
        target: path(TARGET),
    })
};
const MOUNT_ELSEWHERE: MakeRequest = |sim| {
    boxed(MountVolume {
        volume: volume(sim, 1),
        target: path(OTHER_TARGET),
    })
};
const MOUNT_ANOTHER: MakeRequest = |sim| {
    boxed(MountVolume {
        volume: volume(sim, 2),
        target: path(TARGET),
    })
};
const UNMOUNT: MakeRequest = |sim| {
    boxed(UnmountVolume {
        volume: volume(sim, 1),
        target: path(TARGET),
    })
};
const RMDIR: MakeRequest = |_| {
    boxed(Rmdir {
        path: path(TARGET),
        context: None,
        force: false,
    })
};
const RMDIR_WITH_FORCE: MakeRequest = |_| {
    boxed(Rmdir {
        path: path(TARGET),
        context: None,
        force: true,
    })
};
const EMPTY_IT: MakeRequest = |_| boxed(RmdirContents { path: path(TARGET) });
const MKDIR: MakeRequest = |_| {
    boxed(Mkdir {
        path: path(TARGET),
        context: None,
    })
};
const MKDIR_BELOW: MakeRequest = |_| {
    boxed(Mkdir {
        path: path(&format!(r"{TARGET}\below")),
        context: None,
    })
};
const RESIZE: MakeRequest = |sim| boxed(ResizeVolume::new(ResizeTarget::Volume(volume(sim, 1)), 0));
const LINK: MakeRequest = |_| {
    boxed(CreateSymlink {
        source: path(OTHER_TARGET),
        target: path(TARGET),
    })
};
const ANOTHER_LINK: MakeRequest = |_| {
    boxed(CreateSymlink {
        source: path(r"C:\var\lib\kubelet\pods"),
        target: path(TARGET),
    })
};
const MAP_FOR_ONE: MakeRequest = |_| boxed(map(r"domain\user", PASSWORD, Some(TARGET)));
const MAP_FOR_ANOTHER: MakeRequest = |_| boxed(map(r"domain\other", PASSWORD, Some(OTHER_TARGET)));
const UNMAP: MakeRequest = |_| {
    boxed(RemoveSmbGlobalMapping {
        remote: UncPath::parse(r"\\files\one").expect("a remote path"),
    })
};
const START: MakeRequest = |_| {
    boxed(StartService {
        name: ServiceName::parse("base").expect("a name"),
    })
};
const STOP: MakeRequest = |_| {
    boxed(StopService {
        name: ServiceName::parse("base").expect("a name"),
        force: true,
    })
};

const fn pair(name: &'static str, build: fn() -> Sim, requests: [MakeRequest; 2]) -> Pair {
    Pair {
        name,
        build,
        requests,
    }
}

const RAW: fn() -> Sim = || os_sim::node().disk(GIB).build();
const RAW_SLOWLY: fn() -> Sim = || slowly(&os_sim::node().disk(GIB));
const PARTITIONED: fn() -> Sim = || os_sim::node().disk(GIB).partitioned().dir(TARGET).build();
const PARTITIONED_SLOWLY: fn() -> Sim =
    || slowly(&os_sim::node().disk(GIB).partitioned().dir(TARGET));
const WITH_TARGET: fn() -> Sim = || ntfs().dir(TARGET).build();
const MOUNTED: fn() -> Sim = || ntfs().mounted(TARGET).build();
const GROWN: fn() -> Sim = || ntfs().grown_to(2 * GIB).build();
const GROWN_SLOWLY: fn() -> Sim = || slowly(&ntfs().mounted(TARGET).grown_to(2 * GIB));
const NO_DISK: fn() -> Sim = || os_sim::node().build();
const SERVICE: fn() -> Sim = || {
    os_sim::node()
        .service("base", "Base")
        .slow(Duration::from_secs(2))
        .build()
};

/// All pairs.
pub const PAIRS: &[Pair] = &[
    pair("PartitionDisk twice", RAW, [PARTITION, PARTITION]),
    pair(
        "PartitionDisk and SetDiskState(offline)",
        RAW,
        [PARTITION, OFFLINE],
    ),
    pair(
        "SetDiskState both ways",
        || ntfs().build(),
        [ONLINE, OFFLINE],
    ),
    pair("FormatVolume twice", PARTITIONED, [FORMAT, FORMAT]),
    pair(
        "FormatVolume and SetDiskState(offline)",
        PARTITIONED,
        [FORMAT, OFFLINE],
    ),
    pair("FormatVolume and MountVolume", PARTITIONED, [FORMAT, MOUNT]),
    pair(
        "PartitionDisk twice, slowly",
        RAW_SLOWLY,
        [PARTITION, PARTITION],
    ),
    pair(
        "PartitionDisk and SetDiskState(offline), slowly",
        RAW_SLOWLY,
        [PARTITION, OFFLINE],
    ),
    pair(
        "FormatVolume twice, slowly",
        PARTITIONED_SLOWLY,
        [FORMAT, FORMAT],
    ),
    pair(
        "FormatVolume and SetDiskState(offline), slowly",
        PARTITIONED_SLOWLY,
        [FORMAT, OFFLINE],
    ),
    pair(
        "FormatVolume and MountVolume, slowly",
        PARTITIONED_SLOWLY,
        [FORMAT, MOUNT],
    ),
    pair(
        "ResizeVolume and SetDiskState(offline), slowly",
        GROWN_SLOWLY,
        [RESIZE, OFFLINE],
    ),
    pair(
        "ResizeVolume and UnmountVolume, slowly",
        GROWN_SLOWLY,
        [RESIZE, UNMOUNT],
    ),
    pair(
        "ResizeVolume and SetDiskState(offline)",
        GROWN,
        [RESIZE, OFFLINE],
    ),
    pair("ResizeVolume twice", GROWN, [RESIZE, RESIZE]),
    pair(
        "MountVolume and UnmountVolume",
        WITH_TARGET,
        [MOUNT, UNMOUNT],
    ),
    pair("UnmountVolume and MountVolume", MOUNTED, [UNMOUNT, MOUNT]),
    pair("MountVolume and Rmdir", WITH_TARGET, [MOUNT, RMDIR]),
    pair(
        "MountVolume and Rmdir(with force)",
        WITH_TARGET,
        [MOUNT, RMDIR_WITH_FORCE],
    ),
    pair(
        "UnmountVolume and Rmdir(with force)",
        MOUNTED,
        [UNMOUNT, RMDIR_WITH_FORCE],
    ),
    pair(
        "UnmountVolume and RmdirContents",
        MOUNTED,
        [UNMOUNT, EMPTY_IT],
    ),
    pair(
        "MountVolume of two at one directory",
        two,
        [MOUNT, MOUNT_ANOTHER],
    ),
    pair(
        "MountVolume of one at two directories",
        two,
        [MOUNT, MOUNT_ELSEWHERE],
    ),
    pair(
        "MountVolume and SetDiskState(offline)",
        two,
        [MOUNT, OFFLINE],
    ),
    pair("Mkdir twice", NO_DISK, [MKDIR, MKDIR]),
    pair("Mkdir and Rmdir", NO_DISK, [MKDIR, RMDIR]),
    pair(
        "CreateSymlink of two at one path",
        || ntfs().build(),
        [LINK, ANOTHER_LINK],
    ),
    pair("CreateSymlink and Rmdir", || ntfs().build(), [LINK, RMDIR]),
    pair("CreateSymlink and Mkdir", || ntfs().build(), [LINK, MKDIR]),
    pair(
        "CreateSymlink and Mkdir below",
        || ntfs().build(),
        [LINK, MKDIR_BELOW],
    ),
    pair(
        "MountVolume and Mkdir below",
        WITH_TARGET,
        [MOUNT, MKDIR_BELOW],
    ),
    pair(
        "UnmountVolume and Mkdir below",
        MOUNTED,
        [UNMOUNT, MKDIR_BELOW],
    ),
    pair("Mkdir and Mkdir below", NO_DISK, [MKDIR, MKDIR_BELOW]),
    pair(
        "Mkdir below and Rmdir",
        || os_sim::node().dir(TARGET).build(),
        [MKDIR_BELOW, RMDIR],
    ),
    pair(
        "NewSmbGlobalMapping for two users",
        || server(0),
        [MAP_FOR_ONE, MAP_FOR_ANOTHER],
    ),
    pair(
        "NewSmbGlobalMapping for two, slowly",
        || server(2_000),
        [MAP_FOR_ONE, MAP_FOR_ANOTHER],
    ),
    pair(
        "NewSmbGlobalMapping and RemoveSmbGlobalMapping",
        || server(0),
        [MAP_FOR_ONE, UNMAP],
    ),
    pair("StartService and StopService", SERVICE, [START, STOP]),
];
