//! All facts, one module for each subject.

mod calls;
mod delete;
pub(crate) mod devices;
mod disk;
mod disk_attributes;
mod file_system;
mod information;
mod iscsi;
mod list;
mod mount;
mod network;
mod open;
mod open_below;
mod open_device;
mod open_rights;
mod open_volume;
mod provider;
mod reparse;
mod reparse_data;
mod reparse_walk;
mod service;
mod share;
mod smb;
mod system;
mod volume;
mod volume_content;
mod wmi;
mod wmi_disk;
mod wmi_partition;
mod wmi_volume;

use crate::fact::Fact;

pub use devices::{DiskIdentity, ENOUGH, free_space, property};

/// The facts in the order of docs/facts.md.
const MODULES: &[&[Fact]] = &[
    open::FACTS,
    open_rights::FACTS,
    open_below::FACTS,
    open_volume::FACTS,
    open_device::FACTS,
    share::FACTS,
    delete::FACTS,
    reparse_data::FACTS,
    reparse_walk::FACTS,
    mount::FACTS,
    list::FACTS,
    information::FACTS,
    disk::FACTS,
    disk_attributes::FACTS,
    file_system::FACTS,
    volume::FACTS,
    volume_content::FACTS,
    wmi_disk::FACTS,
    wmi_partition::FACTS,
    wmi_volume::FACTS,
    wmi::FACTS,
    smb::FACTS,
    iscsi::FACTS,
    service::FACTS,
    system::FACTS,
];

/// Returns all facts in the order of docs/facts.md.
pub fn all() -> Vec<Fact> {
    MODULES.iter().copied().flatten().copied().collect()
}
