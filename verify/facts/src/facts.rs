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
    /// What Wine lacks, if all checks fail there.
    wine: Option<&'static str>,
}

/// All subjects, in the order of docs/facts.md.
pub const SUBJECTS: &[Subject] = &[
    Subject::new(
        "Opening by name",
        &[
            open::FACTS,
            open_rights::FACTS,
            open_below::FACTS,
            open_volume::FACTS,
            open_device::FACTS,
            open_handle::FACTS,
        ],
    ),
    Subject::new("Sharing", &[share::FACTS]),
    Subject::new("Deleting", &[delete::FACTS]),
    Subject::new("Reparse points: setting, reading, removing", &[reparse_data::FACTS])
        .missing_in_wine("it does not implement reparse points"),
    Subject::new("Reparse points: following", &[reparse_walk::FACTS])
        .missing_in_wine("it does not implement reparse points"),
    Subject::new("Mounted folders", &[mount::FACTS]),
    Subject::new("Listing a directory", &[list::FACTS]),
    Subject::new(
        "Information about files, final paths, flushing",
        &[information::FACTS, final_path::FACTS, flush::FACTS],
    ),
    Subject::new("Disks as devices", &[disk::FACTS, disk_attributes::FACTS, disk_property::FACTS]),
    Subject::new("Information about file systems, removed disks", &[file_system::FACTS]),
    Subject::new("Volumes as devices", &[volume::FACTS, volume_content::FACTS]),
    Subject::new("The storage provider: disks", &[wmi_disk::FACTS, wmi_disk_method::FACTS])
        .missing_in_wine(provider::WINE),
    Subject::new("The storage provider: partitions", &[wmi_partition::FACTS]).missing_in_wine(provider::WINE),
    Subject::new("The storage provider: volumes", &[wmi_volume::FACTS]).missing_in_wine(provider::WINE),
    Subject::new("WMI: jobs, caches, codes", &[wmi::FACTS]),
    Subject::new("SMB global mappings", &[smb::FACTS]),
    Subject::new("The iSCSI initiator", &[iscsi::FACTS]),
    Subject::new("Services", &[service::FACTS]),
    Subject::new("Registry, names and addresses of the node", &[registry::FACTS, computer::FACTS]),
    Subject::new("Firmware", &[firmware::FACTS]),
];

impl Subject {
    const fn new(title: &'static str, modules: &'static [&'static [Fact]]) -> Self {
        Self { title, modules, wine: None }
    }

    const fn missing_in_wine(self, what: &'static str) -> Self {
        Self { wine: Some(what), ..self }
    }

    /// Returns the facts about this subject.
    pub fn facts(&self) -> impl Iterator<Item = Fact> {
        self.modules.iter().copied().flatten().map(|fact| Fact { wine: fact.wine.or(self.wine), ..*fact })
    }
}

/// Returns all facts in the order of docs/facts.md.
pub fn all() -> Vec<Fact> {
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
