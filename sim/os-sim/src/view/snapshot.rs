//! Snapshots: the state of a node as text that can be compared.

use std::fmt::{self, Write as _};

use os::Uuid;

use crate::disks::mount_manager::volume_guid;
use crate::disks::{Disk, PartitionKind};
use crate::sim::Sim;
use crate::state::{FsId, State};
use crate::view::{FileKind, FileView};

/// The part of a node's state that is the same after two runs of the same operations: disks,
/// partitions, file systems with all files, SMB mappings, iSCSI sessions and services.
///
/// Leaves out times, handles, serial numbers and generated GUIDs. Names a volume by its disk and
/// partition.
#[derive(Clone, PartialEq, Eq)]
pub struct Snapshot(String);

impl Snapshot {
    /// Returns the text, which has a line for each disk, partition, file and so on.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the lines that differ: with `-` the lines that only `self` has, with `+` the lines
    /// that only `other` has.
    pub fn difference(&self, other: &Self) -> String {
        let missing = self
            .0
            .lines()
            .filter(|line| !other.0.lines().any(|known| known == *line));
        let added = other
            .0
            .lines()
            .filter(|line| !self.0.lines().any(|known| known == *line));
        missing
            .map(|line| format!("- {line}\n"))
            .chain(added.map(|line| format!("+ {line}\n")))
            .collect()
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Sim {
    /// Returns a snapshot of the node.
    pub fn snapshot(&self) -> Snapshot {
        self.with(|state| {
            let mut text = String::new();
            state
                .write_snapshot(&mut text)
                .expect("writing to a string");
            Snapshot(text)
        })
    }
}

impl State {
    fn write_snapshot(&mut self, to: &mut String) -> fmt::Result {
        let mut disks: Vec<&Disk> = self.visible_disks().map(|(_, disk)| disk).collect();
        disks.sort_by_key(|disk| disk.number);
        for disk in disks {
            self.write_disk(disk, to)?;
        }
        let shares = self
            .smb
            .servers
            .iter()
            .flat_map(|server| server.shares.iter().map(move |share| (server, share)));
        for (server, share) in shares {
            let name = format!(r"\\{}\{}", server.host, share.name).to_lowercase();
            self.write_tree(FsId::Share(share.tree), &name, to)?;
        }
        for mapping in self.smb.mappings() {
            let user = mapping.user.as_deref().unwrap_or("guest");
            writeln!(
                to,
                "mapping {} as {user}, privacy {}",
                mapping.remote, mapping.privacy
            )?;
        }
        for row in self
            .iscsi
            .rows("MSFT_iSCSITargetPortal")
            .into_iter()
            .flatten()
        {
            writeln!(to, "portal {}", row.path)?;
        }
        for row in self.iscsi.rows("MSFT_iSCSITarget").into_iter().flatten() {
            let iqn = row.text("NodeAddress").unwrap_or_default();
            writeln!(
                to,
                "target {} connected {:?} sessions {}",
                row.path,
                row.bool("IsConnected"),
                self.iscsi.sessions_with(iqn)
            )?;
        }
        let now = os::Time(self.now);
        self.services.tick(now);
        for service in &self.services.services {
            writeln!(to, "service {} {:?}", service.name, service.state)?;
        }
        Ok(())
    }

    fn write_disk(&self, disk: &Disk, to: &mut String) -> fmt::Result {
        let style = disk.layout.name();
        let offline = disk.is_offline();
        let read_only = disk.is_read_only();
        writeln!(
            to,
            "disk {} {style} {} offline {offline} read-only {read_only}",
            disk.number, disk.size
        )?;
        for part in &disk.partitions {
            let kind = match part.kind {
                PartitionKind::Gpt(kind) => kind.to_string(),
                PartitionKind::Mbr(kind) => format!("mbr {kind:#x}"),
            };
            let partition = format!("disk {} partition {}", disk.number, part.number);
            writeln!(
                to,
                "{partition} {kind} at {} length {}",
                part.offset, part.length
            )?;
            let Some(volume) = &part.volume else { continue };
            let kind = volume
                .file_system
                .as_ref()
                .map_or("RAW", |file_system| &file_system.kind);
            let (length, cluster) = volume.file_system.as_ref().map_or((0, 0), |file_system| {
                (file_system.length, file_system.cluster)
            });
            writeln!(
                to,
                "{partition} volume {kind} {length}/{cluster} {:?} arrived {}",
                volume.health, volume.arrived
            )?;
            if volume.arrived && volume.offline {
                writeln!(to, "{partition} volume offline")?;
            }
            let mut paths = self.dos_prefixes(volume.id);
            paths.sort_unstable();
            for path in paths {
                writeln!(to, "{partition} mounted at {path}")?;
            }
            self.write_tree(FsId::Volume(volume.id), &partition, to)?;
        }
        Ok(())
    }

    fn write_tree(&self, fs: FsId, prefix: &str, to: &mut String) -> fmt::Result {
        if let Ok(file_system) = self.file_system(fs)
            && let Some(access) = file_system
                .record(file_system.root)
                .ok()
                .and_then(|root| root.access.as_ref())
        {
            let grants = access
                .entries
                .iter()
                .flatten()
                .map(|entry| format!("{} {:#x}", entry.sid, entry.rights));
            writeln!(
                to,
                "{prefix} access {}",
                grants.collect::<Vec<_>>().join(", ")
            )?;
        }
        let root = self
            .file_system(fs)
            .and_then(|found| found.record(found.root));
        for (name, size) in root.iter().flat_map(|root| &root.streams) {
            writeln!(to, "{prefix} stream {name} of {size} bytes")?;
        }
        let files = self
            .file_system(fs)
            .and_then(|file_system| self.tree_of(fs, file_system.root));
        for FileView {
            path,
            kind,
            attributes,
        } in files.unwrap_or_default()
        {
            let what = match kind {
                FileKind::Directory => "directory".to_owned(),
                FileKind::File(data) => format!("file {:?}", String::from_utf8_lossy(&data)),
                FileKind::Symlink(target) => format!("symlink to {}", self.without_guid(&target)),
                FileKind::MountPoint(target) => {
                    format!("mount point to {}", self.without_guid(&target))
                }
                FileKind::Reparse(tag) => format!("reparse point {tag:#x}"),
            };
            writeln!(to, r"{prefix} \{path} {what} {attributes:#x}")?;
        }
        Ok(())
    }

    /// Returns the target of a link, with the GUID of a volume replaced by its disk and partition.
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
