//! The operations on volumes, each on the volume of disk 1 and the directory where it is mounted.

use std::sync::Arc;
use std::time::Duration;

use faults::{Fault, FaultAction, Probed, When};
use os::{MethodCall, Namespace, Os, Time, Value};
use os_sim::{Builder, Sim};
use storage_ops::{
    Config, FormatVolume, GetClosestVolumeIdFromTargetPath, GetDiskNumberFromVolumeId,
    GetVolumeIdFromTargetPath, GetVolumeStats, IsVolumeFormatted, MountVolume, Node, ResizeTarget,
    ResizeVolume, UnmountVolume, WriteVolumeCache,
};

use super::{GIB, Scenario, Spec, State, boxed, combine_all, path, state, volume};

const FORMAT: &str = "wmi call MSFT_Volume.Format";

/// ContainerUser.
const WRITER: &str = "S-1-5-93-2-2";

/// The directory where the volume is mounted.
pub(crate) const TARGET: &str = r"C:\var\lib\kubelet\plugins\v";

const ELSEWHERE: &str = r"C:\var\lib\kubelet\plugins\elsewhere";

fn raw() -> Builder {
    os_sim::node().disk(GIB).partitioned()
}

fn ntfs() -> Builder {
    raw().formatted("NTFS")
}

fn with_data(sim: Sim, at: &str) -> Sim {
    let external = sim.external();
    external
        .mkdir_all(&format!(r"{at}\data"))
        .expect("a mounted volume");
    external
        .write(&format!(r"{at}\data\precious"), b"precious")
        .expect("a mounted volume");
    sim
}

/// Returns a node whose disk 1 has two partitions in another order than the entries of its table.
fn reordered() -> Sim {
    let sim = os_sim::node().disk(GIB).gpt().dir(TARGET).build();
    let (os, never) = (sim.process(), Time(Duration::MAX));
    let disk = os
        .wmi()
        .query(
            Namespace::Storage,
            "SELECT * FROM MSFT_Disk WHERE Number = 1",
            never,
        )
        .expect("an answer");
    for offset in [800_u64 << 20, 16 << 20] {
        let arguments = [("Offset", offset), ("Size", 100 << 20)]
            .map(|(name, at)| (name, Value::Text(at.to_string())));
        os.wmi()
            .call(
                &MethodCall::new(
                    Namespace::Storage,
                    &disk[0].path,
                    "CreatePartition",
                    &arguments,
                ),
                never,
            )
            .expect("a status");
    }
    sim.advance(Duration::from_mins(1));
    sim
}

const STATES: &[State] = &[
    state("raw", || raw().dir(TARGET).build()),
    state("raw, grown", || raw().grown_to(2 * GIB).dir(TARGET).build()),
    state("raw, read-only", || raw().read_only().dir(TARGET).build()),
    state("raw, mounted", || raw().mounted(TARGET).build()),
    state("NTFS", || ntfs().dir(TARGET).build()),
    state("NTFS, read-only", || ntfs().read_only().dir(TARGET).build()),
    state("NTFS, offline", || ntfs().offline().dir(TARGET).build()),
    state("NTFS, volume offline", || {
        ntfs().dir(TARGET).no_automount().build()
    }),
    state("NTFS, grown", || {
        ntfs().grown_to(2 * GIB).dir(TARGET).build()
    }),
    state("NTFS, smaller than its partition", || {
        ntfs().file_system_of(GIB / 2).dir(TARGET).build()
    }),
    state("MBR", || {
        os_sim::node()
            .disk(GIB)
            .mbr()
            .formatted("NTFS")
            .dir(TARGET)
            .build()
    }),
    state("ReFS", || raw().formatted("ReFS").dir(TARGET).build()),
    state("FAT32", || raw().formatted("FAT32").dir(TARGET).build()),
    state("locked by BitLocker", || {
        ntfs().bitlocker_locked().dir(TARGET).build()
    }),
    state("unreadable", || ntfs().unreadable().dir(TARGET).build()),
    state("unmountable", || ntfs().unmountable().dir(TARGET).build()),
    state("spanned", || {
        ntfs().spanned(2, GIB / 2).disk(GIB).dir(TARGET).build()
    }),
    state("mounted", || {
        with_data(ntfs().mounted(TARGET).build(), TARGET)
    }),
    state("mounted, grown", || {
        with_data(ntfs().mounted(TARGET).grown_to(2 * GIB).build(), TARGET)
    }),
    state("mounted elsewhere", || {
        with_data(ntfs().mounted(ELSEWHERE).dir(TARGET).build(), ELSEWHERE)
    }),
    state("another volume at the target", || {
        with_data(
            ntfs()
                .disk(GIB)
                .partitioned()
                .formatted("NTFS")
                .mounted(TARGET)
                .build(),
            TARGET,
        )
    }),
    state("stale mount point of another volume at the target", || {
        let sim = ntfs()
            .disk(GIB)
            .partitioned()
            .formatted("NTFS")
            .mounted(TARGET)
            .build();
        sim.unplug_disk(2).expect("disk 2");
        sim
    }),
    state("disk removed, its mount point stale", || {
        let sim = ntfs().mounted(TARGET).build();
        sim.unplug_disk(1).expect("disk 1");
        sim
    }),
    state("no target", || ntfs().build()),
    state("target not empty", || {
        ntfs().dir(r"C:\var\lib\kubelet\plugins\v\full").build()
    }),
    state("target a file", || ntfs().file(TARGET, b"1").build()),
    state("target a link", || {
        ntfs().symlink(TARGET, r"C:\Windows").build()
    }),
    state("target a dangling link", || {
        ntfs().symlink(TARGET, r"C:\gone").build()
    }),
    state("target a link to its mount point", || {
        with_data(
            ntfs().mounted(ELSEWHERE).symlink(TARGET, ELSEWHERE).build(),
            ELSEWHERE,
        )
    }),
];

/// Returns a node whose volume was formatted by a daemon that died before it set the access list of
/// the root.
fn formatted_by_a_dead_daemon() -> Sim {
    let sim = raw().dir(TARGET).build();
    let died = Fault::each(
        |call| call.primitive == FORMAT,
        When::After,
        FaultAction::Die,
    );
    let node = Node::new(
        Arc::new(Probed::new(sim.process(), died)),
        with_other_format(),
    );
    node.run(&FormatVolume::new(volume(&sim, 1)))
        .expect_err("the daemon has died");
    sim
}

/// Settings with which FormatVolume makes another file system than NTFS, and changes the access
/// list of the root.
fn with_other_format() -> Config {
    let format_writers = vec![WRITER.parse().expect("a SID")];
    Config::default().with(|c| {
        c.format_file_system = storage_ops::NewFileSystem::ReFs;
        c.format_allocation_unit = Some(65536);
        c.format_writers = format_writers;
    })
}

/// The states for operations with [`with_other_format`].
const FORMAT_STATES: &[State] = &[
    State {
        name: "raw",
        build: || raw().dir(TARGET).build(),
    },
    State {
        name: "NTFS",
        build: || ntfs().dir(TARGET).build(),
    },
    State {
        name: "ReFS",
        build: || raw().formatted("ReFS").dir(TARGET).build(),
    },
    State {
        name: "formatted by a daemon that has died",
        build: formatted_by_a_dead_daemon,
    },
];

/// Returns whether the volume has the allocation units and the access list of [`with_other_format`]
/// if it was formatted with these settings, and another list otherwise.
fn only_a_new_volume_has_the_settings(sim: &Sim) -> bool {
    sim.volume_on(1).is_some_and(|volume| {
        let is_new = volume.formats > 0;
        (!is_new || volume.cluster == 65536) && is_new == sim.snapshot().as_str().contains(WRITER)
    })
}

/// A state for ResizeVolume only, which alone looks for the storage provider's partition.
const REORDERED: State = state(
    "raw, partitions in another order than their entries",
    reordered,
);

const RESIZE: Spec = Spec::new("ResizeVolume(to its maximum)", |sim| {
    boxed(ResizeVolume::new(ResizeTarget::Volume(volume(sim, 1)), 0))
})
.may_change(&["disk 1 partition "])
.ensures(is_filled);

const FORMAT_OPERATIONS: &[Spec] = &[
    Spec::new("FormatVolume(with ReFS)", |sim| {
        boxed(FormatVolume::new(volume(sim, 1)))
    })
    .may_change(&["disk 1 "])
    .ensures(only_a_new_volume_has_the_settings),
    Spec::new("MountVolume(with ReFS)", |sim| {
        boxed(MountVolume {
            volume: volume(sim, 1),
            target: path(TARGET),
        })
    })
    .may_change(&[
        r"disk 1 partition 2 mounted at C:\var\lib\kubelet\plugins\v",
        "disk 1 partition 2 access",
        AT_TARGET,
    ])
    .ensures(|sim| is_at_target(sim) && only_a_new_volume_has_the_settings(sim)),
];

const OPERATIONS: &[Spec] = &[
    Spec::new("IsVolumeFormatted", |sim| {
        boxed(IsVolumeFormatted {
            volume: volume(sim, 1),
        })
    }),
    Spec::new("FormatVolume", |sim| {
        boxed(FormatVolume::new(volume(sim, 1)))
    })
    .may_change(&["disk 1 "])
    .ensures(is_new),
    // A mount point brings a volume online.
    Spec::new("MountVolume", |sim| {
        boxed(MountVolume {
            volume: volume(sim, 1),
            target: path(TARGET),
        })
    })
    .may_change(&[
        r"disk 1 partition 2 mounted at C:\var\lib\kubelet\plugins\v",
        "disk 1 partition 2 volume offline",
        AT_TARGET,
        MBR_MOUNT,
    ])
    .ensures(is_at_target),
    Spec::new("UnmountVolume", |sim| {
        boxed(UnmountVolume {
            volume: volume(sim, 1),
            target: path(TARGET),
        })
    })
    .may_change(&[
        r"disk 1 partition 2 mounted at C:\var\lib\kubelet\plugins\v",
        AT_TARGET,
        MBR_MOUNT,
    ])
    .ensures(|sim| !is_at_target(sim)),
    RESIZE,
    Spec::new("ResizeVolume(to 1.5 GiB)", |sim| {
        boxed(ResizeVolume::new(
            ResizeTarget::Volume(volume(sim, 1)),
            3 * GIB / 2,
        ))
    })
    .may_change(&["disk 1 partition "])
    .ensures(is_filled),
    Spec::new("GetVolumeStats", |sim| {
        boxed(GetVolumeStats {
            volume: volume(sim, 1),
        })
    }),
    Spec::new("GetDiskNumberFromVolumeID", |sim| {
        boxed(GetDiskNumberFromVolumeId {
            volume: volume(sim, 1),
        })
    }),
    Spec::new("GetVolumeIDFromTargetPath", |_| {
        boxed(GetVolumeIdFromTargetPath {
            target: path(TARGET),
        })
    }),
    Spec::new("GetClosestVolumeIDFromTargetPath", |_| {
        boxed(GetClosestVolumeIdFromTargetPath {
            target: path(TARGET),
        })
    }),
    Spec::new("WriteVolumeCache", |sim| {
        boxed(WriteVolumeCache {
            volume: volume(sim, 1),
        })
    }),
];

/// Where a local volume is mounted, below the directory of the flag `-format-again`.
const LOCAL: &str = r"C:\mnt\disks\ssd0";

/// The link that kubelet makes for a pod that uses a local volume.
const OF_POD: &str = r"C:\var\lib\kubelet\pods\u\volumes\kubernetes.io~local-volume\pv";

fn formatting_again() -> Config {
    Config::default().with(|c| c.format_again = vec![path(r"C:\mnt\disks")])
}

/// Returns a node with a local volume and links of kubelet, none of which leads to the volume.
fn local() -> Builder {
    ntfs()
        .mounted(LOCAL)
        .dir(r"C:\var\lib\kubelet\pods\u\volumes\kubernetes.io~local-volume")
        .symlink(r"C:\var\lib\kubelet\plugins\link", r"C:\mnt\other")
        .dir(r"C:\mnt\other")
}

const FORMAT_AGAIN: Spec = Spec::new("FormatVolume(again)", |sim| {
    boxed(FormatVolume::new(volume(sim, 1)))
})
.with(formatting_again);

const WITHOUT_FLAG: Spec = Spec::new("FormatVolume(with content)", |sim| {
    boxed(FormatVolume::new(volume(sim, 1)))
});

/// The states in which a volume with a file system is formatted.
const UNUSED: &[State] = &[
    state("local", || local().build()),
    state("local with data", || with_data(local().build(), LOCAL)),
];

/// The states in which a volume keeps its content.
const USED: &[State] = &[
    state("local with data, used by a pod", || {
        with_data(local().symlink(OF_POD, LOCAL).build(), LOCAL)
    }),
    state("local with data, mounted elsewhere too", || {
        with_data(local().mounted(ELSEWHERE).build(), LOCAL)
    }),
    state("mounted with data", || {
        with_data(ntfs().mounted(TARGET).dir(LOCAL).build(), TARGET)
    }),
    state("with data, not mounted", || {
        let sim = with_data(ntfs().mounted(TARGET).dir(LOCAL).build(), TARGET);
        sim.external().remove(TARGET).expect("the mount point");
        sim
    }),
    state("with a stream", || {
        let sim = ntfs().mounted(TARGET).build();
        let added = sim.external().add_stream(TARGET, "precious", 8);
        added.expect("a mounted volume");
        sim
    }),
];

/// Returns whether the volume has NTFS and is empty.
fn is_new(sim: &Sim) -> bool {
    sim.volume_on(1).is_some_and(|volume| {
        volume.file_system.as_deref() == Some("NTFS") && has_no_content(sim, &volume.name())
    })
}

fn has_no_content(sim: &Sim, root: &str) -> bool {
    let snapshot = sim.snapshot();
    let stream = |line: &str| line.starts_with("disk 1 ") && line.contains(" stream ");
    sim.tree(root).is_ok_and(|files| files.is_empty()) && !snapshot.as_str().lines().any(stream)
}

fn is_at_target(sim: &Sim) -> bool {
    let paths = sim
        .volume_on(1)
        .map(|volume| volume.paths)
        .unwrap_or_default();
    paths
        .iter()
        .any(|path| path.trim_end_matches('\\') == TARGET)
}

/// Returns whether each file system on disk 1 is as large as its partition.
fn is_filled(sim: &Sim) -> bool {
    let disks = sim.disks().into_iter().filter(|disk| disk.number == 1);
    disks.flat_map(|disk| disk.partitions).all(|partition| {
        let total = partition
            .volume
            .filter(|volume| volume.file_system.is_some())
            .map(|volume| volume.total);
        total.is_none_or(|total| partition.length - total < 1 << 20)
    })
}

/// The target in a snapshot. The system's files are on the second partition of disk 0.
const AT_TARGET: &str = r"disk 0 partition 2 \var\lib\kubelet\plugins\v ";

const MBR_MOUNT: &str = r"disk 1 partition 1 mounted at C:\var\lib\kubelet\plugins\v";

/// Returns each operation on volumes in each state of a volume and of its target.
pub fn scenarios() -> Vec<Scenario> {
    let on_disk = |spec: Spec| spec.on_disk(1);
    [
        combine_all(OPERATIONS, STATES, on_disk),
        combine_all(FORMAT_OPERATIONS, FORMAT_STATES, |spec| {
            on_disk(spec).with(with_other_format)
        }),
        combine_all(&[RESIZE], &[REORDERED], on_disk),
        combine_all(&[FORMAT_AGAIN], UNUSED, |spec| {
            on_disk(spec)
                .may_change(&["disk 1 "])
                .may_format_again()
                .ensures(is_new)
        }),
        combine_all(&[FORMAT_AGAIN, WITHOUT_FLAG], USED, on_disk),
    ]
    .concat()
}
