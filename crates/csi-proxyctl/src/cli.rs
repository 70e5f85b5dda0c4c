//! The command line.

use api::Group;
use clap::Command;
use command_line::args;

use crate::{call, completions, describe, get, operations, served_versions, top};

/// Returns the whole command line. The flags of the operations are those of `api_version`.
pub(crate) fn command(api_version: Option<&str>) -> Command {
    let command = args::program("csi-proxyctl", "2m")
        .version(env!("CSI_PROXY_VERSION"))
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
    use std::{env, fs};

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
        for version in [
            None,
            Some("v1"),
            Some("v1beta3"),
            Some("v1beta1"),
            Some("v1alpha1"),
            Some("v2alpha1"),
            Some("x"),
        ] {
            command(version).debug_assert();
        }
    }

    /// Others use these names, as those that `xtask/tests/interface.rs` lists.
    #[test]
    fn the_commands_and_flags_are_those_listed() {
        fn add(command: &Command, path: &str, names: &mut Vec<String>) {
            // That of the folder is hidden on Windows, those of secrets everywhere.
            for flag in command
                .get_arguments()
                .filter(|flag| flag.is_global_set() || !flag.is_hide_set())
            {
                names.extend(flag.get_short().map(|name| format!("{path} -{name}")));
                names.extend(flag.get_long().map(|name| format!("{path} --{name}")));
            }
            for command in command.get_subcommands() {
                names.extend(
                    command
                        .get_visible_aliases()
                        .map(|alias| format!("{path} {alias}")),
                );
                names.push(format!("{path} {}", command.get_name()));
                add(command, &format!("{path} {}", command.get_name()), names);
            }
        }
        let mut names = Vec::new();
        add(&command(None), "csi-proxyctl", &mut names);
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../xtask/tests/interface/csi-proxyctl.txt"
        );
        if env::var_os("BLESS").is_some() {
            fs::write(file, names.join("\n")).unwrap();
        }
        let listed = fs::read_to_string(file).unwrap();
        assert!(
            listed.lines().eq(&names),
            "see CONTRIBUTING.md, `Compatibility`; BLESS=1 lists:\n{names:#?}"
        );
    }
}
