//! Finds contradictions in a node file: keys that no single object can have together.

use std::collections::BTreeSet;

use crate::description::{
    Content, Description, DescriptionError, DiskDescription, FileDescription, VolumeHealth,
};
use crate::iscsi::PortalAddress;
use crate::smb::Smb;

/// The smallest disk that can be described.
const MIN_DISK: u64 = 3 << 20;

/// The file systems that Windows knows.
const KNOWN: [&str; 6] = ["NTFS", "ReFS", "FAT", "FAT32", "exFAT", "UDF"];

impl Description {
    /// Checks that no two keys of the description contradict each other. `text` is the node file
    /// that it was parsed from.
    pub(crate) fn check(&self, text: &str) -> Result<(), DescriptionError> {
        let at = |table, index| at(text, table, index);
        for (index, disk) in self.disks.iter().enumerate() {
            disk.check().map_err(at("disk", index))?;
            if disk.number == Some(0) {
                let reason = "the number 0 belongs to the system disk, which every node has";
                return Err(at("disk", index)(reason.into()));
            }
        }
        let numbers = self
            .disks
            .iter()
            .map(|disk| disk.number.map(|number| number.to_string()));
        check_unique(text, "disk", "number", numbers)?;
        for (index, file) in self.files.iter().enumerate() {
            let path = file.path();
            if !path.starts_with(['\\', '/']) && path.as_bytes().get(1) != Some(&b':') {
                return Err(at("file", index)(format!(
                    "the path {path} does not begin with a drive, such as C:\\"
                )));
            }
            let earlier = &self.files[..index];
            if earlier
                .iter()
                .any(|other| other.path().eq_ignore_ascii_case(file.path()))
                && !matches!(file, FileDescription::Directory { .. })
            {
                return Err(at("file", index)(format!(
                    "an earlier file has the path {} too",
                    file.path()
                )));
            }
        }
        check_unique(
            text,
            "service",
            "name",
            self.services
                .iter()
                .map(|service| Some(service.name.clone())),
        )?;
        check_unique(
            text,
            "smb_server",
            "host",
            self.smb_servers
                .iter()
                .map(|server| Some(server.host.clone())),
        )?;
        for (index, target) in self.iscsi_targets.iter().enumerate() {
            if self.iscsi_targets[..index]
                .iter()
                .any(|other| other.collides_with(target))
            {
                let what = format!(
                    "an earlier iscsi_target has the iqn {} and one of its portals too",
                    target.iqn
                );
                return Err(at("iscsi_target", index)(what));
            }
            let numbers: BTreeSet<u8> = target.luns.iter().map(|lun| lun.number).collect();
            if numbers.len() < target.luns.len() {
                return Err(at("iscsi_target", index)(
                    "two logical units have the same number".into(),
                ));
            }
        }
        Ok(())
    }

    /// Checks that the description has the portals of every target. `text` is the node file.
    pub(crate) fn check_portals(&self, text: &str) -> Result<(), DescriptionError> {
        for (index, target) in self.iscsi_targets.iter().enumerate() {
            if let Some(PortalAddress { address, port }) = target
                .portals
                .iter()
                .chain(&target.redirects_to)
                .find(|portal| !self.has_portal(portal))
            {
                let what = format!("no iscsi_portal has the address {address}, port {port}");
                return Err(at(text, "iscsi_target", index)(what));
            }
        }
        Ok(())
    }

    /// Checks that the servers of the description accept every mapping. `text` is the node file.
    pub(crate) fn check_mappings(&self, text: &str) -> Result<(), DescriptionError> {
        let remotes = self
            .smb_mappings
            .iter()
            .map(|mapping| Some(mapping.remote.clone()));
        check_unique(text, "smb_mapping", "remote", remotes)?;
        let mut smb = Smb::default();
        smb.servers.clone_from(&self.smb_servers);
        for (index, mapping) in self.smb_mappings.iter().enumerate() {
            if !smb.accepts(mapping) {
                let what = format!(
                    "no smb_server has the share and the user of {}",
                    mapping.remote
                );
                return Err(at(text, "smb_mapping", index)(what));
            }
        }
        Ok(())
    }

    fn has_portal(&self, at: &PortalAddress) -> bool {
        self.iscsi_portals
            .iter()
            .any(|known| known.address == at.address && known.port == at.port)
    }
}

impl DiskDescription {
    pub(crate) fn check(&self) -> Result<(), String> {
        let sector = u64::from(self.sector_size);
        if ![512, 4096].contains(&sector) {
            return Err(format!("a sector has 512 or 4096 bytes, not {sector}"));
        }
        if self.size == 0 {
            return Err("the size is missing, or is 0".to_owned());
        }
        if self.size < MIN_DISK || !self.size.is_multiple_of(sector) {
            let size = self.size;
            return Err(format!(
                "the size must be a multiple of {sector} bytes and at least {MIN_DISK}, not {size}"
            ));
        }
        if self.copy_of.is_some() && (self.content != Content::Raw || self.file_system.is_some()) {
            return Err(
                "a disk with copy_of has the content of the other disk: omit content and \
                 file_system"
                    .into(),
            );
        }
        let is_bare = matches!(self.content, Content::Raw | Content::Gpt);
        let volume_keys = [
            ("file_system_size", self.file_system_size.is_some()),
            ("partition_size", self.partition_size.is_some()),
            ("recovery_partition", self.recovery_partition.is_some()),
            ("letter", self.letter.is_some()),
            ("volume", self.volume != VolumeHealth::Readable),
            ("volume_id", self.volume_id.is_some()),
            ("spans", !self.spans.is_empty()),
        ];
        if let Some((key, _)) = volume_keys
            .into_iter()
            .find(|(_, is_given)| is_bare && *is_given)
        {
            return Err(format!(
                "{key} needs a volume, but a disk with this content has none"
            ));
        }
        if let Some(name) = &self.file_system {
            self.check_file_system(name)?;
        }
        let is_formatted = self.file_system.is_some() || self.volume != VolumeHealth::Readable;
        if self.file_system_size.is_some() && !is_formatted {
            return Err("file_system_size needs file_system".into());
        }
        for (key, size) in [
            ("file_system_size", self.file_system_size),
            ("partition_size", self.partition_size),
        ] {
            if size.is_some_and(|size| size > self.size) {
                return Err(format!("{key} is larger than size"));
            }
        }
        if self
            .letter
            .is_some_and(|letter| !('D'..='Z').contains(&letter))
        {
            return Err("letter is one of D to Z".into());
        }
        let has_table = self.content != Content::Superfloppy;
        if self
            .recovery_partition
            .is_some_and(|size| !has_table || size >= self.size / 2)
        {
            let reason = "recovery_partition needs a partition table, and a disk twice as large";
            return Err(reason.into());
        }
        if self.grown_to.is_some_and(|grown| grown < self.size) {
            return Err("grown_to is smaller than size".into());
        }
        Ok(())
    }

    fn check_file_system(&self, name: &str) -> Result<(), String> {
        let is_known = KNOWN.contains(&name);
        match self.content {
            Content::Raw if is_known => Err(format!(
                "file_system {name} needs a volume: give the content superfloppy or partitioned"
            )),
            Content::Gpt => Err(format!(
                "file_system {name} needs a volume, but a disk with the content gpt has none"
            )),
            Content::Mbr | Content::Partitioned | Content::Superfloppy
                if !is_known && self.volume == VolumeHealth::Readable =>
            {
                let names = KNOWN.join(", ");
                Err(format!(
                    "Windows cannot mount the file system {name}, only {names}; to simulate it, \
                     set volume = \"unmountable\""
                ))
            }
            _ => Ok(()),
        }
    }
}

/// Returns a function that makes an error message into the error of the table with this index.
fn at(text: &str, table: &str, index: usize) -> impl Fn(String) -> DescriptionError {
    let line =
        line_of(text, table, index).map_or_else(String::new, |line| format!("line {line}: "));
    let prefix = format!("{line}{table} {}: ", index + 1);
    move |what| DescriptionError(format!("{prefix}{what}"))
}

/// Fails if two tables have the same name, regardless of case. A table may have no name.
fn check_unique(
    text: &str,
    table: &str,
    key: &str,
    names: impl Iterator<Item = Option<String>>,
) -> Result<(), DescriptionError> {
    let mut earlier = BTreeSet::new();
    for (index, name) in names.enumerate() {
        let Some(name) = name else { continue };
        if !earlier.insert(name.to_lowercase()) {
            return Err(at(text, table, index)(format!(
                "an earlier {table} has the {key} {name} too"
            )));
        }
    }
    Ok(())
}

/// Returns the line of the header of the table with this index, if the tables have headers.
fn line_of(text: &str, table: &str, index: usize) -> Option<usize> {
    let header = format!("[[{table}]]");
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.trim().starts_with(&header));
    lines.map(|(at, _)| at + 1).nth(index)
}

#[cfg(test)]
mod tests {
    use crate::description::Description;

    #[test]
    fn a_contradiction_is_refused_with_its_line() {
        let disk = "[[disk]]\nsize = \"1 GiB\"\n";
        for (keys, reason) in [
            (
                "content = \"partitioned\"\nfile_system = \"ext4\"\n",
                "Windows cannot mount the file system ext4",
            ),
            (
                "file_system = \"NTFS\"\n",
                "file_system NTFS needs a volume",
            ),
            (
                "content = \"gpt\"\nfile_system = \"NTFS\"\n",
                "the content gpt has none",
            ),
            ("volume = \"locked\"\n", "volume needs a volume"),
            (
                "content = \"mbr\"\nfile_system_size = \"1 MiB\"\n",
                "file_system_size needs file_system",
            ),
            (
                "content = \"mbr\"\nfile_system = \"NTFS\"\nfile_system_size = \"2 GiB\"\n",
                "is larger than size",
            ),
            ("grown_to = \"1 MiB\"\n", "grown_to is smaller than size"),
            ("[[disk]]\nserial = \"a\"\n", "disk 3: the size is missing"),
            (
                "sector_size = 1024\n",
                "disk 2: a sector has 512 or 4096 bytes, not 1024",
            ),
            (
                "[[disk]]\nsize = 3145729\n",
                "disk 3: the size must be a multiple of 512 bytes",
            ),
            (
                "[[disk]]\nsize = 4194304\ncopy_of = 1\ncontent = \"gpt\"\n",
                "disk 3: a disk with copy_of has",
            ),
            (
                "[[file]]\nkind = \"file\"\npath = 'a/b'\n",
                "file 1: the path a/b does not begin with a drive",
            ),
            (
                "number = 0\n",
                "disk 2: the number 0 belongs to the system disk",
            ),
            (
                "number = 4\n[[disk]]\nsize = \"1 GiB\"\nnumber = 4\n",
                "disk 3: an earlier disk has the number 4",
            ),
            (
                "[[smb_server]]\nhost = \"a\"\n[[smb_server]]\nhost = \"A\"\n",
                "smb_server 2: an earlier smb_server has the host A too",
            ),
            (
                "[[iscsi_target]]\niqn = \"iqn.1\"\nportals = [{ address = \"10.0.0.1\" }]\n",
                "no iscsi_portal has",
            ),
            (
                "[[iscsi_target]]\niqn = \"iqn.1\"\nportals = [{ address = \"10.0.0.1\" }, \
                 { address = \"10.0.0.2\" }]\n\
                 [[iscsi_target]]\niqn = \"IQN.1\"\nportals = [{ address = \"10.0.0.2\" }]\n",
                "iscsi_target 2: an earlier iscsi_target has the iqn IQN.1 and one of its portals \
                 too",
            ),
        ] {
            let text = format!("# A node.\n{disk}{disk}{keys}");
            let error = Description::from_toml(&text).expect_err(reason).to_string();
            assert!(error.contains(reason), "{error}");
            let line = text.lines().count()
                - text
                    .lines()
                    .rev()
                    .position(|line| line.starts_with("[["))
                    .unwrap();
            assert!(
                error.contains(&format!(": line {line}: ")),
                "{line}: {error}"
            );
        }
    }
}
