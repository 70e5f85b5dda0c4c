//! The operations on disks, each on disk 1 of a node with the system disk 0.

use os_sim::{Builder, DiskDescription};
use storage_ops::{
    DiskNumber, GetDiskNumberByName, GetDiskState, GetDiskStats, ListDiskIds, ListDiskLocations, ListVolumesOnDisk,
    PartitionDisk, Rescan, ResizeTarget, ResizeVolume, SetDiskState,
};

use super::{GIB, ask};
use crate::scenario::{Asked, Scenario, State, all_of};

const ONE: DiskNumber = DiskNumber(1);

fn disk() -> Builder {
    os_sim::node().disk(GIB).page83_ascii("Google  pvc-x")
}

const STATES: &[State] = &[
    State { name: "raw", build: || disk().build() },
    State { name: "raw, offline", build: || disk().offline().build() },
    State { name: "raw, read-only", build: || disk().read_only().build() },
    State { name: "raw, grown", build: || disk().grown_to(2 * GIB).build() },
    State { name: "GPT with the reserved partition alone", build: || disk().gpt().build() },
    State { name: "that, offline and read-only", build: || disk().gpt().offline().read_only().build() },
    State { name: "MBR", build: || disk().mbr().formatted("NTFS").build() },
    State { name: "file system at sector 0", build: || disk().superfloppy().formatted("NTFS").build() },
    State { name: "partitioned", build: || disk().partitioned().build() },
    State { name: "partitioned, offline", build: || disk().partitioned().offline().build() },
    State { name: "formatted", build: || disk().partitioned().formatted("NTFS").build() },
    State { name: "formatted, read-only", build: || disk().partitioned().formatted("NTFS").read_only().build() },
    State {
        name: "formatted, offline and read-only",
        build: || disk().partitioned().formatted("NTFS").offline().read_only().build(),
    },
    State { name: "formatted, grown", build: || disk().partitioned().formatted("NTFS").grown_to(2 * GIB).build() },
    State { name: "one of two of its name", build: || disk().disk(GIB).page83_ascii("Google  pvc-x").build() },
    State { name: "missing", build: || os_sim::node().build() },
];

/// What only a rescan changes: when the provider looks again of its own accord is not ours to say.
const UNSEEN: State = State {
    name: "beside a disk not seen yet",
    build: || {
        let sim = disk().build();
        sim.attach_disk(&DiskDescription::new(GIB), false).expect("a plain disk");
        sim
    },
};

const RESCAN: Asked = Asked::new("Rescan", |_| ask(Rescan)).changing(&["disk 2 "]).about_disk(1);

const OPERATIONS: &[Asked] = &[
    Asked::new("ListDiskLocations", |_| ask(ListDiskLocations)).about_disk(1),
    Asked::new("ListDiskIDs", |_| ask(ListDiskIds)).about_disk(1).leaving_out(),
    Asked::new("GetDiskNumberByName", |_| ask(GetDiskNumberByName { name: "pvc-x".into() }))
        .about_disk(1)
        .leaving_out(),
    Asked::new("GetDiskStats", |_| ask(GetDiskStats { disk: ONE })).about_disk(1).leaving_out(),
    Asked::new("GetDiskState", |_| ask(GetDiskState { disk: ONE })).about_disk(1),
    Asked::new("SetDiskState(online)", |_| ask(SetDiskState { disk: ONE, online: true }))
        .changing(&["disk 1 "])
        .reaching(|sim| sim.disks().iter().any(|disk| disk.number == 1 && !disk.offline && !disk.read_only))
        .about_disk(1),
    Asked::new("SetDiskState(offline)", |_| ask(SetDiskState { disk: ONE, online: false }))
        .changing(&["disk 1 "])
        .reaching(|sim| sim.disks().iter().any(|disk| disk.number == 1 && disk.offline))
        .about_disk(1),
    Asked::new("PartitionDisk", |_| ask(PartitionDisk { disk: ONE }))
        .changing(&["disk 1 "])
        .reaching(|sim| sim.volume_on(1).is_some())
        .about_disk(1),
    RESCAN,
    Asked::new("ListVolumesOnDisk", |_| ask(ListVolumesOnDisk { disk: ONE, partition: 0 })).about_disk(1),
    Asked::new("ResizeVolume(of a disk)", |_| {
        ask(ResizeVolume { target: ResizeTarget::FirstVolumeOfDisk(ONE), size: 0 })
    })
    .changing(&["disk 1 "])
    .about_disk(1),
];

/// Each operation on disks in each state of a disk.
pub fn scenarios() -> Vec<Scenario> {
    let mut all = all_of(OPERATIONS, STATES);
    all.push(Scenario { state: UNSEEN, asked: RESCAN });
    all
}
