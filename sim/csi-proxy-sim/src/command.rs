//! The commands of `csi-proxy-sim`.

use csi_proxy::doctor::Doctor;
use csi_proxy::flags::FlagError;
use csi_proxy::program::{CommandError, no_more};

use crate::flags::{CSI_PROXY_SIM, CSI_PROXY_SIM_DOCTOR, SimFlags};

/// A command of `csi-proxy-sim`.
#[derive(Clone, Debug)]
pub enum Command {
    /// Serve. As with `csi-proxy`, this is what a command line without a command means.
    Serve(Box<SimFlags>),
    /// Run the demonstration.
    Demo,
    /// Serve, and run the sequences of the files after the flags.
    Replay(Box<SimFlags>),
    /// Change a running simulator. clap parses the arguments.
    Ctl,
    /// Examine the simulated node.
    Doctor(Doctor),
    /// Print the node file of the built-in node.
    PrintNode,
    /// Print the help.
    Help,
    /// Print the version.
    Version,
}

impl Command {
    /// Parses a command line, without the program's name.
    pub fn parse(arguments: Vec<String>) -> Result<Self, CommandError> {
        let more = arguments.iter().skip(1).cloned();
        match arguments.first().map(String::as_str) {
            Some("demo") => no_more("demo", more).map(|()| Self::Demo),
            Some("replay") => Self::with_flags(more.collect(), Self::Replay),
            Some("ctl") => Ok(Self::Ctl),
            Some("doctor") => {
                Doctor::parse(&CSI_PROXY_SIM_DOCTOR, more.collect()).map(Self::Doctor)
            }
            Some("print-node") => no_more("print-node", more).map(|()| Self::PrintNode),
            Some("help") => no_more("help", more).map(|()| Self::Help),
            Some("version" | "-version" | "--version") => {
                no_more("version", more).map(|()| Self::Version)
            }
            Some(word) if !word.starts_with('-') => Err(CommandError::Unknown(word.to_owned())),
            _ => Self::with_flags(arguments, Self::Serve),
        }
    }

    fn with_flags(
        arguments: Vec<String>,
        command: fn(Box<SimFlags>) -> Self,
    ) -> Result<Self, CommandError> {
        match CSI_PROXY_SIM.parse(arguments) {
            Ok(flags) => Ok(command(Box::new(flags))),
            Err(FlagError::Help) => Ok(Self::Help),
            Err(error) => Err(CommandError::Flags(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Command;

    fn parse(line: &str) -> Result<Command, String> {
        let words = line.split_whitespace().map(str::to_owned).collect();
        Command::parse(words).map_err(|error| error.to_string())
    }

    #[test]
    fn a_command_is_the_first_argument_and_takes_no_others() {
        assert!(matches!(parse("demo"), Ok(Command::Demo)));
        assert!(matches!(parse("--version"), Ok(Command::Version)));
        assert!(matches!(parse("-node=x -help"), Ok(Command::Help)));
        assert!(matches!(parse("-v=5 demo"), Ok(Command::Serve(_))));
        assert_eq!(
            parse("demo -v=5").unwrap_err(),
            "unexpected argument '-v=5' after 'demo'"
        );
        assert_eq!(
            parse("service status").unwrap_err(),
            "unknown command 'service'"
        );
    }
}
