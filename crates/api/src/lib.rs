//! The wire contract of csi-proxy: the messages of all group-versions, and the table that lists
//! them.
//!
//! This crate has two sources: `TABLE` in `src/table.rs`, the only list of the group-versions, and
//! `proto/<group>/<version>/api.proto`. For each entry of the table, the build generates a module
//! and an entry of [`GROUP_VERSIONS`]. The module `api::disk::v1` has the messages and, with the
//! feature `stubs`, `disk_client::DiskClient` and `disk_server::Disk` for tests. The build needs no
//! protoc, and git has no generated code.
//!
//! Every list of RPCs is generated: [`GroupVersion::rpcs`], the [`Request`] of each message type,
//! and the macro [`for_each_rpc!`] for code that names the types. The comments in the `api.proto`
//! are the only description of an RPC: the methods of the stubs, the help of csi-proxyctl and the
//! pages of the documentation show them.
//!
//! A message that is equal in several versions of a group, including the messages it contains, is
//! one Rust type: `api::disk::v1beta3::GetDiskStatsRequest` is
//! `api::disk::v1::GetDiskStatsRequest`. A conversion is therefore written once for each shape and
//! not once for each version.
//!
//! `Debug` redacts a field with `password` or `secret` in its name.

// The modules, from the lowest: `table`, `group_version`, `encoded`.

mod encoded;
mod group_version;
mod table;

pub use encoded::EncodedCodec;
pub use group_version::{GROUP_VERSIONS, GroupVersion, Request, Rpc};
pub use table::Group;

include!(concat!(env!("OUT_DIR"), "/modules.rs"));
