//! What devices, file systems and the firmware answer.
//!
//! Whatever it is: an operation ends, what it says was in the answer, and nothing is destroyed.

use std::sync::Arc;
use std::time::Duration;

use os_sim::{DiskView, Sim};
use storage_ops::{
    Config, DiskIds, DiskLocation, DiskNumber, FormatVolume, GetBiosSerialNumber, GetDiskNumberFromVolumeId,
    GetVolumeIdFromTargetPath, GetVolumeStats, HostPath, IsSymlink, IsVolumeFormatted, ListDiskIds, ListDiskLocations,
    ListVolumesOnDisk, MountVolume, Node, PartitionDisk, ResizeTarget, ResizeVolume, Rmdir, RmdirContents, Timeouts,
    UnmountVolume, VolumeId,
};

use crate::{CorruptingOs, Corruption};

const MOUNTED: &str = r"C:\var\lib\kubelet\plugins\mounted";
const FULL: &str = r"C:\var\lib\kubelet\plugins\full";
const LINK: &str = r"C:\var\lib\kubelet\pods\link";
const SERIAL: &str = "the serial number in WMI";

/// Disk 1 is raw, disk 2 has a mounted NTFS volume and room to grow, disk 3 a raw volume; there are files and a link.
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

/// A node that lies, and what is on it in truth.
struct Deceived {
    sim: Sim,
    node: Node,
    disks: Vec<DiskView>,
    volume: VolumeId,
}

impl Deceived {
    fn about(lie: Corruption, bytes: &[u8]) -> Self {
        let sim = sim();
        let disks = sim.disks();
        let volume = sim.volume_on(2).expect("disk 2 has a volume").name();
        let volume = VolumeId::parse(&volume).expect("a volume has a name");
        let node = Node::new(Arc::new(CorruptingOs::new(sim.process(), lie, bytes)), hasty());
        Self { sim, node, disks, volume }
    }

    fn ids(&self) -> Option<DiskIds> {
        self.node.run(&ListDiskIds).ok()?.remove(&DiskNumber(1))
    }

    /// All that can change the disks.
    fn change_disks(&self) {
        let (volume, target) = (self.volume, path(MOUNTED));
        for disk in [1, 2].map(DiskNumber) {
            let _ = self.node.run(&PartitionDisk { disk });
            let _ = self.node.run(&ListVolumesOnDisk { disk, partition: 2 });
        }
        let _ = self.node.run(&FormatVolume { volume });
        let _ = self.node.run(&ResizeVolume { target: ResizeTarget::Volume(volume), size: 0 });
        let _ = self.node.run(&ResizeVolume { target: ResizeTarget::Volume(volume), size: 3 << 29 });
        let _ = self.node.run(&UnmountVolume { volume, target: target.clone() });
        let _ = self.node.run(&MountVolume { volume, target });
    }

    /// Disks, partitions and file systems are there as they were, if perhaps larger.
    fn nothing_is_destroyed(&self) {
        self.sim.invariants().expect("the node makes sense");
        let outside = self.sim.external().read(r"C:\outside\precious");
        assert_eq!(outside.expect("it is still there"), b"precious", "nothing outside was touched");
        assert_eq!(self.node.locked_objects(), 0, "no lock is left behind");
        for (before, after) in self.disks.iter().zip(self.sim.disks()) {
            assert_eq!(before.number, after.number);
            for (old, new) in before.partitions.iter().zip(&after.partitions) {
                assert_eq!((old.number, old.offset, old.gpt_type), (new.number, new.offset, new.gpt_type));
                assert!(old.length <= new.length, "a partition is smaller than it was");
                let (old, new) = (old.volume.as_ref(), new.volume.as_ref());
                assert_eq!(old.map(|volume| volume.formats), new.map(|volume| volume.formats), "it was formatted");
            }
            assert!(before.partitions.len() <= after.partitions.len(), "a partition is gone");
        }
    }
}

/// A volume that a lie hides is waited for again and again: in simulated time that costs none, but it costs looks. Here
/// what comes at all comes in a few.
fn hasty() -> Config {
    let timeouts = Timeouts { arrival: Duration::from_millis(300), ..Timeouts::default() };
    Config { timeouts, ..Config::default() }
}

fn path(text: &str) -> HostPath {
    HostPath::parse(text).expect("a good path")
}

/// Whether `text` stands in `bytes`, each character being a byte.
fn is_in(bytes: &[u8], text: &str) -> bool {
    let text: Option<Vec<u8>> = text.chars().map(|letter| u8::try_from(u32::from(letter)).ok()).collect();
    text.is_some_and(|text| text.is_empty() || bytes.windows(text.len()).any(|window| window == text))
}

/// Page-83 identifiers are none, or what the device sent: as text, or in hexadecimal.
pub(crate) fn page83(bytes: &[u8]) {
    let Some(ids) = Deceived::about(Corruption::Page83, bytes).ids() else { return };
    let octets = ids.page83.as_bytes().chunks(2).map(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok());
    let hex = octets.collect::<Option<Vec<_>>>();
    let is_hex = hex.is_some_and(|hex| !hex.is_empty() && bytes.windows(hex.len()).any(|window| window == hex));
    assert!(is_hex || is_in(bytes, &ids.page83), "{:?} is not in the descriptor", ids.page83);
    assert!(ids.page83.is_empty() || !ids.page83.trim().is_empty(), "blanks are no identifier");
}

/// A serial number is what the device sent.
pub(crate) fn device_descriptor(bytes: &[u8]) {
    let deceived = Deceived::about(Corruption::DeviceDescriptor, bytes);
    if let Some(ids) = deceived.ids() {
        assert!(is_in(bytes, &ids.serial), "{:?} is not in the descriptor", ids.serial);
    }
    let _ = deceived.node.run(&PartitionDisk { disk: DiskNumber(1) });
    deceived.nothing_is_destroyed();
}

/// Whatever a partition table looks like, none is replaced.
pub(crate) fn drive_layout(bytes: &[u8]) {
    let deceived = Deceived::about(Corruption::DriveLayout, bytes);
    deceived.change_disks();
    deceived.nothing_is_destroyed();
}

/// Wherever a volume is said to lie, it is not formatted again.
pub(crate) fn extents(bytes: &[u8]) {
    let deceived = Deceived::about(Corruption::Extents, bytes);
    if let Ok(disk) = deceived.node.run(&GetDiskNumberFromVolumeId { volume: deceived.volume }) {
        assert_eq!(bytes.get(..4), Some(&[1, 0, 0, 0][..]), "only one extent has one disk");
        assert_eq!(bytes.get(8..12), Some(&disk.0.to_le_bytes()[..]));
    }
    deceived.change_disks();
    deceived.nothing_is_destroyed();
}

/// Whatever its file system is called and how large it says it is, a volume is not formatted again.
pub(crate) fn file_system(bytes: &[u8]) {
    let deceived = Deceived::about(Corruption::FileSystem, bytes);
    let volume = deceived.volume;
    if let Ok(stats) = deceived.node.run(&GetVolumeStats { volume }) {
        assert!(stats.used <= stats.total);
    }
    let _ = deceived.node.run(&IsVolumeFormatted { volume });
    let _ = deceived.node.run(&ResizeVolume { target: ResizeTarget::Volume(volume), size: 0 });
    deceived.nothing_is_destroyed();
}

/// A volume that Windows takes for raw is formatted only if it is said to be unformatted, and then once.
pub(crate) fn content(bytes: &[u8]) {
    let deceived = Deceived::about(Corruption::Content, bytes);
    let formats = || deceived.sim.volume_on(3).expect("disk 3 has a volume").formats;
    let raw = deceived.sim.volume_on(3).expect("disk 3 has a volume").name();
    let volume = VolumeId::parse(&raw).expect("a volume has a name");
    let formatted = deceived.node.run(&IsVolumeFormatted { volume });
    let outcome = deceived.node.run(&FormatVolume { volume });
    match formatted {
        Ok(formatted) => assert!(!formatted && outcome.is_ok() && formats() == 1, "{outcome:?}"),
        Err(_) => assert!(outcome.is_err() && formats() == 0, "what cannot be told was formatted"),
    }
    let blank = bytes.iter().all(|byte| *byte == 0);
    assert!(!blank || formats() == 1, "what is blank is not formatted");
}

/// A link that cannot be read is not followed.
pub(crate) fn reparse_point(bytes: &[u8]) {
    let deceived = Deceived::about(Corruption::ReparsePoint, bytes);
    let _ = deceived.node.run(&GetVolumeIdFromTargetPath { target: path(MOUNTED) });
    let _ = deceived.node.run(&IsSymlink { path: path(LINK) });
    let _ = deceived.node.run(&UnmountVolume { volume: deceived.volume, target: path(MOUNTED) });
    let _ = deceived.node.run(&Rmdir { path: path(LINK), force: true, context: None });
    let _ = deceived.node.run(&Rmdir { path: path(MOUNTED), force: true, context: None });
    assert!(deceived.sim.external().exists(&format!(r"{FULL}\a\b")), "what the link leads to stays");
    deceived.nothing_is_destroyed();
}

/// Whatever names a directory has, nothing outside it is deleted.
pub(crate) fn listing(bytes: &[u8]) {
    let deceived = Deceived::about(Corruption::Listing, bytes);
    let _ = deceived.node.run(&RmdirContents { path: path(FULL) });
    let _ = deceived.node.run(&Rmdir { path: path(FULL), force: true, context: None });
    assert!(deceived.sim.external().exists(MOUNTED), "what is beside the directory stays");
    deceived.nothing_is_destroyed();
}

/// A serial number is in the table, or it is WMI's.
pub(crate) fn smbios(bytes: &[u8]) {
    let deceived = Deceived::about(Corruption::Smbios, bytes);
    if let Ok(serial) = deceived.node.run(&GetBiosSerialNumber) {
        assert!(serial == SERIAL || is_in(bytes, &serial), "{serial:?} is not in the table");
    }
}

/// The parts of a location are digits that stand in it.
pub(crate) fn location(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let locations = Deceived::about(Corruption::Location, bytes).node.run(&ListDiskLocations).expect("WMI answers");
    for DiskLocation { adapter, bus, target, lun } in locations.values() {
        for part in [adapter, bus, target, lun] {
            assert!(part.bytes().all(|byte| byte.is_ascii_digit()) && text.contains(part), "{part:?}");
        }
        assert!(!text.contains('\\'), "a file has no location");
    }
}
