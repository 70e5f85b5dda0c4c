//! The command of an operation: flags become the request.

use std::io::{self, IsTerminal as _, Write as _};

use api::{Group, GroupVersion};
use clap::{Arg, ArgMatches, Command};
use serde_json::Value;

use crate::call;
use crate::cli::{self, API_VERSION};
use crate::failure::Failure;
use crate::operations::{OPERATIONS, Operation};
use crate::output::Form;
use crate::request;
use crate::session::Session;

/// Returns the command of a group, with one of each operation in it. The flags are those of `api_version`, if the
/// operation is in it.
pub(crate) fn group_command(group: Group, about: &'static str, api_version: Option<&str>) -> Command {
    let operations = OPERATIONS.iter().filter(|operation| operation.group == group);
    Command::new(group.name())
        .about(about)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(operations.map(|operation| command(operation, api_version)))
}

fn command(operation: &Operation, api_version: Option<&str>) -> Command {
    let (version, rpc) = selected(operation, api_version).unwrap_or_else(|| newest(operation));
    let (flags, groups) = request::flags(&dynamic_client::rpcs(version)[rpc].request);
    let mut paragraphs = Vec::new();
    if !operation.more.is_empty() {
        paragraphs.push(operation.more.to_owned());
    }
    if !operation.warning.is_empty() {
        paragraphs.push(format!("Warning: {}", operation.warning));
    }
    let (group, name) = (operation.group.name(), operation.command);
    let versions = GroupVersion::of(operation.group).filter(|row| rpc_in(operation, row).is_some());
    let versions: Vec<&str> = versions.map(|row| row.version).collect();
    let help = format!(
        "Use this version of the group: {}. By default, the first of these that the node serves and that has the same messages as {}",
        versions.join(", "),
        versions[0]
    );
    Command::new(name)
        .about(operation.about)
        .before_help(paragraphs.join("\n\n"))
        .after_help(format!("RPC: {group}/{}/{rpc}", version.version))
        .aliases(operation.rpcs)
        .args(flags)
        .groups(groups)
        .arg(Arg::new(API_VERSION).long(API_VERSION).value_name("VERSION").help(help))
        .arg(cli::output_arg(&["yaml", "json"]))
}

fn rpc_in(operation: &Operation, version: &GroupVersion) -> Option<&'static str> {
    version.rpcs.iter().find(|rpc| operation.rpcs.contains(&rpc.name)).map(|rpc| rpc.name)
}

/// Returns the version and the RPC that are used by default.
fn newest(operation: &Operation) -> (&'static GroupVersion, &'static str) {
    let mut versions = GroupVersion::of(operation.group);
    versions.find_map(|row| Some((row, rpc_in(operation, row)?))).expect("an operation is in a version")
}

/// Returns the version that is asked for and the RPC in it, if the operation is in it.
fn selected(operation: &Operation, api_version: Option<&str>) -> Option<(&'static GroupVersion, &'static str)> {
    let version = GroupVersion::find(operation.group, api_version?)?;
    Some((version, rpc_in(operation, version)?))
}

/// Runs the operation that the command line names.
pub(crate) async fn run(group: &str, matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    let (command, matches) = matches.subcommand().expect("a subcommand is required");
    let is_it = |own: &&Operation| own.group.name() == group && own.command == command;
    let operation = OPERATIONS.iter().find(is_it).expect("the commands are made from the table");
    let api_version = matches.get_one::<String>(API_VERSION).map(String::as_str);
    let (version, rpc) = match api_version {
        None => newest(operation),
        Some(asked) => selected(operation, api_version).ok_or_else(|| {
            let versions = GroupVersion::of(operation.group).filter(|row| rpc_in(operation, row).is_some());
            let versions: Vec<&str> = versions.map(|row| row.version).collect();
            let versions = versions.join(", ");
            Failure::Usage(format!("{group} {asked} does not have this RPC; the versions that have it are {versions}"))
        })?,
    };
    let versions = match api_version {
        None => request::versions_with_same_messages(version, rpc),
        Some(_) => vec![version.version],
    };
    let request = request::json(&dynamic_client::rpcs(version)[rpc].request, matches)?;
    let response = call::call(session, version, &versions, rpc, &request).await?;
    show(&response, matches.get_one::<String>("output").map(String::as_str))
}

/// Writes the response. An empty one is nothing in the default form, and a word on the terminal.
pub(crate) fn show(response: &Value, form: Option<&str>) -> Result<(), Failure> {
    let is_empty = response.as_object().is_none_or(serde_json::Map::is_empty);
    if form.is_none() && is_empty {
        if io::stderr().is_terminal() {
            writeln!(anstream::stderr(), "done")?;
        }
        return Ok(());
    }
    let form = if form == Some("json") { Form::Json } else { Form::Yaml };
    Ok(write!(anstream::stdout(), "{}", form.text(response))?)
}
