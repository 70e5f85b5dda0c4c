//! The targets for the answers of devices, file systems and the firmware.
//!
//! For any answer, each operation ends, its output is part of the answer, and no data is destroyed.

use std::sync::Arc;
use std::time::Duration;

use os_sim::{DiskView, Sim};
use storage_ops::{
    Config, DiskIds, DiskLocation, DiskNumber, FormatVolume, GetBiosSerialNumber,
    GetDiskNumberFromVolumeId, GetVolumeIdFromTargetPath, GetVolumeStats, HostPath, IsSymlink,
    IsVolumeFormatted, ListDiskIds, ListDiskLocations, ListVolumesOnDisk, MountVolume, Node,
    PartitionDisk, ResizeTarget, ResizeVolume, Rmdir, RmdirContents, UnmountVolume, VolumeId,
};

use crate::{CorruptingOs, Corruption};

const MOUNTED: &str = r"C:\var\lib\kubelet\plugins\mounted";
const FULL: &str = r"C:\var\lib\kubelet\plugins\full";
const LINK: &str = r"C:\var\lib\kubelet\pods\link";
const SERIAL: &str = "the serial number in WMI";

/// Builds a node whose disk 1 is raw, disk 2 has a mounted NTFS volume that can grow, and disk 3 a
/// raw volume, with some files and a link.
fn sim() -> Sim {
    os_sim::node()
        .bios_serial(SERIAL)
        .disk(1 << 30)
        .disk(1 << 30)
        .partitioned()
        .formatted("NTFS")
        .grown_to(2 << 30)
        .mounted(MOUNTED)
        .disk(1 << 30)
        .partitioned()
        .file(&format!(r"{FULL}\a\b"), "b")
        .file(&format!(r"{FULL}\c"), "c")
        .file(r"C:\outside\precious", "precious")
        .symlink(LINK, FULL)
        .build()
}

/// A node with one corrupted answer, and its real state.
struct CorruptedNode {
    sim: Sim,
    node: Node,
    disks: Vec<DiskView>,
    volume: VolumeId,
}

impl CorruptedNode {
    fn new(corruption: Corruption, bytes: &[u8]) -> Self {
        let sim = sim();
        let disks = sim.disks();
        let volume = sim.volume_on(2).expect("disk 2 has a volume").name();
        let volume = VolumeId::parse(&volume).expect("a volume has a name");
        let node = Node::new(
            Arc::new(CorruptingOs::new(sim.process(), corruption, bytes)),
            short_timeouts(),
        );
        Self {
            sim,
            node,
            disks,
            volume,
        }
    }

    fn ids(&self) -> Option<DiskIds> {
        self.node.run(&ListDiskIds).ok()?.remove(&DiskNumber(1))
    }

    /// Runs all operations that can change the disks.
    fn change_disks(&self) {
        let (volume, target) = (self.volume, path(MOUNTED));
        for disk in [1, 2].map(DiskNumber) {
            let _ = self.node.run(&PartitionDisk { disk });
            let _ = self.node.run(&ListVolumesOnDisk { disk, partition: 2 });
        }
        let _ = self.node.run(&FormatVolume::new(volume));
        let _ = self
            .node
            .run(&ResizeVolume::new(ResizeTarget::Volume(volume), 0));
        let _ = self
            .node
            .run(&ResizeVolume::new(ResizeTarget::Volume(volume), 3 << 29));
        let _ = self.node.run(&UnmountVolume {
            volume,
            target: target.clone(),
        });
        let _ = self.node.run(&MountVolume { volume, target });
    }

    /// Asserts that disks, partitions and file systems are unchanged, except that they may be
    /// larger.
    fn assert_nothing_destroyed(&self) {
        self.sim.invariants().expect("the node is consistent");
        let outside = self.sim.external().read(r"C:\outside\precious");
        assert_eq!(
            outside.expect("a file outside the working directories still exists"),
            b"precious",
            "it was changed"
        );
        assert_eq!(self.node.locked_objects(), 0, "a lock is still held");
        for (before, after) in self.disks.iter().zip(self.sim.disks()) {
            assert_eq!(before.number, after.number);
            for (old, new) in before.partitions.iter().zip(&after.partitions) {
                assert_eq!(
                    (old.number, old.offset, old.gpt_type),
                    (new.number, new.offset, new.gpt_type)
                );
                assert!(old.length <= new.length, "a partition has become smaller");
                let (old, new) = (old.volume.as_ref(), new.volume.as_ref());
                assert_eq!(
                    old.map(|volume| volume.formats),
                    new.map(|volume| volume.formats),
                    "a volume was formatted"
                );
            }
            assert!(
                before.partitions.len() <= after.partitions.len(),
                "a partition was removed"
            );
        }
    }
}

/// Returns a configuration that waits only briefly for a volume to arrive.
///
/// The wait is in simulated time, but each poll during it costs real time, and volumes of this node
/// arrive immediately.
fn short_timeouts() -> Config {
    Config::default().with(|c| c.timeouts.arrival = Duration::from_millis(300))
}

fn path(text: &str) -> HostPath {
    HostPath::parse(text).expect("a good path")
}

/// Returns whether `bytes` contain `text`, each character being a byte.
fn contains(bytes: &[u8], text: &str) -> bool {
    let text: Option<Vec<u8>> = text
        .chars()
        .map(|letter| u8::try_from(u32::from(letter)).ok())
        .collect();
    text.is_some_and(|text| {
        text.is_empty() || bytes.windows(text.len()).any(|window| window == text)
    })
}

/// A page-83 identifier is empty or what the device sent, as text or in hexadecimal.
pub(crate) fn page83(bytes: &[u8]) {
    let Some(ids) = CorruptedNode::new(Corruption::Page83, bytes).ids() else {
        return;
    };
    let octets = ids
        .page83
        .as_bytes()
        .chunks(2)
        .map(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok());
    let hex = octets.collect::<Option<Vec<_>>>();
    let is_hex = hex
        .is_some_and(|hex| !hex.is_empty() && bytes.windows(hex.len()).any(|window| window == hex));
    assert!(
        is_hex || contains(bytes, &ids.page83),
        "{:?} is not in the descriptor",
        ids.page83
    );
    assert!(
        ids.page83.is_empty() || !ids.page83.trim().is_empty(),
        "the identifier is blank"
    );
}

/// A disk's serial number is what the device sent.
pub(crate) fn device_descriptor(bytes: &[u8]) {
    let corrupted = CorruptedNode::new(Corruption::DeviceDescriptor, bytes);
    if let Some(ids) = corrupted.ids() {
        assert!(
            contains(bytes, &ids.serial),
            "{:?} is not in the descriptor",
            ids.serial
        );
    }
    let _ = corrupted.node.run(&PartitionDisk {
        disk: DiskNumber(1),
    });
    corrupted.assert_nothing_destroyed();
}

/// No layout makes an operation replace a partition table.
pub(crate) fn drive_layout(bytes: &[u8]) {
    let corrupted = CorruptedNode::new(Corruption::DriveLayout, bytes);
    corrupted.change_disks();
    corrupted.assert_nothing_destroyed();
}

/// No extents make an operation format a formatted volume again.
pub(crate) fn extents(bytes: &[u8]) {
    let corrupted = CorruptedNode::new(Corruption::Extents, bytes);
    if let Ok(disk) = corrupted.node.run(&GetDiskNumberFromVolumeId {
        volume: corrupted.volume,
    }) {
        let count = bytes
            .first_chunk()
            .map(|count| u32::from_le_bytes(*count) as usize);
        if count.is_some_and(|count| bytes.len() >= 8 + 24 * count) {
            assert_eq!(
                count,
                Some(1),
                "a disk was returned without exactly one extent"
            );
            assert_eq!(bytes.get(8..12), Some(&disk.0.to_le_bytes()[..]));
        } else {
            assert_eq!(
                disk,
                DiskNumber(2),
                "the disk of a malformed answer is that of the storage provider"
            );
        }
    }
    corrupted.change_disks();
    corrupted.assert_nothing_destroyed();
}

/// No name or size of a file system makes an operation format a formatted volume again.
pub(crate) fn file_system(bytes: &[u8]) {
    let corrupted = CorruptedNode::new(Corruption::FileSystem, bytes);
    let volume = corrupted.volume;
    if let Ok(stats) = corrupted.node.run(&GetVolumeStats { volume }) {
        assert!(stats.used <= stats.total);
    }
    let _ = corrupted.node.run(&IsVolumeFormatted { volume });
    let _ = corrupted
        .node
        .run(&ResizeVolume::new(ResizeTarget::Volume(volume), 0));
    corrupted.assert_nothing_destroyed();
}

/// A volume that Windows reports as raw is formatted only if IsVolumeFormatted returns false, and
/// only once.
pub(crate) fn content(bytes: &[u8]) {
    let corrupted = CorruptedNode::new(Corruption::Content, bytes);
    let formats = || {
        corrupted
            .sim
            .volume_on(3)
            .expect("disk 3 has a volume")
            .formats
    };
    let raw = corrupted
        .sim
        .volume_on(3)
        .expect("disk 3 has a volume")
        .name();
    let volume = VolumeId::parse(&raw).expect("a volume has a name");
    let formatted = corrupted.node.run(&IsVolumeFormatted { volume });
    let outcome = corrupted.node.run(&FormatVolume::new(volume));
    match formatted {
        Ok(formatted) => assert!(
            !formatted && outcome.is_ok() && formats() == 1,
            "{outcome:?}"
        ),
        Err(_) => assert!(
            outcome.is_err() && formats() == 0,
            "a volume in an unknown state was formatted"
        ),
    }
    let blank = bytes.iter().all(|byte| *byte == 0);
    assert!(!blank || formats() == 1, "a blank volume was not formatted");
}

/// No reparse data makes an operation follow a link.
pub(crate) fn reparse_point(bytes: &[u8]) {
    let corrupted = CorruptedNode::new(Corruption::ReparsePoint, bytes);
    let _ = corrupted.node.run(&GetVolumeIdFromTargetPath {
        target: path(MOUNTED),
    });
    let _ = corrupted.node.run(&IsSymlink { path: path(LINK) });
    let _ = corrupted.node.run(&UnmountVolume {
        volume: corrupted.volume,
        target: path(MOUNTED),
    });
    let _ = corrupted.node.run(&Rmdir {
        path: path(LINK),
        force: true,
        context: None,
    });
    let _ = corrupted.node.run(&Rmdir {
        path: path(MOUNTED),
        force: true,
        context: None,
    });
    assert!(
        corrupted.sim.external().exists(&format!(r"{FULL}\a\b")),
        "the link's target was deleted"
    );
    corrupted.assert_nothing_destroyed();
}

/// No name in a listing makes an operation delete a file outside the directory.
pub(crate) fn listing(bytes: &[u8]) {
    let corrupted = CorruptedNode::new(Corruption::Listing, bytes);
    let _ = corrupted.node.run(&RmdirContents { path: path(FULL) });
    let _ = corrupted.node.run(&Rmdir {
        path: path(FULL),
        force: true,
        context: None,
    });
    assert!(
        corrupted.sim.external().exists(MOUNTED),
        "a sibling of the directory was deleted"
    );
    corrupted.assert_nothing_destroyed();
}

/// The machine's serial number is from the SMBIOS table or from WMI.
pub(crate) fn smbios(bytes: &[u8]) {
    let corrupted = CorruptedNode::new(Corruption::Smbios, bytes);
    if let Ok(serial) = corrupted.node.run(&GetBiosSerialNumber) {
        assert!(
            serial == SERIAL || contains(bytes, &serial),
            "{serial:?} is not in the table"
        );
    }
}

/// The parts of a disk's location are digits from the location.
pub(crate) fn location(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let locations = CorruptedNode::new(Corruption::Location, bytes)
        .node
        .run(&ListDiskLocations)
        .expect("WMI answers");
    for DiskLocation {
        adapter,
        bus,
        target,
        lun,
        ..
    } in locations.values()
    {
        for part in [adapter, bus, target, lun] {
            assert!(
                part.bytes().all(|byte| byte.is_ascii_digit()) && text.contains(part),
                "{part:?}"
            );
        }
        assert!(!text.contains('\\'), "a path was accepted as a location");
    }
}
