//! The command line.

use api::Group;
use clap::Command;

use crate::{args, call, completions, get, operations, served_versions, top};

/// Returns the whole command line. The flags of the operations are those of `api_version`.
pub(crate) fn command(api_version: Option<&str>) -> Command {
    let command = args::program("csi-proxyctl", "2m; for get: 10s")
        .about("Inspects a Windows node, and calls the RPCs of its csi-proxy")
        .subcommand(get::command())
        .subcommands(Group::ALL.map(|group| operations::group_command(group, api_version)))
        .subcommand(call::command())
        .subcommand(served_versions::command())
        .subcommand(top::command())
        .subcommand(completions::command());
    args::with_template(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_of_each_version_is_consistent() {
        for version in
            [None, Some("v1"), Some("v1beta3"), Some("v1beta1"), Some("v1alpha1"), Some("v2alpha1"), Some("x")]
        {
            command(version).debug_assert();
        }
    }
}
