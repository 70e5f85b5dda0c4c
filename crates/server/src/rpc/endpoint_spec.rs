//! What an endpoint serves: one group-version, or one version of several groups.

use api::{GROUP_VERSIONS, Group, GroupVersion, GrouplessPipe};

/// What an endpoint serves, which decides its name.
#[derive(Clone, Debug)]
pub enum EndpointSpec {
    /// One version of one group.
    GroupVersion(&'static GroupVersion),
    /// One version of these groups, without the groups that do not have it.
    Groupless(GrouplessPipe, Vec<Group>),
}

impl EndpointSpec {
    /// Returns the endpoints of all versions of `groups` and, if `groupless`, one endpoint for each version that one of
    /// these groups has.
    pub fn of(groups: &[Group], groupless: bool) -> Vec<Self> {
        let versions = groupless.then(GrouplessPipe::all).into_iter().flatten();
        let versions = versions.map(|pipe| Self::Groupless(pipe, groups.to_vec()));
        let rows = GROUP_VERSIONS.iter().filter(|row| groups.contains(&row.group));
        rows.map(Self::GroupVersion).chain(versions).filter(|spec| spec.rows().next().is_some()).collect()
    }

    /// Returns the name of the endpoint, which is the name of its pipe.
    pub fn name(&self) -> String {
        match self {
            Self::GroupVersion(row) => row.pipe().to_owned(),
            Self::Groupless(pipe, _) => pipe.pipe(),
        }
    }

    /// Returns the group-versions that the endpoint serves.
    pub fn group_versions(&self) -> impl Iterator<Item = &'static GroupVersion> {
        self.rows().map(|(_, row)| row)
    }

    /// Returns the rows of [`GROUP_VERSIONS`] that the endpoint serves, with their indexes.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (usize, &'static GroupVersion)> {
        GROUP_VERSIONS.iter().enumerate().filter(move |(_, row)| match self {
            Self::GroupVersion(one) => row.pipe() == one.pipe(),
            Self::Groupless(pipe, groups) => row.version == pipe.version && groups.contains(&row.group),
        })
    }
}
