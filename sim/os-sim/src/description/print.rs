//! Writes a node as a node file.

use std::fmt::Write as _;
use std::time::Duration;

use os::abi::CODE_SET_ASCII;
use os::{OsResult, Uuid};

use crate::clock::timing::Timing;
use crate::description::from_description::{SYSTEM_DIRECTORIES, SYSTEM_LINKS};
use crate::description::{BUSES, quantity};
use crate::disks::mount_manager::mounted_volume;
use crate::disks::{Disk, Health, Layout, Partition, Volume};
use crate::external::readlink_text;
use crate::files::file_system::{Body, FileRecord, FileSystem};
use crate::files::reparse_point::{self, Target};
use crate::hex;
use crate::iscsi::{Chap, PortalAddress};
use crate::services::ServiceModel;
use crate::sim::Sim;
use crate::smb::{Mapping, Server};
use crate::state::State;

impl Sim {
    /// Returns the node as a node file, from which an equal node can be created: with the same disks, volume GUIDs, files,
    /// services and servers. Comments in it name what it leaves out.
    ///
    /// It has the passwords of the servers.
    pub fn node_file(&self) -> String {
        self.with(|state| {
            let mut file = NodeFile::default();
            state.write_node(&mut file);
            file.text
        })
    }

    /// Returns the node file of [`Self::default_node`].
    pub const fn default_node_file() -> &'static str {
        crate::sim::DEFAULT_NODE
    }
}

/// A node file that is being written.
#[derive(Default)]
struct NodeFile {
    text: String,
}

impl NodeFile {
    fn line(&mut self, line: &str) {
        self.text += line;
        self.text.push('\n');
    }

    fn table(&mut self, name: &str) {
        self.line(&format!("\n[[{name}]]"));
    }

    /// Writes a key with a value in TOML.
    fn value(&mut self, key: &str, value: impl std::fmt::Display) {
        // Writing to a String does not fail.
        let _ = writeln!(self.text, "{key} = {value}");
    }

    fn text(&mut self, key: &str, text: &str) {
        self.value(key, quoted(text));
    }

    fn size(&mut self, key: &str, bytes: u64) {
        self.value(key, quantity::size_value(bytes));
    }

    /// Writes a key that is false by default.
    fn switch(&mut self, key: &str, is_on: bool) {
        if is_on {
            self.value(key, true);
        }
    }

    fn milliseconds(&mut self, key: &str, milliseconds: u64) {
        if milliseconds > 0 {
            self.value(key, quantity::duration_value(Duration::from_millis(milliseconds)));
        }
    }

    fn comment(&mut self, text: &str) {
        self.line(&format!("# {text}"));
    }
}

/// Returns a text as a string of TOML.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

impl State {
    fn write_node(&mut self, to: &mut NodeFile) {
        to.comment("A simulated node, as csi-proxy-sim has written it.");
        if let Some(serial) = &self.bios_serial {
            to.text("bios_serial", serial);
        }
        if self.no_automount {
            to.value("no_automount", true);
        }
        write_timing(&self.timing, to);
        let mut disks: Vec<&Disk> = self.disks.values().filter(|disk| !disk.system && disk.lun_id.is_none()).collect();
        disks.sort_by_key(|disk| disk.number);
        for disk in disks {
            write_disk(disk, to);
        }
        for disk in self.unplugged.values() {
            to.comment(&format!("Left out: an unplugged disk, which had the number {}.", disk.number));
        }
        self.write_files(to);
        for service in &self.services.services {
            write_service(service, to);
        }
        for server in &self.smb.servers {
            write_server(server, to);
        }
        for mapping in self.smb.mappings() {
            if mapping.persistent && self.smb.accepts(mapping) {
                write_mapping(mapping, to);
            } else {
                // One whose password has changed since would be usable again.
                to.comment(&format!("Left out: the SMB mapping of {}.", mapping.remote));
            }
        }
        self.write_iscsi(to);
    }

    fn write_files(&self, to: &mut NodeFile) {
        let volumes = self.disks.values().flat_map(|disk| disk.volumes().map(move |volume| (disk, volume)));
        for (disk, volume) in volumes {
            let Some(file_system) = &volume.file_system else { continue };
            let root = if disk.system { "C:".to_owned() } else { format!(r"\\?\Volume{{{}}}", volume.id) };
            if disk.lun_id.is_none() && volume.mounted().is_ok() && volume.arrived && !disk.is_read_only() {
                // A file that cannot be read is not in the tree.
                let _ = self.write_directory(file_system, file_system.root, &root, to);
            } else if !disk.system && file_system.records().count() > 1 {
                to.comment(&format!("Left out: the files on disk {}, which cannot be written now.", disk.number));
            }
        }
        let has_files = |tree: &FileSystem| tree.records().count() > 1;
        if self.trees.values().any(has_files) {
            to.comment("Left out: the files on SMB shares.");
        }
    }

    fn write_directory(&self, file_system: &FileSystem, id: u64, path: &str, to: &mut NodeFile) -> OsResult<()> {
        for (name, child) in file_system.record(id)?.children().into_iter().flatten() {
            let path = format!(r"{path}\{name}");
            let file = file_system.record(*child)?;
            if let Some(data) = file.reparse.as_deref() {
                self.write_link(&path, data, file.is_directory(), to);
            } else if file.is_directory() && !file.is_empty_directory() {
                self.write_directory(file_system, *child, &path, to)?;
            } else if !SYSTEM_DIRECTORIES.contains(&path.as_str()) {
                write_file(&path, file, to);
            }
        }
        Ok(())
    }

    fn write_link(&self, path: &str, data: &[u8], is_directory: bool, to: &mut NodeFile) {
        if SYSTEM_LINKS.contains(&path) {
            return;
        }
        if let Some(volume) = mounted_volume(data).filter(|_| is_directory) {
            return match self.disk_of_volume(volume) {
                Some(number) => {
                    to.table("file");
                    to.text("kind", "mount");
                    to.text("path", path);
                    to.value("disk", number);
                }
                None => to.comment(&format!("Left out: the mount point {path} of a volume that does not exist.")),
            };
        }
        let target = match reparse_point::target(data) {
            Ok(Target::Relative(target)) => String::from_utf16_lossy(&target),
            Ok(Target::Absolute(target)) => readlink_text(&String::from_utf16_lossy(&target)),
            Err(_) => return to.comment(&format!("Left out: {path}, another kind of reparse point.")),
        };
        let is_symlink = reparse_point::tag(data) == os::abi::REPARSE_TAG_SYMLINK;
        to.table("file");
        to.text("kind", if is_symlink { "symlink" } else { "junction" });
        to.text("path", path);
        to.text("target", &target);
    }

    /// Returns the number of the disk whose last volume this is.
    fn disk_of_volume(&self, id: Uuid) -> Option<u32> {
        let is_last = |disk: &&Disk| disk.volumes().last().is_some_and(|volume| volume.id == id);
        self.disks.values().filter(|disk| disk.lun_id.is_none()).find(is_last).map(|disk| disk.number)
    }

    fn write_iscsi(&self, to: &mut NodeFile) {
        for portal in &self.iscsi.portals {
            to.table("iscsi_portal");
            to.text("address", &portal.address);
            to.value("port", portal.port);
            if !portal.reachable {
                to.value("reachable", false);
            }
            to.milliseconds("answer_takes", portal.slow_milliseconds);
        }
        for target in &self.iscsi.targets {
            to.table("iscsi_target");
            to.text("iqn", &target.iqn);
            let portal = |at: &PortalAddress| format!("{{ address = {}, port = {} }}", quoted(&at.address), at.port);
            to.value("portals", format!("[{}]", list(target.portals.iter().map(portal))));
            match &target.chap {
                Chap::None => {}
                Chap::OneWay { user, secret } => to.value(
                    "chap",
                    format!("{{ type = \"one_way\", user = {}, secret = {} }}", quoted(user), quoted(secret)),
                ),
                Chap::Mutual { user, secret, target_secret } => {
                    let [user, secret, target_secret] = [user, secret, target_secret].map(|text| quoted(text));
                    let keys = format!("user = {user}, secret = {secret}, target_secret = {target_secret}");
                    to.value("chap", format!("{{ type = \"mutual\", {keys} }}"));
                }
            }
            let lun = |lun: &crate::iscsi::Lun| {
                format!("{{ number = {}, size = {} }}", lun.number, quantity::size_value(lun.size))
            };
            to.value("luns", format!("[{}]", list(target.luns.iter().map(lun))));
            if self.iscsi.is_connected(&target.iqn) {
                to.comment("Left out: the session with this target, and what is on its disks.");
            }
        }
    }
}

fn list(values: impl Iterator<Item = String>) -> String {
    values.collect::<Vec<_>>().join(", ")
}

fn write_timing(timing: &Timing, to: &mut NodeFile) {
    to.line("\n[timing]");
    for (key, span) in timing.spans() {
        to.value(key, quantity::duration_value(span));
    }
}

fn write_disk(disk: &Disk, to: &mut NodeFile) {
    to.table("disk");
    to.value("number", disk.number);
    let size = disk.size_when_partitioned();
    to.size("size", size);
    if disk.size > size {
        to.size("grown_to", disk.size);
    }
    match BUSES.iter().find(|(_, bus)| bus.0 == disk.bus) {
        Some((name, _)) => to.text("bus", name),
        None => to.value("bus", disk.bus),
    }
    to.text("location", &disk.location);
    to.text("serial", disk.serial.as_deref().unwrap_or_default());
    if let Some(serial) = &disk.provider_serial {
        to.text("provider_serial", serial);
    }
    let of_device = |identifier: &&crate::disks::Identifier| identifier.association == os::abi::ASSOCIATION_DEVICE;
    match disk.identifiers.as_ref().and_then(|all| all.iter().find(of_device)) {
        None => to.text("page83", "none"),
        Some(found) if found.code_set == CODE_SET_ASCII => {
            to.value("page83", format!("{{ ascii = {} }}", quoted(&String::from_utf8_lossy(&found.bytes))));
        }
        Some(found) => to.value("page83", format!("{{ binary = \"{}\" }}", hex::encode(&found.bytes))),
    }
    if disk.sector != crate::disks::SECTOR {
        to.value("sector_size", disk.sector);
    }
    to.switch("offline", disk.is_offline());
    if disk.offline_again > 0 {
        to.value("offline_again", disk.offline_again);
    }
    to.switch("read_only", disk.is_read_only());
    write_content(disk, to);
}

fn write_content(disk: &Disk, to: &mut NodeFile) {
    let reserved = usize::from(matches!(disk.layout, Layout::Gpt { .. }));
    let data: Vec<&Partition> = disk.partitions.iter().filter(|part| part.volume.is_some()).collect();
    let content = match (disk.layout, data.len()) {
        (Layout::Raw, _) => "raw",
        (Layout::Gpt { .. }, 0) => "gpt",
        (Layout::Gpt { .. }, _) => "partitioned",
        (Layout::Mbr { .. }, _) => "mbr",
        (Layout::Superfloppy, _) => "superfloppy",
    };
    to.text("content", content);
    if let Some(kind) = &disk.foreign {
        to.text("file_system", kind);
    }
    if data.len() > 1 || disk.partitions.len() != data.len() + reserved {
        to.comment("Left out: that the disk has other partitions than these.");
    }
    if let Some(part) = data.last()
        && let Some(volume) = &part.volume
    {
        write_volume(disk, part, volume, to);
    }
}

fn write_volume(disk: &Disk, part: &Partition, volume: &Volume, to: &mut NodeFile) {
    let mut without = disk.clone();
    without.cached_size = disk.size_when_partitioned();
    without.partitions.retain(|other| other.number != part.number);
    let largest = without.largest_gap().map_or(part.length, |(_, length)| length);
    if disk.layout != Layout::Superfloppy && part.length < largest {
        to.size("partition_size", part.length);
    }
    to.text("volume_id", &volume.id.to_string());
    let health = match volume.health {
        _ if volume.recognised.is_some() => Some("unmountable"),
        Health::Readable => None,
        Health::Locked => Some("locked"),
        Health::Unreadable => Some("unreadable"),
    };
    if let Some(health) = health {
        to.text("volume", health);
    }
    if let Some(kind) = volume.recognised.as_ref().or(volume.file_system.as_ref().map(|file_system| &file_system.kind))
    {
        to.text("file_system", kind);
    }
    if let Some(file_system) = volume.file_system.as_ref().filter(|file_system| file_system.length < part.length) {
        to.size("file_system_size", file_system.length);
    }
    let span = |(disk, offset, length): &(u32, u64, u64)| {
        let [offset, length] = [offset, length].map(|bytes| quantity::size_value(*bytes));
        format!("{{ disk = {disk}, offset = {offset}, length = {length} }}")
    };
    if !volume.further_extents.is_empty() {
        to.value("spans", format!("[{}]", list(volume.further_extents.iter().map(span))));
    }
}

fn write_file(path: &str, file: &FileRecord, to: &mut NodeFile) {
    to.table("file");
    to.text("kind", if file.is_directory() { "directory" } else { "file" });
    to.text("path", path);
    if let Body::File(data) = &file.body {
        match str::from_utf8(data) {
            Ok("") => {}
            Ok(text) => to.text("content", text),
            Err(_) => to.value("content", format!("{{ hex = \"{}\" }}", hex::encode(data))),
        }
    }
}

fn write_service(service: &ServiceModel, to: &mut NodeFile) {
    to.table("service");
    to.text("name", &service.name);
    to.text("display_name", &service.display_name);
    to.text("start_type", service.start_type.name());
    to.text("state", service.state.name());
    if !service.depends_on.is_empty() {
        to.value("depends_on", format!("[{}]", list(service.depends_on.iter().map(|name| quoted(name)))));
    }
    to.milliseconds("start_takes", service.start_milliseconds);
    to.milliseconds("stop_takes", service.stop_milliseconds);
    to.switch("fails_to_start", service.fails_to_start);
    to.switch("unstoppable", service.unstoppable);
    to.switch("protected", service.protected);
}

fn write_server(server: &Server, to: &mut NodeFile) {
    to.table("smb_server");
    to.text("host", &server.host);
    if !server.reachable {
        to.value("reachable", false);
    }
    to.milliseconds("answer_takes", server.slow_milliseconds);
    let share = |share: &crate::smb::Share| {
        format!("{{ name = {}, guest = {}, listable = {} }}", quoted(&share.name), share.guest, share.listable)
    };
    to.value("shares", format!("[{}]", list(server.shares.iter().map(share))));
    let user =
        |(name, password): (&str, &str)| format!("{{ name = {}, password = {} }}", quoted(name), quoted(password));
    to.value("users", format!("[{}]", list(server.users.iter().map(|known| user(known.credentials())))));
}

fn write_mapping(mapping: &Mapping, to: &mut NodeFile) {
    to.table("smb_mapping");
    to.text("remote", &mapping.remote);
    if let Some(user) = &mapping.user {
        to.text("user", user);
    }
    to.switch("privacy", mapping.privacy);
}
