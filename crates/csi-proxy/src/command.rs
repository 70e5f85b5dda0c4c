//! What the first argument asks for.

use std::fmt;

use crate::flags::{FlagError, Flags};
use crate::service::Task;

/// What is to be done.
#[derive(Clone, Debug)]
pub enum Command {
    /// Serve. This is what a command line without a command means: that is how nodes start csi-proxy.
    Serve(Box<Flags>),
    /// Play the drivers.
    Demo,
    /// Do something with the Windows service.
    Service(Task),
    /// Print the help.
    Help,
    /// Print the version.
    Version,
}

/// An argument that is no command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandError {
    /// There is no such command.
    Unknown(String),
    /// A command that takes nothing was given something.
    Superfluous(&'static str, String),
    /// `service` was not told what to do.
    NoTask,
    /// The flags cannot be followed.
    Flags(FlagError),
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(word) => write!(f, "there is no command '{word}'"),
            Self::Superfluous(command, word) => write!(f, "'{command}' takes no '{word}'"),
            Self::NoTask => f.write_str("'service' needs one of install, uninstall and status"),
            Self::Flags(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CommandError {}

impl Command {
    /// Reads a command line, without the program's name.
    pub fn parse(arguments: Vec<String>) -> Result<Self, CommandError> {
        let (name, command) = match arguments.first().map(String::as_str) {
            Some("demo") => ("demo", Self::Demo),
            Some("service") => return Self::parse_service(arguments),
            Some("help") => ("help", Self::Help),
            Some("version" | "-version" | "--version") => ("version", Self::Version),
            Some(word) if !word.starts_with('-') => return Err(CommandError::Unknown(word.to_owned())),
            _ => return Self::parse_flags(arguments),
        };
        match arguments.into_iter().nth(1) {
            None => Ok(command),
            Some(word) => Err(CommandError::Superfluous(name, word)),
        }
    }

    fn parse_service(arguments: Vec<String>) -> Result<Self, CommandError> {
        let mut words = arguments.into_iter().skip(1);
        let (name, task) = match words.next().as_deref() {
            Some("install") => return Self::parse_installation(words.collect()),
            Some("uninstall") => ("service uninstall", Task::Uninstall),
            Some("status") => ("service status", Task::Status),
            _ => return Err(CommandError::NoTask),
        };
        match words.next() {
            None => Ok(Self::Service(task)),
            Some(word) => Err(CommandError::Superfluous(name, word)),
        }
    }

    /// What cannot be followed is refused here: the service would tell nobody.
    fn parse_installation(words: Vec<String>) -> Result<Self, CommandError> {
        let flags = Flags::parse(words.iter().cloned()).map_err(CommandError::Flags)?;
        match flags.rest.into_iter().next() {
            None => Ok(Self::Service(Task::Install(words))),
            Some(word) => Err(CommandError::Superfluous("service install", word)),
        }
    }

    fn parse_flags(arguments: Vec<String>) -> Result<Self, CommandError> {
        match Flags::parse(arguments) {
            Ok(flags) => Ok(Self::Serve(Box::new(flags))),
            Err(FlagError::Help) => Ok(Self::Help),
            Err(error) => Err(CommandError::Flags(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Command, Task};

    fn parse(line: &str) -> Result<Command, String> {
        let words = line.split_whitespace().map(str::to_owned).collect();
        Command::parse(words).map_err(|error| error.to_string())
    }

    #[test]
    fn without_a_command_it_serves() {
        for line in ["", "-v=5", "-windows-service -v 5 demo"] {
            assert!(matches!(parse(line), Ok(Command::Serve(_))), "{line}");
        }
    }

    #[test]
    fn a_service_is_installed_with_flags_that_it_can_follow() {
        let Ok(Command::Service(Task::Install(flags))) = parse("service install -v 5 --log_file=x") else {
            panic!("these are flags")
        };
        assert_eq!(flags, ["-v", "5", "--log_file=x"]);
        assert_eq!(parse("service install -nonsense").unwrap_err(), "there is no flag -nonsense");
        assert_eq!(parse("service install -v=1 now").unwrap_err(), "'service install' takes no 'now'");
    }

    #[test]
    fn a_command_comes_first_and_alone() {
        assert!(matches!(parse("demo"), Ok(Command::Demo)));
        assert!(matches!(parse("version"), Ok(Command::Version)));
        for line in ["help", "-h", "--help", "-v=5 -help"] {
            assert!(matches!(parse(line), Ok(Command::Help)), "{line}");
        }
        assert!(matches!(parse("service status"), Ok(Command::Service(Task::Status))));
        assert_eq!(parse("service status now").unwrap_err(), "'service status' takes no 'now'");
        assert_eq!(parse("service start").unwrap_err(), "'service' needs one of install, uninstall and status");
        assert_eq!(parse("serve").unwrap_err(), "there is no command 'serve'");
        assert_eq!(parse("demo -v=5").unwrap_err(), "'demo' takes no '-v=5'");
        assert_eq!(parse("-nonsense").unwrap_err(), "there is no flag -nonsense");
    }
}
