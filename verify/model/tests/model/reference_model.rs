//! The reference model: the state of a node as drivers see it.
//!
//! It is derived from the contract and the RPCs only, and does not depend on how csi-proxy works: a
//! disk has a number and may have a volume, a volume may have a file system, and a path may or may
//! not resolve.

use std::collections::BTreeMap;
use std::fmt;

use os_sim::{DiskDescription, Page83, Sim};

use crate::directory_tree::{Directory, DiskKey, Entry};
use crate::expected::Expected;

pub(crate) const GIB: u64 = 1 << 30;
pub(crate) const MIB: u64 = 1 << 20;

pub(crate) const KUBELET: [&str; 3] = ["var", "lib", "kubelet"];

/// A working directory in kubelet's, which need not exist.
pub(crate) const INNER: [&str; 6] = ["var", "lib", "kubelet", "plugins", "c", "inner"];
pub(crate) const SHARES: [&str; 2] = ["one", "two"];
pub(crate) const USERS: [&str; 2] = [r"FILES\anna", r"FILES\bert"];

/// The state of a node, and the expected answer to the last transition.
#[derive(Clone)]
pub(crate) struct Model {
    /// By number, including disks that Windows has not enumerated.
    pub(crate) disks: BTreeMap<u32, Disk>,
    /// Detached disks.
    pub(crate) detached: Vec<Disk>,
    /// The files on `C:`.
    pub(crate) files: Directory,
    /// The files on each share.
    pub(crate) share_files: Directory,
    /// Whether the SMB server can be reached.
    pub(crate) smb_reachable: bool,
    /// How often the password of each user has changed.
    pub(crate) passwords: BTreeMap<&'static str, u32>,
    /// By share.
    pub(crate) mappings: BTreeMap<String, Mapping>,
    /// How often the size of a file system was set. Between two of these changes it stays the same.
    pub(crate) size_generations: u32,
    pub(crate) expected: Expected,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Disk {
    pub(crate) key: DiskKey,
    pub(crate) size: u64,
    pub(crate) enumerated: bool,
    pub(crate) online: bool,
    pub(crate) read_only: bool,
    pub(crate) layout: Layout,
    pub(crate) volume: Option<Volume>,
    /// Page 83 identifier and serial number, where the model knows them.
    pub(crate) ids: Option<(&'static str, String)>,
    /// Adapter, bus, target and LUN, if the disk is listed.
    pub(crate) location: Option<[String; 4]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    Raw,
    /// A GPT without a data partition.
    Reserved,
    Gpt,
    Mbr,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Volume {
    /// The requested size; the usable size is slightly less.
    pub(crate) extent: u64,
    /// The [`Model::size_generations`] when the size was set.
    pub(crate) size_generation: u32,
    pub(crate) file_system: Option<FileSystem>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileSystem {
    pub(crate) name: &'static str,
    pub(crate) files: Directory,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) user: &'static str,
    /// Whether the running daemon created the mapping and so knows the user.
    pub(crate) known: bool,
    /// How often the password had changed when the mapping was created.
    pub(crate) password: u32,
}

/// The initial disks after the system disk, in the order of their numbers.
const DISKS: [(Layout, Option<&str>); 8] = [
    (Layout::Raw, None),
    (Layout::Gpt, Some("NTFS")),
    (Layout::Gpt, None),
    (Layout::Gpt, Some("ReFS")),
    (Layout::Mbr, Some("NTFS")),
    (Layout::Raw, None),
    (Layout::Reserved, None),
    (Layout::Gpt, Some("NTFS")),
];
const PAGE_83: [&str; 8] = [
    "Google  pvc-1",
    "pvc-2",
    "600a",
    "Google  pvc-4",
    "",
    "Google  pvc-4",
    "pvc 7",
    "pvc-8",
];
const OFFLINE: DiskKey = 6;
const UNKNOWN_LOCATION: DiskKey = 4;
const NVME: DiskKey = 5;
/// The file on the volume of the last disk.
const DATA: &str = "data";

/// Short, because the initial model is the same for all sequences.
impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Model::new()")
    }
}

impl Model {
    pub(crate) fn new() -> Self {
        let system = FileSystem {
            name: "NTFS",
            files: Directory::new(),
        };
        let system = Disk {
            key: 0,
            size: 128 * GIB,
            enumerated: true,
            online: true,
            read_only: false,
            layout: Layout::Gpt,
            volume: Some(Volume {
                extent: 128 * GIB,
                size_generation: 0,
                file_system: Some(system),
            }),
            ids: None,
            location: Some(location("0", "0", "0")),
        };
        let mut disks = BTreeMap::from([(0, system)]);
        for (at, (layout, file_system)) in DISKS.into_iter().enumerate() {
            let key = DiskKey::try_from(at + 1).expect("few");
            let files = if key == 8 {
                Directory::from([(DATA.into(), Entry::File)])
            } else {
                Directory::new()
            };
            let file_system = file_system.map(|name| FileSystem { name, files });
            let extent = size_of(key);
            let volume = matches!(layout, Layout::Gpt | Layout::Mbr);
            let location = match key {
                UNKNOWN_LOCATION => None,
                NVME => Some([String::new(), String::new(), String::new(), String::new()]),
                _ => Some(location("3", "0", &key.to_string())),
            };
            let disk = Disk {
                key,
                size: size_of(key),
                enumerated: true,
                online: key != OFFLINE,
                read_only: key == OFFLINE,
                layout,
                volume: volume.then(|| Volume {
                    extent,
                    size_generation: key.into(),
                    file_system,
                }),
                ids: Some((PAGE_83[at], format!("serial_{key}."))),
                location,
            };
            disks.insert(key.into(), disk);
        }
        let (mut plugins, pods) = (Directory::new(), Directory::new());
        for name in ["a", "b", "c"] {
            plugins.insert(name.into(), Entry::Directory(Directory::new()));
        }
        plugins.insert("m".into(), Entry::Mount(8));
        let kubelet = Directory::from([
            ("plugins".into(), Entry::Directory(plugins)),
            ("pods".into(), Entry::Directory(pods)),
        ]);
        let lib = Directory::from([
            ("kubelet".into(), Entry::Directory(kubelet)),
            ("kubelet-evil".into(), Entry::Directory(Directory::new())),
        ]);
        let var = Directory::from([("lib".into(), Entry::Directory(lib))]);
        let outside = Directory::from([("precious".into(), Entry::File)]);
        let files = Directory::from([
            ("var".into(), Entry::Directory(var)),
            ("outside".into(), Entry::Directory(outside)),
        ]);
        Self {
            disks,
            detached: Vec::new(),
            files,
            share_files: Directory::new(),
            smb_reachable: true,
            passwords: USERS.map(|user| (user, 0)).into(),
            mappings: BTreeMap::new(),
            size_generations: 100,
            expected: Expected::nothing(),
        }
    }

    /// Returns a volume that Windows shows.
    pub(crate) fn volume(&self, key: DiskKey) -> Option<&Volume> {
        self.disk_of(key)?.1.volume.as_ref()
    }

    pub(crate) fn volume_mut(&mut self, key: DiskKey) -> Option<&mut Volume> {
        let (number, _) = self.disk_of(key)?;
        self.disks.get_mut(&number)?.volume.as_mut()
    }

    /// Returns a disk that Windows shows.
    pub(crate) fn disk(&self, number: u32) -> Option<&Disk> {
        self.disks.get(&number).filter(|disk| disk.enumerated)
    }

    pub(crate) fn next_size_generation(&mut self) -> u32 {
        self.size_generations += 1;
        self.size_generations
    }

    /// Adds a disk with the lowest free number, as Windows does.
    pub(crate) fn attach(&mut self, disk: Disk) {
        let free = (0..=u32::MAX)
            .find(|number| !self.disks.contains_key(number))
            .expect("there are few disks");
        self.disks.insert(free, disk);
    }

    /// Whether the node can read a share.
    pub(crate) fn readable(&self, share: &str) -> bool {
        let valid = |mapping: &Mapping| mapping.password == self.passwords[mapping.user];
        self.smb_reachable && self.mappings.get(share).is_some_and(valid)
    }
}

fn location(adapter: &str, target: &str, lun: &str) -> [String; 4] {
    [adapter, "", target, lun].map(str::to_owned)
}

pub(crate) fn size_of(key: DiskKey) -> u64 {
    (2 + u64::from(key % 2)) * GIB
}

pub(crate) fn password(user: &str, changes: u32) -> String {
    format!("{user}-secret-{changes}")
}

/// Returns the simulated node that matches the initial model.
pub(crate) fn simulated() -> Sim {
    let mut node = os_sim::node();
    for (at, (layout, file_system)) in DISKS.into_iter().enumerate() {
        let key = DiskKey::try_from(at + 1).expect("few");
        node = node.disk(size_of(key)).serial(&format!("serial_{key}."));
        node = match PAGE_83[at] {
            "" => node.no_page83(),
            "600a" => node.page83_binary(&[0x60, 0x0a]),
            text => node.page83_ascii(text),
        };
        node = match layout {
            Layout::Raw => node,
            Layout::Reserved => node.gpt(),
            Layout::Gpt => node.partitioned(),
            Layout::Mbr => node.mbr(),
        };
        if let Some(name) = file_system {
            node = node.formatted(name);
        }
        node = match key {
            OFFLINE => node.offline().read_only(),
            UNKNOWN_LOCATION => node.location("Integrated : Bus 0 : Device 3"),
            NVME => node.location("PCI Slot 3 : Bus 0 : Device 3 : Function 0 : Adapter 2"),
            _ => node,
        };
    }
    node = node
        .mounted(r"C:\var\lib\kubelet\plugins\m")
        .file(r"C:\var\lib\kubelet\plugins\m\data", "data");
    for name in ["a", "b", "c"] {
        node = node.dir(&format!(r"C:\var\lib\kubelet\plugins\{name}"));
    }
    node = node
        .dir(r"C:\var\lib\kubelet-evil")
        .file(r"C:\outside\precious", "precious")
        .smb_server("files");
    for share in SHARES {
        node = node.share(share);
    }
    // Nothing depends on whether the root of the last share may be listed.
    node = node.unlistable();
    for user in USERS {
        node = node.user(user, &password(user, 0));
    }
    node.build()
}

/// Returns a disk that is attached later, and its description for the simulator.
pub(crate) fn another(key: DiskKey) -> (Disk, DiskDescription) {
    let serial = format!("serial_{key}.");
    let description = DiskDescription {
        serial: Some(serial.clone()),
        page83: Page83::Ascii("late".into()),
        location: Some("Integrated : Adapter 4 : Port 0 : Target 1 : LUN 7".into()),
        ..DiskDescription::new(2 * GIB)
    };
    let disk = Disk {
        key,
        size: 2 * GIB,
        enumerated: true,
        online: true,
        read_only: false,
        layout: Layout::Raw,
        volume: None,
        ids: Some(("late", serial)),
        location: Some(location("4", "1", "7")),
    };
    (disk, description)
}
