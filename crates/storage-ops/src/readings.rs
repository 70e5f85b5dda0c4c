//! What operations read of a node. This layer is the one place where the answer of a device and the
//! report of the storage provider meet: the device decides, and the provider is asked only if the
//! device's answer says nothing.

pub(crate) mod all_disks;
pub(crate) mod disk;
pub(crate) mod drives;
pub(crate) mod file_system;
pub(crate) mod firmware;
pub(crate) mod iscsi_session;
pub(crate) mod links;
pub(crate) mod links_to_volume;
pub(crate) mod node_volumes;
pub(crate) mod root_directory;
pub(crate) mod share;
pub(crate) mod volume;
