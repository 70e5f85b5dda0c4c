//! Group-versions as data: the entries of the table, for servers, clients and listings.

use std::fmt;

use crate::Group;
use crate::table::TABLE;

/// One version of one group: a gRPC service, and the pipe on which it is served.
#[derive(Clone, Copy)]
pub struct GroupVersion {
    /// The group.
    pub group: Group,
    /// The version, such as `v1beta2`. It is also the package of the service, so the groups share
    /// package names.
    pub version: &'static str,
    /// The full name of the service, such as `v1.Disk`.
    pub service: &'static str,
    /// The RPCs of the service, in the order of its `api.proto`.
    pub rpcs: &'static [Rpc],
    pub(crate) pipe: &'static str,
}

/// An RPC of a group-version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rpc {
    /// The name, such as `ListDiskLocations`.
    pub name: &'static str,
    /// The path of the HTTP/2 request, such as `/v1.Disk/ListDiskLocations`.
    pub path: &'static str,
    /// The name in the newest version that has the RPC, by which an RPC with several names is
    /// known: `GetDiskStats` for `DiskStats`.
    pub newest_name: &'static str,
    /// The versions of the group in which the RPC has the same name and the same messages, the
    /// preferred version first. A call can be sent to any of them.
    pub versions: &'static [&'static str],
}

/// A request message, which determines the RPC that it requests.
pub trait Request: prost::Message + Clone + 'static {
    /// The response message.
    type Response: prost::Message + Default + 'static;
    /// The group.
    const GROUP: Group;
    /// The name of the RPC.
    const RPC: &'static str;
    /// The versions in which the RPC has this name and these messages, the preferred version first.
    const VERSIONS: &'static [&'static str];
}

/// All group-versions, ordered by group and then by preference, the preferred version first.
pub static GROUP_VERSIONS: [GroupVersion; TABLE.len()] =
    include!(concat!(env!("OUT_DIR"), "/group_versions.rs"));

/// The descriptors of all group-versions. Not a field of [`GROUP_VERSIONS`], so that a program that
/// does not use them, such as csi-proxy, does not contain them.
static DESCRIPTORS: [&[u8]; TABLE.len()] = include!(concat!(env!("OUT_DIR"), "/descriptors.rs"));

impl Group {
    /// All groups, in the order of their names.
    pub const ALL: [Self; 6] = [
        Self::Disk,
        Self::Filesystem,
        Self::Iscsi,
        Self::Smb,
        Self::System,
        Self::Volume,
    ];
}

impl GroupVersion {
    /// Returns the name of the pipe, such as `csi-proxy-disk-v1`, without the prefix `\\.\pipe\`.
    pub const fn pipe(&self) -> &'static str {
        self.pipe
    }

    /// Returns the encoded `FileDescriptorSet` of the `api.proto`, with its comments.
    pub fn descriptors(&self) -> &'static [u8] {
        let index = GROUP_VERSIONS
            .iter()
            .position(|entry| entry.pipe == self.pipe);
        DESCRIPTORS[index.expect("all entries are in the table")]
    }

    /// Returns the versions of a group, the preferred version first.
    pub fn of(group: Group) -> impl Iterator<Item = &'static Self> {
        GROUP_VERSIONS
            .iter()
            .filter(move |entry| entry.group == group)
    }

    /// Returns the entry of a version of a group, if the table has it.
    pub fn find(group: Group, version: &str) -> Option<&'static Self> {
        Self::of(group).find(|entry| entry.version == version)
    }

    /// Returns the RPC with this name, if the version has it.
    pub fn rpc(&self, name: &str) -> Option<&'static Rpc> {
        self.rpcs.iter().find(|rpc| rpc.name == name)
    }
}

impl fmt::Debug for GroupVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GroupVersion").field(&self.pipe).finish()
    }
}
