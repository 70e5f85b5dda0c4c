//! What a node has come to, as text that can be compared.

use std::fmt::{self, Write as _};

use os::Uuid;

use crate::disks::mount_manager::volume_guid;
use crate::disks::{Disk, Layout, PartitionKind};
use crate::sim::Sim;
use crate::state::{FsId, State};
use crate::view::{FileKind, FileView};

/// All of a node that should be the same after two runs that did the same: disks, partitions, file systems with
/// all files, SMB mappings, iSCSI sessions and services. Times, handles, serial numbers and made-up GUIDs are left
/// out; a volume is called by its disk and partition.
#[derive(Clone, PartialEq, Eq)]
pub struct Snapshot(String);

impl Snapshot {
    /// The text, a line for each fact.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The lines that differ: those missing in `other` with `-`, those it has more with `+`.
    pub fn difference(&self, other: &Self) -> String {
        let missing = self.0.lines().filter(|line| !other.0.lines().any(|known| known == *line));
        let added = other.0.lines().filter(|line| !self.0.lines().any(|known| known == *line));
        missing.map(|line| format!("- {line}\n")).chain(added.map(|line| format!("+ {line}\n"))).collect()
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Sim {
    /// What the node has come to.
    pub fn snapshot(&self) -> Snapshot {
        self.with(|state| {
            let mut text = String::new();
            state.describe_to(&mut text).expect("writing to a string");
            Snapshot(text)
        })
    }
}

impl State {
    fn describe_to(&mut self, to: &mut String) -> fmt::Result {
        let mut disks: Vec<&Disk> = self.disks.values().filter(|disk| disk.visible).collect();
        disks.sort_by_key(|disk| disk.number);
        for disk in disks {
            self.describe_disk(disk, to)?;
        }
        let shares = self.smb.servers.iter().flat_map(|server| server.shares.iter().map(move |share| (server, share)));
        for (server, share) in shares {
            let name = format!(r"\\{}\{}", server.host, share.name).to_lowercase();
            self.describe_tree(&FsId::Share(name[2..].to_owned(), share.tree), &name, to)?;
        }
        for mapping in self.smb.mappings() {
            let user = mapping.user.as_deref().unwrap_or("guest");
            writeln!(to, "mapping {} as {user}, {:?}, privacy {}", mapping.remote, mapping.status, mapping.privacy)?;
        }
        for row in self.iscsi.rows("MSFT_iSCSITargetPortal").into_iter().flatten() {
            writeln!(to, "portal {}", row.path)?;
        }
        for row in self.iscsi.rows("MSFT_iSCSITarget").into_iter().flatten() {
            writeln!(to, "target {} connected {:?}", row.path, row.bool("IsConnected"))?;
        }
        let now = os::Time(self.now);
        self.services.tick(now);
        for service in &self.services.services {
            writeln!(to, "service {} {:?}", service.name, service.state)?;
        }
        Ok(())
    }

    fn describe_disk(&self, disk: &Disk, to: &mut String) -> fmt::Result {
        let style = match disk.layout {
            Layout::Raw => "raw",
            Layout::Mbr { .. } => "mbr",
            Layout::Gpt { .. } => "gpt",
            Layout::Superfloppy => "superfloppy",
        };
        let (offline, read_only) = (disk.is_offline(), disk.is_read_only());
        writeln!(to, "disk {} {style} {} offline {offline} read-only {read_only}", disk.number, disk.size)?;
        for part in &disk.partitions {
            let kind = match part.kind {
                PartitionKind::Gpt(kind) => kind.to_string(),
                PartitionKind::Mbr(kind) => format!("mbr {kind:#x}"),
            };
            let place = format!("disk {} partition {}", disk.number, part.number);
            writeln!(to, "{place} {kind} at {} length {}", part.offset, part.length)?;
            let Some(volume) = &part.volume else { continue };
            let kind = volume.file_system.as_ref().map_or("RAW", |file_system| &file_system.kind);
            let length = volume.file_system.as_ref().map_or(0, |file_system| file_system.length);
            writeln!(to, "{place} volume {kind} {length} {:?} arrived {}", volume.health, volume.arrived)?;
            let mut paths = self.dos_prefixes(volume.id, 0);
            paths.sort_unstable();
            for path in paths {
                writeln!(to, "{place} mounted at {path}")?;
            }
            self.describe_tree(&FsId::Volume(volume.id), &place, to)?;
        }
        Ok(())
    }

    fn describe_tree(&self, fs: &FsId, place: &str, to: &mut String) -> fmt::Result {
        let files = self.file_system(fs).and_then(|file_system| self.tree_of(fs, file_system.root));
        for FileView { path, kind, attributes } in files.unwrap_or_default() {
            let what = match kind {
                FileKind::Directory => "directory".to_owned(),
                FileKind::File(data) => format!("file {:?}", String::from_utf8_lossy(&data)),
                FileKind::Symlink(target) => format!("symlink to {}", self.without_guid(&target)),
                FileKind::MountPoint(target) => format!("mount point to {}", self.without_guid(&target)),
                FileKind::Reparse(tag) => format!("reparse point {tag:#x}"),
            };
            writeln!(to, r"{place} \{path} {what} {attributes:#x}")?;
        }
        Ok(())
    }

    /// A link's target with the volume called by its place.
    fn without_guid(&self, target: &str) -> String {
        let rest = target.strip_prefix(r"\??\").unwrap_or(target);
        let (head, tail) = rest.split_at(rest.find('\\').unwrap_or(rest.len()));
        let id: Option<Uuid> = volume_guid(&head.encode_utf16().collect::<Vec<_>>());
        let known = id.and_then(|id| self.location_of(id));
        match known.and_then(|(device, part)| Some((self.disks.get(&device)?.number, part))) {
            Some((disk, part)) => format!("disk {disk} partition {part}{tail}"),
            None => target.to_owned(),
        }
    }
}
