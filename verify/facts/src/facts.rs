//! All facts, by subject.

mod calls;
mod computer;
mod delete;
mod devices;
mod disk;
mod disk_attributes;
mod disk_property;
mod file_system;
mod final_path;
mod firmware;
mod flush;
mod information;
mod iscsi;
mod list;
mod mount;
mod network;
mod open;
mod open_below;
mod open_device;
mod open_handle;
mod open_rights;
mod open_volume;
mod provider;
mod registry;
mod reparse;
mod reparse_data;
mod reparse_walk;
mod service;
mod share;
mod smb;
mod volume;
mod volume_content;
mod wmi;
mod wmi_disk;
mod wmi_disk_method;
mod wmi_partition;
mod wmi_volume;

use crate::fact::Fact;

/// Facts about one subject, which is a section of docs/facts.md.
pub struct Subject {
    /// The heading.
    pub title: &'static str,
    /// The facts, by module.
    modules: &'static [&'static [Fact]],
}

/// All subjects, in the order of docs/facts.md.
pub const SUBJECTS: &[Subject] = &[
    Subject {
        title: "Opening by name",
        modules: &[
            open::FACTS,
            open_rights::FACTS,
            open_below::FACTS,
            open_volume::FACTS,
            open_device::FACTS,
            open_handle::FACTS,
        ],
    },
    Subject { title: "Sharing", modules: &[share::FACTS] },
    Subject { title: "Deleting", modules: &[delete::FACTS] },
    Subject { title: "Reparse points: setting, reading, removing", modules: &[reparse_data::FACTS] },
    Subject { title: "Reparse points: following", modules: &[reparse_walk::FACTS] },
    Subject { title: "Mounted folders", modules: &[mount::FACTS] },
    Subject { title: "Listing a directory", modules: &[list::FACTS] },
    Subject {
        title: "Information about files, final paths, flushing",
        modules: &[information::FACTS, final_path::FACTS, flush::FACTS],
    },
    Subject { title: "Disks as devices", modules: &[disk::FACTS, disk_attributes::FACTS, disk_property::FACTS] },
    Subject { title: "Information about file systems, removed disks", modules: &[file_system::FACTS] },
    Subject { title: "Volumes as devices", modules: &[volume::FACTS, volume_content::FACTS] },
    Subject { title: "The storage provider: disks", modules: &[wmi_disk::FACTS, wmi_disk_method::FACTS] },
    Subject { title: "The storage provider: partitions", modules: &[wmi_partition::FACTS] },
    Subject { title: "The storage provider: volumes", modules: &[wmi_volume::FACTS] },
    Subject { title: "WMI: jobs, caches, codes", modules: &[wmi::FACTS] },
    Subject { title: "SMB global mappings", modules: &[smb::FACTS] },
    Subject { title: "The iSCSI initiator", modules: &[iscsi::FACTS] },
    Subject { title: "Services", modules: &[service::FACTS] },
    Subject { title: "Registry, names and addresses of the node", modules: &[registry::FACTS, computer::FACTS] },
    Subject { title: "Firmware", modules: &[firmware::FACTS] },
];

impl Subject {
    /// Returns the facts about this subject.
    pub fn facts(&self) -> impl Iterator<Item = &'static Fact> {
        self.modules.iter().copied().flatten()
    }
}

/// Returns all facts in the order of docs/facts.md.
pub fn all() -> Vec<&'static Fact> {
    SUBJECTS.iter().flat_map(Subject::facts).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::all;
    use crate::fact::{Origin, SOURCES};

    #[test]
    fn each_id_names_one_fact() {
        let mut ids = BTreeSet::new();
        for fact in all() {
            assert!(ids.insert(fact.id), "{} is used twice", fact.id);
        }
    }

    #[test]
    fn each_source_has_a_key_or_an_address() {
        for fact in all() {
            let Origin::Published(sources) = fact.origin else { continue };
            for source in sources.split("; ") {
                let key = source.split(' ').next().unwrap_or_default();
                let known = SOURCES.iter().any(|(known, _)| *known == key) || source.contains('/');
                assert!(known, "{}: {source}", fact.id);
            }
        }
    }

    #[test]
    fn a_sentence_is_one_sentence() {
        for fact in all() {
            let is_one_line = !fact.sentence.contains(['\n', '\t']) && !fact.sentence.contains("  ");
            let is_one = fact.sentence.ends_with('.') && !fact.sentence.contains(". ");
            assert!(is_one && is_one_line, "{}: {}", fact.id, fact.sentence);
        }
    }
}
