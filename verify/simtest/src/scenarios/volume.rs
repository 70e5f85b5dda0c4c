//! The operations on volumes, each on the volume of disk 1 and the directory it is mounted at.

use os_sim::{Builder, Sim};
use storage_ops::{
    FormatVolume, GetClosestVolumeIdFromTargetPath, GetDiskNumberFromVolumeId, GetVolumeIdFromTargetPath,
    GetVolumeStats, IsVolumeFormatted, MountVolume, ResizeTarget, ResizeVolume, UnmountVolume, WriteVolumeCache,
};

use super::{GIB, ask, path, volume};
use crate::scenario::{Asked, Scenario, State, all_of};

/// Where volumes are mounted.
pub(crate) const TARGET: &str = r"C:\var\lib\kubelet\plugins\v";

const ELSEWHERE: &str = r"C:\var\lib\kubelet\plugins\elsewhere";

fn raw() -> Builder {
    os_sim::node().disk(GIB).partitioned()
}

fn ntfs() -> Builder {
    raw().formatted("NTFS")
}

fn with_data(sim: Sim, at: &str) -> Sim {
    let door = sim.external();
    door.mkdir_all(&format!(r"{at}\data")).expect("a mounted volume");
    door.write(&format!(r"{at}\data\precious"), b"precious").expect("a mounted volume");
    sim
}

const STATES: &[State] = &[
    State { name: "raw", build: || raw().dir(TARGET).build() },
    State { name: "raw, grown", build: || raw().grown_to(2 * GIB).dir(TARGET).build() },
    State { name: "raw, read-only", build: || raw().read_only().dir(TARGET).build() },
    State { name: "raw, mounted", build: || raw().mounted(TARGET).build() },
    State { name: "NTFS", build: || ntfs().dir(TARGET).build() },
    State { name: "NTFS, read-only", build: || ntfs().read_only().dir(TARGET).build() },
    State { name: "NTFS, offline", build: || ntfs().offline().dir(TARGET).build() },
    State { name: "NTFS, grown", build: || ntfs().grown_to(2 * GIB).dir(TARGET).build() },
    State { name: "NTFS, half grown", build: || ntfs().file_system_of(GIB / 2).dir(TARGET).build() },
    State { name: "MBR", build: || os_sim::node().disk(GIB).mbr().formatted("NTFS").dir(TARGET).build() },
    State { name: "ReFS", build: || raw().formatted("ReFS").dir(TARGET).build() },
    State { name: "FAT32", build: || raw().formatted("FAT32").dir(TARGET).build() },
    State { name: "locked by BitLocker", build: || ntfs().bitlocker_locked().dir(TARGET).build() },
    State { name: "unreadable", build: || ntfs().unreadable().dir(TARGET).build() },
    State { name: "unmountable", build: || ntfs().unmountable().dir(TARGET).build() },
    State { name: "spanned", build: || ntfs().spanned(2, GIB / 2).disk(GIB).dir(TARGET).build() },
    State { name: "mounted", build: || with_data(ntfs().mounted(TARGET).build(), TARGET) },
    State { name: "mounted, grown", build: || with_data(ntfs().mounted(TARGET).grown_to(2 * GIB).build(), TARGET) },
    State { name: "mounted elsewhere", build: || with_data(ntfs().mounted(ELSEWHERE).dir(TARGET).build(), ELSEWHERE) },
    State {
        name: "another mounted there",
        build: || with_data(ntfs().disk(GIB).partitioned().formatted("NTFS").mounted(TARGET).build(), TARGET),
    },
    State {
        name: "stale mount point of another there",
        build: || {
            let sim = ntfs().disk(GIB).partitioned().formatted("NTFS").mounted(TARGET).build();
            sim.detach_disk(2).expect("disk 2");
            sim
        },
    },
    State {
        name: "gone, its mount point stale",
        build: || {
            let sim = ntfs().mounted(TARGET).build();
            sim.detach_disk(1).expect("disk 1");
            sim
        },
    },
    State { name: "no target", build: || ntfs().build() },
    State { name: "target not empty", build: || ntfs().dir(r"C:\var\lib\kubelet\plugins\v\full").build() },
    State { name: "target a file", build: || ntfs().file(TARGET, b"1").build() },
    State { name: "target a link", build: || ntfs().symlink(TARGET, r"C:\Windows").build() },
    State { name: "target a dangling link", build: || ntfs().symlink(TARGET, r"C:\gone").build() },
    State {
        name: "target a link to its mount point",
        build: || with_data(ntfs().mounted(ELSEWHERE).symlink(TARGET, ELSEWHERE).build(), ELSEWHERE),
    },
];

const OPERATIONS: &[Asked] = &[
    Asked::new("IsVolumeFormatted", |sim| ask(IsVolumeFormatted { volume: volume(sim, 1) })).about_disk(1),
    Asked::new("FormatVolume", |sim| ask(FormatVolume { volume: volume(sim, 1) }))
        .changing(&["disk 1 "])
        .reaching(|sim| sim.volume_on(1).is_some_and(|volume| volume.file_system.as_deref() == Some("NTFS")))
        .about_disk(1),
    Asked::new("MountVolume", |sim| ask(MountVolume { volume: volume(sim, 1), target: path(TARGET) }))
        .changing(&[r"disk 1 partition 2 mounted at C:\var\lib\kubelet\plugins\v", AT_TARGET, MBR_MOUNT])
        .reaching(is_at_target)
        .about_disk(1),
    Asked::new("UnmountVolume", |sim| ask(UnmountVolume { volume: volume(sim, 1), target: path(TARGET) }))
        .changing(&[r"disk 1 partition 2 mounted at C:\var\lib\kubelet\plugins\v", AT_TARGET, MBR_MOUNT])
        .reaching(|sim| !is_at_target(sim))
        .about_disk(1),
    Asked::new("ResizeVolume(to its maximum)", |sim| {
        ask(ResizeVolume { target: ResizeTarget::Volume(volume(sim, 1)), size: 0 })
    })
    .changing(&["disk 1 partition "])
    .reaching(is_filled)
    .about_disk(1),
    Asked::new("ResizeVolume(to 1.5 GiB)", |sim| {
        ask(ResizeVolume { target: ResizeTarget::Volume(volume(sim, 1)), size: 3 * GIB / 2 })
    })
    .changing(&["disk 1 partition "])
    .reaching(is_filled)
    .about_disk(1),
    Asked::new("GetVolumeStats", |sim| ask(GetVolumeStats { volume: volume(sim, 1) })).about_disk(1),
    Asked::new("GetDiskNumberFromVolumeID", |sim| ask(GetDiskNumberFromVolumeId { volume: volume(sim, 1) }))
        .about_disk(1),
    Asked::new("GetVolumeIDFromTargetPath", |_| ask(GetVolumeIdFromTargetPath { target: path(TARGET) })).about_disk(1),
    Asked::new("GetClosestVolumeIDFromTargetPath", |_| ask(GetClosestVolumeIdFromTargetPath { target: path(TARGET) }))
        .about_disk(1),
    Asked::new("WriteVolumeCache", |sim| ask(WriteVolumeCache { volume: volume(sim, 1) })).about_disk(1),
];

fn is_at_target(sim: &Sim) -> bool {
    let paths = sim.volume_on(1).map(|volume| volume.paths).unwrap_or_default();
    paths.iter().any(|path| path.trim_end_matches('\\') == TARGET)
}

/// Whether a file system, if there is one, is as large as its partition.
fn is_filled(sim: &Sim) -> bool {
    let disks = sim.disks().into_iter().filter(|disk| disk.number == 1);
    disks.flat_map(|disk| disk.partitions).all(|partition| {
        let total = partition.volume.filter(|volume| volume.file_system.is_some()).map(|volume| volume.total);
        total.is_none_or(|total| partition.length - total < 1 << 20)
    })
}

/// The target in a snapshot; the system's files are on the second partition of disk 0.
const AT_TARGET: &str = r"disk 0 partition 2 \var\lib\kubelet\plugins\v ";

const MBR_MOUNT: &str = r"disk 1 partition 1 mounted at C:\var\lib\kubelet\plugins\v";

/// Each operation on volumes in each state of a volume and of its target.
pub fn scenarios() -> Vec<Scenario> {
    all_of(OPERATIONS, STATES)
}
