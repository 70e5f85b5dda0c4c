//! The command line.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use api::{GROUP_VERSIONS, Group};
use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use clap_complete::Shell;

use crate::call;
use crate::exit;
use crate::failure::Failure;
use crate::get::{self, Format};
use crate::operation;
use crate::operations::group_about;
use crate::output::Form;
use crate::quantity;
use crate::sim;
use crate::top;

pub(crate) const NAME: &str = "csi-proxyctl";
pub(crate) const API_VERSION: &str = "api-version";
pub(crate) const ENDPOINT_DIR: &str = "endpoint-dir";
pub(crate) const TIMEOUT: &str = "timeout";
const CONNECTION: &str = "Connection";

/// Returns the value of `--api-version`, which determines the flags of the operations.
pub(crate) fn api_version(arguments: impl Iterator<Item = String>) -> Option<String> {
    let mut arguments = arguments.skip(1).take_while(|argument| argument != "--");
    while let Some(argument) = arguments.next() {
        let Some(rest) = argument.strip_prefix("--").and_then(|flag| flag.strip_prefix(API_VERSION)) else { continue };
        match rest.strip_prefix('=') {
            Some(version) => return Some(version.to_owned()),
            None if rest.is_empty() => return arguments.next(),
            None => {}
        }
    }
    None
}

/// Returns the whole command line.
pub(crate) fn command(api_version: Option<&str>) -> Command {
    with_template(whole_command(api_version))
}

/// Puts the details of each command below its first line, and not above it.
fn with_template(command: Command) -> Command {
    let template = "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";
    command.help_template(template).mut_subcommands(with_template)
}

fn whole_command(api_version: Option<&str>) -> Command {
    let mut groups: Vec<Group> = GROUP_VERSIONS.iter().map(|version| version.group).collect();
    groups.dedup();
    let groups = groups.into_iter().map(|group| operation::group_command(group, group_about(group), api_version));
    Command::new(NAME)
        .version(env!("CARGO_PKG_VERSION"))
        .about("Inspects a Windows node, and calls the RPCs of its csi-proxy")
        .after_help(exit_codes())
        .subcommand_required(true)
        .arg_required_else_help(true)
        .max_term_width(120)
        .arg(
            Arg::new(ENDPOINT_DIR)
                .long(ENDPOINT_DIR)
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .global(true)
                .help_heading(CONNECTION)
                .help("Folder of the Unix sockets that csi-proxy-sim serves [default: $XDG_RUNTIME_DIR/csi-proxy]"),
        )
        .arg(
            Arg::new(TIMEOUT)
                .long(TIMEOUT)
                .value_name("TIME")
                .value_parser(|text: &str| quantity::duration(text))
                .default_value("2m")
                .hide_default_value(true)
                .global(true)
                .help_heading(CONNECTION)
                .help("How long to wait for the answer to each call, such as 30s [default: 2m; for get: 10s]"),
        )
        .subcommand(get::command())
        .subcommands(groups)
        .subcommand(call_command())
        .subcommand(
            Command::new("versions")
                .about("Show which versions of which groups the node serves")
                .after_help("A version is served if its pipe or socket accepts a connection. No RPC is called.")
                .arg(output_arg(&["table", "json", "yaml"]).default_value("table")),
        )
        .subcommand(top::command())
        .subcommand(sim::command())
        .subcommand(completions_command())
}

fn call_command() -> Command {
    Command::new("call")
        .about("Call any RPC of any version, with a request in JSON")
        .before_help(
            "Fields have the names of the api.proto files, or \
             these names in lowerCamelCase. A field that is left out has its default value. The response has the names of the \
             api.proto files, and numbers for 64-bit integers.\n\nAn RPC may change the node and lose data: the help of \
             its command, such as `csi-proxyctl volume format --help`, says what.",
        )
        .arg(
            Arg::new("rpc")
                .value_name("GROUP/VERSION/RPC")
                .required_unless_present("list")
                .value_parser(RpcParser)
                .hide_possible_values(true)
                .help("The RPC, such as disk/v1/ListDiskIDs; without the version, the preferred one that has the RPC"),
        )
        .arg(Arg::new("request").value_name("JSON").help(
            "The request, @FILE to read it from a file, or - to read it from standard input; a request with a secret is \
             accepted only from these [default: {}]",
        ))
        .arg(Arg::new("list").long("list").action(ArgAction::SetTrue).help("List all RPCs"))
        .arg(output_arg(&["json", "yaml"]).default_value("json"))
}

/// Accepts every text, and knows the names of all RPCs, which the shells complete.
#[derive(Clone)]
struct RpcParser;

impl TypedValueParser for RpcParser {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(call::names().map(PossibleValue::new)))
    }
}

fn completions_command() -> Command {
    Command::new("completions")
        .about("Print a completion script for a shell")
        .before_help(
            "PowerShell  csi-proxyctl completions powershell | Out-String | Invoke-Expression\n\
             bash        source <(csi-proxyctl completions bash)\n\
             zsh         csi-proxyctl completions zsh > \"${fpath[1]}/_csi-proxyctl\"",
        )
        .arg(Arg::new("shell").required(true).value_name("SHELL").value_parser(PossibleValuesParser::new([
            "powershell",
            "bash",
            "zsh",
        ])))
}

/// Prints the completion script.
pub(crate) fn completions(matches: &ArgMatches) -> Result<(), Failure> {
    let shell = match required(matches, "shell") {
        "powershell" => Shell::PowerShell,
        "bash" => Shell::Bash,
        _ => Shell::Zsh,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(None), NAME, &mut script);
    let mut script = String::from_utf8(script).expect("a script is UTF-8");
    match shell {
        // A name with a hyphen is spelled in two ways: <https://github.com/clap-rs/clap/issues/6421>.
        Shell::Bash => script = script.replace("csi__subcmd__proxyctl", "csi__proxyctl"),
        // Only commands and flags are in the script for PowerShell, not the values of arguments.
        Shell::PowerShell => {
            let head = "'csi-proxyctl;call' {\n";
            let value = |name| {
                format!("[CompletionResult]::new('{name}', '{name}', [CompletionResultType]::ParameterValue, '{name}')")
            };
            let values: Vec<String> = call::names().map(|name| format!("            {}\n", value(name))).collect();
            script = script.replace(head, &format!("{head}{}", values.concat()));
        }
        _ => {}
    }
    Ok(io::Write::write_all(&mut io::stdout().lock(), script.as_bytes())?)
}

/// Returns the flag for the form of the output; the first is the default.
pub(crate) fn output_arg(forms: &[&'static str]) -> Arg {
    Arg::new("output")
        .short('o')
        .long("output")
        .value_name("FORMAT")
        .value_parser(PossibleValuesParser::new(forms.to_vec()))
        .hide_possible_values(true)
        .hide_default_value(true)
        .help(format!("Output format: {} [default: {}]", forms.join(", "), forms[0]))
}

/// Returns the value of an argument that is required or has a default.
pub(crate) fn required<'a>(matches: &'a ArgMatches, name: &str) -> &'a str {
    matches.get_one::<String>(name).expect("it is required or has a default")
}

/// Returns the form of the output of a command with tables.
pub(crate) fn format(matches: &ArgMatches) -> Format {
    match required(matches, "output") {
        "json" => Format::Value(Form::Json),
        "yaml" => Format::Value(Form::Yaml),
        form => Format::Table { is_wide: form == "wide" },
    }
}

/// Returns the value of a flag that is a duration.
pub(crate) fn duration(matches: &ArgMatches, name: &str) -> Option<Duration> {
    matches.get_one::<Duration>(name).copied()
}

fn exit_codes() -> String {
    let mut text = "Exit codes:\n".to_owned();
    for (code, meaning) in exit::MEANINGS {
        // Writing to a String does not fail.
        let _ = writeln!(text, "  {code}  {meaning}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version_of(arguments: &[&str]) -> Option<String> {
        api_version(arguments.iter().map(ToString::to_string))
    }

    #[test]
    fn the_api_version_is_found_before_the_flags_are_known() {
        assert_eq!(version_of(&["x", "disk", "--api-version", "v1"]).as_deref(), Some("v1"));
        assert_eq!(version_of(&["x", "--api-version=v1beta1", "disk"]).as_deref(), Some("v1beta1"));
        assert_eq!(version_of(&["x", "disk", "--", "--api-version", "v1"]), None);
        assert_eq!(version_of(&["x", "--api-versions", "v1"]), None);
        assert_eq!(version_of(&["x", "--api-version"]), None);
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
