//! All facts, one module for each subject.

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

/// What Wine lacks for the facts about reparse points.
const NO_REPARSE_POINTS: &str = "it does not implement reparse points";

/// The facts in the order of docs/facts.md, with what Wine lacks if all checks of a module fail there.
const MODULES: &[(&[Fact], Option<&str>)] = &[
    (open::FACTS, None),
    (open_rights::FACTS, None),
    (open_below::FACTS, None),
    (open_volume::FACTS, None),
    (open_device::FACTS, None),
    (open_handle::FACTS, None),
    (share::FACTS, None),
    (delete::FACTS, None),
    (reparse_data::FACTS, Some(NO_REPARSE_POINTS)),
    (reparse_walk::FACTS, Some(NO_REPARSE_POINTS)),
    (mount::FACTS, None),
    (list::FACTS, None),
    (information::FACTS, None),
    (final_path::FACTS, None),
    (flush::FACTS, None),
    (disk::FACTS, None),
    (disk_attributes::FACTS, None),
    (disk_property::FACTS, None),
    (file_system::FACTS, None),
    (volume::FACTS, None),
    (volume_content::FACTS, None),
    (wmi_disk::FACTS, Some(provider::WINE)),
    (wmi_disk_method::FACTS, Some(provider::WINE)),
    (wmi_partition::FACTS, Some(provider::WINE)),
    (wmi_volume::FACTS, Some(provider::WINE)),
    (wmi::FACTS, None),
    (smb::FACTS, None),
    (iscsi::FACTS, None),
    (service::FACTS, None),
    (registry::FACTS, None),
    (computer::FACTS, None),
    (firmware::FACTS, None),
];

/// Returns all facts in the order of docs/facts.md.
pub fn all() -> Vec<Fact> {
    let with_default = |fact: &Fact, wine| Fact { wine: fact.wine.or(wine), ..*fact };
    MODULES.iter().flat_map(|(facts, wine)| facts.iter().map(move |fact| with_default(fact, *wine))).collect()
}
