//! Which version of a group a command calls.
//!
//! A command names an RPC, and perhaps a version. [`Choice::candidates`] has the versions that the
//! command accepts: the given version, or all versions in which the RPC has the same messages, the
//! preferred version first. The client calls the first of them that the node serves (`attempt` in
//! `crates/client/src/client/rpc.rs`).

use api::{GROUP_VERSIONS, Group, GroupVersion, Rpc};
use command_line::args::API_VERSION;
use command_line::failure::Failure;

/// An RPC, and the versions in which a command may call it.
#[derive(Clone, Copy)]
pub(crate) struct Choice {
    /// The version that determines the messages.
    pub(crate) version: &'static GroupVersion,
    pub(crate) rpc: &'static Rpc,
    /// The versions to call, the preferred version first.
    pub(crate) candidates: &'static [&'static str],
}

impl Choice {
    /// Chooses this version only.
    fn pinned(version: &'static GroupVersion, rpc: &'static Rpc) -> Self {
        Self {
            version,
            rpc,
            candidates: std::slice::from_ref(&version.version),
        }
    }

    /// Chooses this version and all others with the same messages.
    fn flexible(version: &'static GroupVersion, rpc: &'static Rpc) -> Self {
        Self {
            version,
            rpc,
            candidates: rpc.versions,
        }
    }
}

/// Returns the versions that have an RPC, under any of its names, the preferred version first.
pub(crate) fn versions_of(
    group: Group,
    newest_name: &str,
) -> impl Iterator<Item = (&'static GroupVersion, &'static Rpc)> {
    GroupVersion::of(group).filter_map(move |version| {
        let rpc = version
            .rpcs
            .iter()
            .find(|rpc| rpc.newest_name == newest_name)?;
        Some((version, rpc))
    })
}

/// Chooses the version for the command of an operation. `api_version` is the value of
/// `--api-version`.
pub(crate) fn for_operation(
    group: Group,
    newest_name: &str,
    api_version: Option<&str>,
) -> Result<Choice, Failure> {
    let mut versions = versions_of(group, newest_name);
    let Some(asked) = api_version else {
        let (version, rpc) = versions.next().expect("an operation is in a version");
        return Ok(Choice::flexible(version, rpc));
    };
    let found = versions.find(|(version, _)| version.version == asked);
    found
        .map(|(version, rpc)| Choice::pinned(version, rpc))
        .ok_or_else(|| {
            let (group_name, versions) = (group.name(), version_names(group, newest_name));
            Failure::Usage(format!(
                "{group_name} {asked} does not have this RPC; the versions that have it are \
                 {versions}"
            ))
        })
}

/// Returns the names of the versions that have an RPC.
pub(crate) fn version_names(group: Group, newest_name: &str) -> String {
    versions_of(group, newest_name)
        .map(|(version, _)| version.version)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Chooses the version for `call`: `target` is `GROUP/VERSION/RPC`, or `GROUP/RPC` or `RPC` for the
/// preferred version that has the RPC, or a version with the same messages. No two groups have an
/// RPC of the same name.
pub(crate) fn for_call(target: &str) -> Result<Choice, Failure> {
    let parts: Vec<&str> = target.split('/').collect();
    let (group, version, rpc) = match parts[..] {
        [group, version, rpc] => (group, Some(version), rpc),
        [group, rpc] => (group, None, rpc),
        [rpc] if let Some(row) = GROUP_VERSIONS.iter().find(|row| row.rpc(rpc).is_some()) => {
            (row.group.name(), None, rpc)
        }
        _ => {
            return Err(Failure::Usage(format!(
                "{target} is not of the form GROUP/VERSION/RPC"
            )));
        }
    };
    let is_named = |row: &&GroupVersion| {
        row.group.name() == group && version.is_none_or(|name| row.version == name)
    };
    if !GROUP_VERSIONS.iter().any(|row| is_named(&row)) {
        let name = version.map_or_else(|| group.to_owned(), |version| format!("{group}/{version}"));
        return Err(Failure::Usage(format!(
            "csi-proxy has no group-version {name}; see `csi-proxyctl call --list`"
        )));
    }
    let found = GROUP_VERSIONS
        .iter()
        .filter(is_named)
        .find_map(|row| Some((row, row.rpc(rpc)?)));
    let (row, rpc) = found.ok_or_else(|| {
        Failure::Usage(format!(
            "csi-proxy has no RPC {target}; see `csi-proxyctl call --list`"
        ))
    })?;
    Ok(if version.is_some() {
        Choice::pinned(row, rpc)
    } else {
        Choice::flexible(row, rpc)
    })
}

/// Returns the value of `--api-version` before the command line is parsed, since it determines the
/// flags.
pub(crate) fn api_version(arguments: impl Iterator<Item = String>) -> Option<String> {
    let mut arguments = arguments.skip(1).take_while(|argument| argument != "--");
    while let Some(argument) = arguments.next() {
        let Some(rest) = argument
            .strip_prefix("--")
            .and_then(|flag| flag.strip_prefix(API_VERSION))
        else {
            continue;
        };
        match rest.strip_prefix('=') {
            Some(version) => return Some(version.to_owned()),
            None if rest.is_empty() => return arguments.next(),
            None => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version_of(arguments: &[&str]) -> Option<String> {
        api_version(arguments.iter().map(ToString::to_string))
    }

    #[test]
    fn the_name_of_an_rpc_alone_is_unique() {
        for row in &GROUP_VERSIONS {
            for rpc in row.rpcs {
                assert!(
                    for_call(rpc.name).is_ok_and(|choice| choice.version.group == row.group),
                    "{}",
                    rpc.path
                );
            }
        }
    }

    #[test]
    fn the_api_version_is_found_before_the_flags_are_known() {
        assert_eq!(
            version_of(&["x", "disk", "--api-version", "v1"]).as_deref(),
            Some("v1")
        );
        assert_eq!(
            version_of(&["x", "--api-version=v1beta1", "disk"]).as_deref(),
            Some("v1beta1")
        );
        assert_eq!(
            version_of(&["x", "disk", "--", "--api-version", "v1"]),
            None
        );
        assert_eq!(version_of(&["x", "--api-versions", "v1"]), None);
        assert_eq!(version_of(&["x", "--api-version"]), None);
    }

    #[test]
    fn without_a_version_all_versions_with_the_same_messages_are_candidates() {
        let candidates = |target| for_call(target).expect("it exists").candidates;
        assert_eq!(candidates("disk/GetDiskStats"), ["v1", "v1beta3"]);
        assert_eq!(candidates("disk/v1beta3/GetDiskStats"), ["v1beta3"]);
        assert_eq!(candidates("filesystem/RmdirContents"), ["v2alpha1"]);
        assert_eq!(candidates("GetDiskStats"), ["v1", "v1beta3"]);
        let all = [
            "v1", "v1beta3", "v1beta2", "v1beta1", "v2alpha1", "v1alpha1",
        ];
        assert_eq!(
            for_operation(Group::Volume, "FormatVolume", None)
                .expect("it exists")
                .candidates,
            all
        );
        let old = for_operation(Group::Disk, "GetDiskStats", Some("v1beta1")).expect("it exists");
        assert_eq!(
            (old.rpc.name, old.candidates),
            ("DiskStats", &["v1beta1"][..])
        );
    }
}
