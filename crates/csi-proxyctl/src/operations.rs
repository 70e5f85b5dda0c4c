//! The operations: a command for each RPC. Its help is the comment of the RPC in the `api.proto`,
//! and its flags are the fields of the request.

use std::collections::BTreeSet;

use api::{Group, GroupVersion};
use clap::{Arg, ArgMatches, Command};
use command_line::args::{self, API_VERSION};
use command_line::failure::Failure;
use command_line::output;
use heck::ToKebabCase as _;

use crate::choose_version::{self, version_names, versions_of};
use crate::session::Session;
use crate::{call, request};

/// Returns the RPCs of a group by their newest names, those of the preferred version first.
fn operations(group: Group) -> Vec<&'static str> {
    let mut names = Vec::new();
    for rpc in GroupVersion::of(group).flat_map(|version| version.rpcs) {
        if !names.contains(&rpc.newest_name) {
            names.push(rpc.newest_name);
        }
    }
    names
}

/// Returns the name of the command: the RPC without the noun of its group, and without what it is
/// found by, such as `get-id` for `GetVolumeIDFromTargetPath`.
fn command_name(group: Group, rpc: &str) -> String {
    let rpc = rpc
        .split("From")
        .next()
        .unwrap_or(rpc)
        .replace("IDs", "Ids")
        .to_kebab_case();
    let words: Vec<&str> = rpc
        .split('-')
        .filter(|word| word.trim_end_matches('s') != group.name())
        .collect();
    words.join("-")
}

/// Returns the command of a group, which has a command for each operation. The flags are those of
/// `api_version`, if that version has the operation.
pub(crate) fn group_command(group: Group, api_version: Option<&str>) -> Command {
    let preferred = GroupVersion::of(group)
        .next()
        .expect("each group has a version");
    let (about, more) = summary_and_rest(&dynamic_client::service_comment(preferred));
    described(group.name(), about, more)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(
            operations(group)
                .into_iter()
                .map(|rpc| command(group, rpc, api_version)),
        )
}

fn command(group: Group, newest_name: &'static str, api_version: Option<&str>) -> Command {
    let choice = choose_version::for_operation(group, newest_name, api_version)
        .or_else(|_| choose_version::for_operation(group, newest_name, None))
        .expect("every operation has a preferred version");
    let rpc = dynamic_client::rpcs(choice.version)
        .remove(choice.rpc.name)
        .expect("the version has the RPC");
    let (about, more) = summary_and_rest(&rpc.comment);
    let (flags, groups) = request::flags(&rpc.request);
    let versions = version_names(group, newest_name);
    let preferred = versions.split(',').next().unwrap_or_default();
    let names: BTreeSet<_> = versions_of(group, newest_name)
        .map(|(_, rpc)| rpc.name)
        .collect();
    let help = format!(
        "Use this version of the group: {versions}. By default, the first of these that the node \
         serves and that has the same messages as {preferred}"
    );
    described(command_name(group, newest_name), about, more)
        .after_help(format!(
            "RPC: {}/{}/{}",
            group.name(),
            choice.version.version,
            choice.rpc.name
        ))
        .aliases(names)
        .args(flags)
        .groups(groups)
        .arg(
            Arg::new(API_VERSION)
                .long(API_VERSION)
                .value_name("VERSION")
                .help(help),
        )
        .arg(args::response_arg())
}

/// Returns a command with its description. An empty `more` would become empty lines.
fn described(name: impl Into<clap::builder::Str>, about: String, more: String) -> Command {
    let command = Command::new(name).about(about);
    if more.is_empty() {
        command
    } else {
        command.before_help(more)
    }
}

/// Splits a comment into its first sentence and what follows, without the paragraph on versions.
fn summary_and_rest(comment: &str) -> (String, String) {
    let mut paragraphs = comment
        .split("\n\n")
        .filter(|paragraph| !paragraph.starts_with("Since "));
    let first = paragraphs.next().unwrap_or_default();
    let (summary, rest) = first
        .split_once(". ")
        .unwrap_or((first.trim_end_matches('.'), ""));
    let rest: Vec<&str> = Some(rest)
        .filter(|rest| !rest.is_empty())
        .into_iter()
        .chain(paragraphs)
        .collect();
    (summary.to_owned(), rest.join("\n\n"))
}

/// Runs the operation that the command line names.
pub(crate) async fn run(
    group: &str,
    matches: &ArgMatches,
    session: &Session,
) -> Result<(), Failure> {
    let (command, matches) = matches.subcommand().expect("a subcommand is required");
    let group = Group::ALL
        .into_iter()
        .find(|own| own.name() == group)
        .expect("each group has a command");
    let mut operations = operations(group).into_iter();
    let operation = operations
        .find(|rpc| command_name(group, rpc) == command)
        .expect("each command has an operation");
    let api_version = matches.get_one::<String>(API_VERSION).map(String::as_str);
    let choice = choose_version::for_operation(group, operation, api_version)?;
    let request = request::json(
        &dynamic_client::rpcs(choice.version)[choice.rpc.name].request,
        matches,
    )?;
    let response = call::call(session, choice, &request).await?;
    Ok(output::show(&response, args::response_form(matches))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_has_a_command_of_its_own() {
        let mut commands = BTreeSet::new();
        for group in Group::ALL {
            for rpc in operations(group) {
                assert!(
                    commands.insert((group, command_name(group, rpc))),
                    "two RPCs have the command of {rpc}"
                );
            }
        }
    }

    #[test]
    fn a_command_is_named_after_the_rpc_without_the_noun_of_its_group() {
        for (group, rpc, command) in [
            (Group::Disk, "ListDiskIDs", "list-ids"),
            (Group::Disk, "PartitionDisk", "partition"),
            (Group::Volume, "ListVolumesOnDisk", "list-on-disk"),
            (
                Group::Volume,
                "GetClosestVolumeIDFromTargetPath",
                "get-closest-id",
            ),
            (Group::Smb, "NewSmbGlobalMapping", "new-global-mapping"),
            (
                Group::System,
                "GetBIOSSerialNumber",
                "get-bios-serial-number",
            ),
        ] {
            assert_eq!(command_name(group, rpc), command);
        }
    }

    #[test]
    fn the_help_has_the_first_sentence_apart_and_no_versions() {
        let comment = "Lists disks. By number.\n\nWarning: none.\n\nSince v1. Named ListDisks in \
                       earlier versions.";
        assert_eq!(
            summary_and_rest(comment),
            ("Lists disks".into(), "By number.\n\nWarning: none.".into())
        );
    }
}
