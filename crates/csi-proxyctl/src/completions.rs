//! `completions`: scripts with which a shell completes command lines.

use std::io;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command};
use clap_complete::Shell;
use command_line::args::required;
use command_line::failure::Failure;

use crate::call;

/// Returns the command.
pub(crate) fn command() -> Command {
    Command::new("completions")
        .about("Prints a completion script for a shell")
        .before_help(
            "PowerShell  csi-proxyctl completions powershell | Out-String | Invoke-Expression\n\
             bash        source <(csi-proxyctl completions bash)\n\
             zsh         csi-proxyctl completions zsh > \"${fpath[1]}/_csi-proxyctl\"",
        )
        .arg(
            Arg::new("shell")
                .required(true)
                .value_name("SHELL")
                .value_parser(PossibleValuesParser::new(["powershell", "bash", "zsh"])),
        )
}

/// Prints the script for the whole command line of the program.
pub(crate) fn run(matches: &ArgMatches, mut program: Command) -> Result<(), Failure> {
    let shell: Shell = required(matches, "shell")
        .parse()
        .expect("the parser accepts only names of shells");
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, "csi-proxyctl", &mut script);
    let mut script = String::from_utf8(script).expect("a script is UTF-8");
    match shell {
        // A name with a hyphen is spelled in two ways:
        // <https://github.com/clap-rs/clap/issues/6421>.
        Shell::Bash => script = script.replace("csi__subcmd__proxyctl", "csi__proxyctl"),
        // The script for PowerShell has only commands and flags, not the values of arguments.
        Shell::PowerShell => {
            let head = "'csi-proxyctl;call' {\n";
            let value = |name| {
                format!(
                    "[CompletionResult]::new('{name}', '{name}', \
                     [CompletionResultType]::ParameterValue, '{name}')"
                )
            };
            let values: Vec<String> = call::names()
                .map(|name| format!("            {}\n", value(name)))
                .collect();
            script = script.replace(head, &format!("{head}{}", values.concat()));
        }
        _ => {}
    }
    Ok(io::Write::write_all(
        &mut io::stdout().lock(),
        script.as_bytes(),
    )?)
}
