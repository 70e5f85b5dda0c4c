//! The operations on disks, each on disk 1. Disk 0 is the system disk.

use std::time::Duration;

use os_sim::{Builder, Content, DiskDescription, Sim};
use storage_ops::{
    DiskNumber, GetDiskNumberByName, GetDiskState, GetDiskStats, ListDiskIds, ListDiskLocations,
    ListVolumesOnDisk, PartitionDisk, Rescan, ResizeTarget, ResizeVolume, SetDiskState,
};

use super::{GIB, Scenario, Spec, State, boxed, combine_all, state};

const ONE: DiskNumber = DiskNumber(1);

fn disk() -> Builder {
    os_sim::node().disk(GIB).page83_ascii("Google  pvc-x")
}

const STATES: &[State] = &[
    state("raw", || disk().build()),
    state("raw, offline", || disk().offline().build()),
    state("raw, read-only", || disk().read_only().build()),
    state("raw, with a backup GPT", || {
        disk().formatted("backup GPT of 512-byte sectors").build()
    }),
    state("raw, grown", || disk().grown_to(2 * GIB).build()),
    state("GPT with only the reserved partition", || {
        disk().gpt().build()
    }),
    state(
        "GPT with only the reserved partition, offline and read-only",
        || disk().gpt().offline().read_only().build(),
    ),
    state("MBR", || disk().mbr().formatted("NTFS").build()),
    state("file system at sector 0", || {
        disk().superfloppy().formatted("NTFS").build()
    }),
    state("partitioned", || disk().partitioned().build()),
    state("partitioned, offline", || {
        disk().partitioned().offline().build()
    }),
    state("formatted", || {
        disk().partitioned().formatted("NTFS").build()
    }),
    state("formatted, read-only", || {
        disk().partitioned().formatted("NTFS").read_only().build()
    }),
    state("formatted, offline and read-only", || {
        disk()
            .partitioned()
            .formatted("NTFS")
            .offline()
            .read_only()
            .build()
    }),
    state("formatted, grown", || {
        disk()
            .partitioned()
            .formatted("NTFS")
            .grown_to(2 * GIB)
            .build()
    }),
    state("one of two disks with one name", || {
        disk().disk(GIB).page83_ascii("Google  pvc-x").build()
    }),
    state("missing", || os_sim::node().build()),
];

/// A formatted disk that is offline for a reason of `MSFT_Disk.OfflineReason`, and read-only or not.
macro_rules! offline {
    ($($reason:literal),*) => {
        &[$(
            state(concat!("formatted, OfflineReason ", $reason), || {
                formatted().offline_because($reason).build()
            }),
            state(concat!("formatted, read-only, OfflineReason ", $reason), || {
                formatted().offline_because($reason).read_only().build()
            }),
        )*]
    };
}

/// States of a partitioned disk that arrives offline or read-only: each reason, beside a disk with
/// the same identifier, and without an identifier.
const ARRIVALS: &[State] = offline!(0, 2, 3, 4, 5, 6, 7, 8);

const SECOND_PATHS: &[State] = &[
    state("formatted, offline, a second path", || {
        with_second_path(formatted().offline())
    }),
    state("formatted, read-only, a second path", || {
        with_second_path(formatted().read_only())
    }),
    state(
        "formatted, offline, a second path by its serial number",
        || {
            let serial = |disk: Builder| disk.no_page83().serial("lun-77");
            serial(serial(formatted().offline()).disk(GIB)).build()
        },
    ),
    state("formatted, offline, no identifier", || {
        formatted().no_page83().serial("").offline().build()
    }),
    state("formatted, offline, a copy of another disk", || {
        let source = DiskDescription {
            number: Some(2),
            ..formatted_description()
        };
        let copy = DiskDescription {
            number: Some(1),
            copy_of: Some(2),
            ..DiskDescription::new(GIB)
        };
        let sim = os_sim::node().build();
        for disk in [source, copy] {
            sim.attach_disk(&disk, true).expect("the descriptions fit");
            sim.advance(SETTLE);
        }
        sim
    }),
];

/// How long a new disk takes to arrive.
const SETTLE: Duration = Duration::from_secs(10);

fn formatted_description() -> DiskDescription {
    DiskDescription {
        content: Content::Partitioned,
        file_system: Some("NTFS".to_owned()),
        ..DiskDescription::new(GIB)
    }
}

fn with_second_path(disk: Builder) -> Sim {
    disk.disk(GIB).page83_ascii("Google  pvc-x").build()
}

/// States for the operations that bring volumes online: automatic mounting is disabled. Those that
/// end in "extents" have volumes that answer the query of their extents while they are offline.
const NO_AUTOMOUNT: &[State] = &[
    state("raw, no automount", || disk().no_automount().build()),
    state("raw, no automount, extents", || {
        with_extents(&disk().no_automount())
    }),
    state("raw, offline and read-only, no automount", || {
        disk().offline().read_only().no_automount().build()
    }),
    state("partitioned, volume offline", || {
        disk().partitioned().no_automount().build()
    }),
    state("formatted, volume offline", || {
        formatted().no_automount().build()
    }),
    state("formatted, volume offline, extents", || {
        with_extents(&formatted().no_automount())
    }),
    state("formatted, offline and read-only, no automount", || {
        formatted().offline().read_only().no_automount().build()
    }),
];

fn formatted() -> Builder {
    disk().partitioned().formatted("NTFS")
}

fn with_extents(node: &Builder) -> Sim {
    let sim = node.build();
    sim.set_offline_volumes_have_extents(true);
    sim
}

/// A state for `Rescan` only: csi-proxy does not control at what other times the provider detects a
/// new disk.
const UNDETECTED: State = state("a second disk, not yet detected", || {
    let sim = disk().build();
    sim.attach_disk(&DiskDescription::new(GIB), false)
        .expect("a plain disk");
    sim
});

const RESCAN: Spec = Spec::new("Rescan", |_| boxed(Rescan)).may_change(&["disk 2 "]);

const OPERATIONS: &[Spec] = &[
    Spec::new("ListDiskLocations", |_| boxed(ListDiskLocations)),
    Spec::new("ListDiskIDs", |_| boxed(ListDiskIds)).may_omit_disks(),
    Spec::new("GetDiskNumberByName", |_| {
        boxed(GetDiskNumberByName {
            name: "pvc-x".into(),
        })
    })
    .may_omit_disks(),
    Spec::new("GetDiskStats", |_| boxed(GetDiskStats { disk: ONE })).may_omit_disks(),
    Spec::new("GetDiskState", |_| boxed(GetDiskState { disk: ONE })),
    Spec::new("SetDiskState(online)", |_| {
        boxed(SetDiskState {
            disk: ONE,
            online: true,
        })
    })
    .may_change(&["disk 1 "])
    .ensures(|sim| {
        sim.disks()
            .iter()
            .any(|disk| disk.number == 1 && !disk.offline && !disk.read_only)
    }),
    Spec::new("SetDiskState(offline)", |_| {
        boxed(SetDiskState {
            disk: ONE,
            online: false,
        })
    })
    .may_change(&["disk 1 "])
    .ensures(|sim| {
        sim.disks()
            .iter()
            .any(|disk| disk.number == 1 && disk.offline)
    }),
    Spec::new("PartitionDisk", |_| boxed(PartitionDisk { disk: ONE }))
        .may_change(&["disk 1 "])
        .may_leave_node()
        .ensures(|sim| sim.volume_on(1).is_some()),
    RESCAN,
    Spec::new("ListVolumesOnDisk", |_| {
        boxed(ListVolumesOnDisk {
            disk: ONE,
            partition: 0,
        })
    }),
    Spec::new("ResizeVolume(of a disk)", |_| {
        boxed(ResizeVolume::new(ResizeTarget::FirstVolumeOfDisk(ONE), 0))
    })
    .may_change(&["disk 1 "]),
];

/// Returns each operation on disks in each state of a disk.
pub fn scenarios() -> Vec<Scenario> {
    let on_disk = |spec: Spec| spec.on_disk(1);
    let online = OPERATIONS
        .iter()
        .filter(|spec| ["PartitionDisk", "SetDiskState(online)"].contains(&spec.name));
    let offline: Vec<Spec> = OPERATIONS
        .iter()
        .filter(|spec| ["PartitionDisk", "ListVolumesOnDisk"].contains(&spec.name))
        .copied()
        .collect();
    [
        combine_all(OPERATIONS, STATES, on_disk),
        combine_all(&[RESCAN], &[UNDETECTED], on_disk),
        combine_all(&offline, &[ARRIVALS, SECOND_PATHS].concat(), on_disk),
        combine_all(&online.copied().collect::<Vec<_>>(), NO_AUTOMOUNT, on_disk),
    ]
    .concat()
}
