//! What an endpoint serves: one group-version, or one version of several groups.

use std::collections::BTreeSet;

use api::{GROUP_VERSIONS, Group, GroupVersion};

/// What an endpoint serves, which decides its name.
#[derive(Clone, Debug)]
pub enum EndpointSpec {
    /// One version of one group.
    GroupVersion(&'static GroupVersion),
    /// This version of each of these groups that has it. The first manifests of CSI drivers mount
    /// such a pipe.
    Groupless(&'static str, Vec<Group>),
}

impl EndpointSpec {
    /// Returns the endpoints of all versions of `groups` and, if `groupless`, one endpoint for each
    /// version that one of these groups has.
    pub fn of(groups: &[Group], groupless: bool) -> Vec<Self> {
        let rows = || {
            GROUP_VERSIONS
                .iter()
                .filter(|row| groups.contains(&row.group))
        };
        let versions: BTreeSet<_> = rows()
            .filter(|_| groupless)
            .map(|row| row.version)
            .collect();
        let versions = versions
            .into_iter()
            .map(|version| Self::Groupless(version, groups.to_vec()));
        rows().map(Self::GroupVersion).chain(versions).collect()
    }

    /// Returns the name of the endpoint, which is the name of its pipe.
    pub fn name(&self) -> String {
        match self {
            Self::GroupVersion(row) => row.pipe().to_owned(),
            Self::Groupless(version, _) => format!("csi-proxy-{version}"),
        }
    }

    /// Returns the group-versions that the endpoint serves.
    pub fn group_versions(&self) -> impl Iterator<Item = &'static GroupVersion> {
        self.rows().map(|(_, row)| row)
    }

    /// Returns the rows of [`GROUP_VERSIONS`] that the endpoint serves, with their indexes.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (usize, &'static GroupVersion)> {
        GROUP_VERSIONS
            .iter()
            .enumerate()
            .filter(move |(_, row)| match self {
                Self::GroupVersion(one) => row.pipe() == one.pipe(),
                Self::Groupless(version, groups) => {
                    row.version == *version && groups.contains(&row.group)
                }
            })
    }
}
