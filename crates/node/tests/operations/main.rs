//! The operations, on a simulated node: what must hold for each, by group, and for many at once.

mod calls;
mod desk;
mod devices;
mod disks;
mod filesystem;
mod growth;
mod iscsi;
mod mounts;
mod sentences;
mod setup;
mod smb;
mod system;
mod trees;
mod volumes;
mod walk;
