//! All facts, by subject.

mod calls;
mod delete;
mod devices;
mod disk;
mod disk_attributes;
mod disk_property;
mod final_path;
mod firmware;
mod flush;
mod information;
mod iscsi;
mod list;
mod mount;
mod open;
mod open_device;
mod open_rights;
mod open_volume;
mod pipe;
mod reparse_data;
mod reparse_walk;
mod service;
mod share;
mod smb;
mod volume;
mod volume_content;
mod wmi;
mod wmi_disk;
mod wmi_partition;
mod wmi_volume;

use crate::fact::Fact;

/// Returns all facts in the order of docs/facts.md.
pub fn all() -> Vec<&'static Fact> {
    [
        open::FACTS,
        open_rights::FACTS,
        open_volume::FACTS,
        open_device::FACTS,
        share::FACTS,
        delete::FACTS,
        reparse_data::FACTS,
        reparse_walk::FACTS,
        mount::FACTS,
        list::FACTS,
        information::FACTS,
        final_path::FACTS,
        flush::FACTS,
        disk::FACTS,
        disk_attributes::FACTS,
        disk_property::FACTS,
        volume::FACTS,
        volume_content::FACTS,
        wmi_disk::FACTS,
        wmi_partition::FACTS,
        wmi_volume::FACTS,
        wmi::FACTS,
        smb::FACTS,
        iscsi::FACTS,
        service::FACTS,
        pipe::FACTS,
        firmware::FACTS,
    ]
    .into_iter()
    .flatten()
    .collect()
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
            assert!(fact.sentence.ends_with('.') && !fact.sentence.contains(". "), "{}: {}", fact.id, fact.sentence);
        }
    }
}
