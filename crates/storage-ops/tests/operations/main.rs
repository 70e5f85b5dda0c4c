//! The operations, on a simulated node: what must hold for each, by group, and for many at once.

mod devices;
mod disk;
mod error_messages;
mod executor;
mod filesystem;
mod growth;
mod iscsi;
mod mounts;
mod primitive_calls;
mod remove_tree;
mod setup;
mod smb;
mod system;
mod volume;
mod working_directories;
