//! The command line.

use api::Group;
use clap::Command;

use crate::{args, call, completions, describe, get, operations, served_versions, top};

/// Returns the whole command line. The flags of the operations are those of `api_version`.
pub(crate) fn command(api_version: Option<&str>) -> Command {
    let command = args::program("csi-proxyctl", "2m")
        .about("Inspects a Windows node, and calls the RPCs of its csi-proxy")
        .subcommand(get::command())
        .subcommand(describe::command())
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
    fn no_help_has_two_empty_lines_in_a_row() {
        fn check(mut command: Command) {
            let help = command.render_help().to_string();
            assert!(!help.contains("\n\n\n"), "{help}");
            command.get_subcommands().cloned().for_each(check);
        }
        let mut program = command(None);
        program.build();
        check(program);
    }

    #[test]
    fn the_command_line_of_each_version_is_consistent() {
        for version in
            [None, Some("v1"), Some("v1beta3"), Some("v1beta1"), Some("v1alpha1"), Some("v2alpha1"), Some("x")]
        {
            command(version).debug_assert();
        }
    }
}
