//! Tests of the operations on a simulated node, by API group and by subject.

mod concurrency;
mod device_answers;
mod devices;
mod disk;
mod error_messages;
mod executor;
mod fallbacks;
mod file_systems;
mod filesystem;
mod growth;
mod iscsi;
mod links;
mod mounts;
mod node_volumes;
mod primitive_calls;
mod provider;
mod remove_tree;
mod removed_volumes;
mod replaced_disks;
mod setup;
mod smb;
mod smb_names;
mod smb_states;
mod system;
mod volume;
mod working_directories;
