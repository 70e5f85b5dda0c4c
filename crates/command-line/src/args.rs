//! Arguments that several commands have, and their values.

use std::env;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::exit;
use crate::output::Form;
use crate::quantity;

/// The flag for the version of a group.
pub const API_VERSION: &str = "api-version";
/// The flag for the folder of the sockets.
pub const ENDPOINT_DIR: &str = "endpoint-dir";
/// The environment variable in place of that flag.
pub const ENDPOINT_DIR_VARIABLE: &str = "CSI_PROXY_ENDPOINT_DIR";
/// The flag that limits the time of a call.
pub const TIMEOUT: &str = "timeout";

/// The switch for a table without headings.
const NO_HEADERS: &str = "no-headers";
const OUTPUT: &str = "output";
const CONNECTION: &str = "Connection";

/// The form of the output of a command with tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A table.
    Table {
        /// Whether it has the columns for `-o wide`.
        is_wide: bool,
        /// Whether it has headings.
        has_headings: bool,
    },
    /// The names of the objects, one a line.
    Names,
    /// JSON or YAML.
    Value(Form),
}

/// Parses a command line. Prints the help or the error, and returns the exit code after that.
pub fn parse(
    command: Command,
    arguments: impl Iterator<Item = OsString>,
) -> Result<ArgMatches, ExitCode> {
    command.try_get_matches_from(arguments).map_err(|mut error| {
        let is_value = |found: &ContextValue| matches!(found, ContextValue::String(text) if !text.starts_with('-'));
        if error.kind() == ErrorKind::UnknownArgument && error.get(ContextKind::InvalidArg).is_some_and(is_value) {
            let tip = "a value follows its flag, as in `--NAME VALUE`; --help lists the flags";
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        }
        // The text cannot be written if standard output is closed.
        let _ = error.print();
        if error.use_stderr() { exit::Code::Usage.into() } else { ExitCode::SUCCESS }
    })
}

/// Returns a program without its commands: with the flags for the connection, and the exit codes in
/// its help. `timeout` describes the default of `--timeout`.
pub fn program(name: &'static str, timeout: &'static str) -> Command {
    let mut exit_codes = "Exit codes:\n".to_owned();
    for (code, meaning) in exit::MEANINGS {
        // Writing to a String does not fail.
        let _ = writeln!(exit_codes, "  {code}  {meaning}");
    }
    Command::new(name)
        .after_help(exit_codes)
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
                // Windows has named pipes.
                .hide(env::consts::OS == "windows")
                .help(format!(
                    "Folder of the Unix sockets that csi-proxy-sim serves [default: \
                     ${ENDPOINT_DIR_VARIABLE}, or $XDG_RUNTIME_DIR/csi-proxy]"
                )),
        )
        .arg(timeout_arg(timeout).global(true))
}

/// Returns the flag that limits the time of a call.
pub fn timeout_arg(default: &'static str) -> Arg {
    Arg::new(TIMEOUT)
        .long(TIMEOUT)
        .value_name("TIME")
        .value_parser(|text: &str| quantity::duration(text))
        .default_value(default)
        .hide_default_value(true)
        .help_heading(CONNECTION)
        .help(format!(
            "Time limit of each call, such as 30s [default: {default}]"
        ))
}

/// Puts the details of each command below its first line, and not above it.
#[must_use]
pub fn with_template(command: Command) -> Command {
    let template =
        "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";
    command
        .help_template(template)
        .mut_subcommands(with_template)
}

/// Returns the flag for the form of a table.
pub fn table_arg() -> Arg {
    output_arg(&["table", "wide", "json", "yaml"]).default_value("table")
}

/// Adds the flags for the form of a table of objects that have names.
pub fn with_table_of_names(command: Command) -> Command {
    command
        .arg(output_arg(&["table", "wide", "name", "json", "yaml"]).default_value("table"))
        .arg(switch(NO_HEADERS, "Leave out the headings of the table"))
}

/// Returns the flag for the form of a response.
pub fn response_arg() -> Arg {
    output_arg(&["yaml", "json"])
}

/// Returns the flag for the form of the output; the first is the default.
pub fn output_arg(forms: &[&'static str]) -> Arg {
    Arg::new(OUTPUT)
        .short('o')
        .long(OUTPUT)
        .value_name("FORMAT")
        .value_parser(PossibleValuesParser::new(forms.to_vec()))
        .hide_possible_values(true)
        .hide_default_value(true)
        .help(format!(
            "Output format: {} [default: {}]",
            forms.join(", "),
            forms[0]
        ))
}

/// Returns a required argument.
pub fn argument(name: &'static str, value_name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .value_name(value_name)
        .required(true)
        .help(help)
}

/// Returns a switch.
pub fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .action(ArgAction::SetTrue)
        .help(help)
}

/// Returns the value of an argument that is required or has a default.
pub fn required<'a>(matches: &'a ArgMatches, name: &str) -> &'a str {
    matches
        .get_one::<String>(name)
        .expect("it is required or has a default")
}

/// Returns the form of the output of a command with tables.
pub fn format(matches: &ArgMatches) -> Format {
    match required(matches, OUTPUT) {
        "json" => Format::Value(Form::Json),
        "yaml" => Format::Value(Form::Yaml),
        "name" => Format::Names,
        form => {
            let has_headings = !matches
                .try_get_one(NO_HEADERS)
                .ok()
                .flatten()
                .copied()
                .unwrap_or(false);
            Format::Table {
                is_wide: form == "wide",
                has_headings,
            }
        }
    }
}

/// Returns the form of a response, if the command line gives one.
pub fn response_form(matches: &ArgMatches) -> Option<Form> {
    let form = matches.try_get_one::<String>(OUTPUT).ok().flatten()?;
    Some(if form == "json" {
        Form::Json
    } else {
        Form::Yaml
    })
}

/// Returns the value of `--timeout`.
pub fn timeout(matches: &ArgMatches) -> Duration {
    *matches.get_one(TIMEOUT).expect("it has a default")
}
