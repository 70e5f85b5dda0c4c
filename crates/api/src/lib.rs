//! The wire contract of csi-proxy: the messages and stubs of all group-versions, and the table that lists them.
//!
//! Everything follows from two sources, [the table](GROUP_VERSIONS) and `proto/<group>/<version>/api.proto`. The build
//! makes a module of each pair: `api::disk::v1` has its messages, `disk_client::DiskClient` and `disk_server::Disk`. No
//! protoc is needed, and no generated code is kept in git. What an RPC does is told on it in its `api.proto`, and so on
//! the methods of the client and of the server trait.
//!
//! A message that is the same in several versions of a group, with all that it contains, is one Rust type:
//! `api::disk::v1beta3::GetDiskStatsRequest` is `api::disk::v1::GetDiskStatsRequest`. A conversion is therefore written
//! once for each shape and not once for each version.
//!
//! A field with `password` or `secret` in its name is left out of `Debug`.

mod group_version;
mod table;

pub use group_version::{GROUP_VERSIONS, GroupVersion, GrouplessPipe, Rpc};
pub use table::Group;

include!(concat!(env!("OUT_DIR"), "/modules.rs"));
