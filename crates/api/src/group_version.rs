//! Group-versions as data: what a server registers, a client dials and a list prints.

use std::fmt;

use crate::Group;
use crate::table::TABLE;

/// One version of one group: a service, and the pipe that it is served on.
#[derive(Clone, Copy)]
pub struct GroupVersion {
    /// The group.
    pub group: Group,
    /// The version, such as `v1beta2`. It is the package of the service too, so groups share package names.
    pub version: &'static str,
    /// The full name of the service, such as `v1.Disk`.
    pub service: &'static str,
    /// The RPCs of the service, in the order of its `api.proto`.
    pub rpcs: &'static [Rpc],
    pub(crate) pipe: &'static str,
    pub(crate) descriptors: &'static [u8],
}

/// One RPC of a group-version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rpc {
    /// The name, such as `ListDiskLocations`.
    pub name: &'static str,
    /// The path of the HTTP/2 request, such as `/v1.Disk/ListDiskLocations`.
    pub path: &'static str,
}

/// All group-versions, grouped, the one to prefer first within each group.
pub static GROUP_VERSIONS: [GroupVersion; TABLE.len()] = include!(concat!(env!("OUT_DIR"), "/group_versions.rs"));

impl GroupVersion {
    /// The name of the pipe, such as `csi-proxy-disk-v1`, without the `\\.\pipe\` before it.
    pub const fn pipe(&self) -> &'static str {
        self.pipe
    }

    /// The encoded `FileDescriptorSet` of the `api.proto`, without comments.
    pub const fn descriptors(&self) -> &'static [u8] {
        self.descriptors
    }

    /// The versions of a group, the one to prefer first.
    pub fn of(group: Group) -> impl Iterator<Item = &'static Self> {
        GROUP_VERSIONS.iter().filter(move |row| row.group == group)
    }

    /// The row of one version of a group, if there is one.
    pub fn find(group: Group, version: &str) -> Option<&'static Self> {
        Self::of(group).find(|row| row.version == version)
    }
}

impl fmt::Debug for GroupVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GroupVersion").field(&self.pipe).finish()
    }
}

/// A pipe without a group in its name, `csi-proxy-v1alpha1`: it serves every group that has the version. The first
/// manifests of CSI drivers mount such a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GrouplessPipe {
    /// The version that all services on the pipe have.
    pub version: &'static str,
}

impl GrouplessPipe {
    /// One for each version that any group has, in the order in which the versions appear in the table.
    pub fn all() -> impl Iterator<Item = Self> {
        let first = |at: usize| GROUP_VERSIONS[..at].iter().all(|row| row.version != GROUP_VERSIONS[at].version);
        (0..GROUP_VERSIONS.len()).filter(move |&at| first(at)).map(|at| Self { version: GROUP_VERSIONS[at].version })
    }

    /// The name of the pipe, without the `\\.\pipe\` before it.
    pub fn pipe(self) -> String {
        format!("csi-proxy-{}", self.version)
    }

    /// The group-versions that the pipe serves. Their service names are all different.
    pub fn group_versions(self) -> impl Iterator<Item = &'static GroupVersion> {
        GROUP_VERSIONS.iter().filter(move |row| row.version == self.version)
    }
}
