//! What the first argument asks for.

use std::fmt;

use crate::flags::{FlagError, Flags};

/// What is to be done.
#[derive(Clone, Debug)]
pub enum Command {
    /// Serve. This is what a command line without a command means: that is how nodes start csi-proxy.
    Serve(Box<Flags>),
    /// Play the drivers.
    Demo,
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
    /// The flags cannot be followed.
    Flags(FlagError),
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(word) => write!(f, "there is no command '{word}'"),
            Self::Superfluous(command, word) => write!(f, "'{command}' takes no '{word}'"),
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
    use super::Command;

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
    fn a_command_comes_first_and_alone() {
        assert!(matches!(parse("demo"), Ok(Command::Demo)));
        assert!(matches!(parse("version"), Ok(Command::Version)));
        for line in ["help", "-h", "--help", "-v=5 -help"] {
            assert!(matches!(parse(line), Ok(Command::Help)), "{line}");
        }
        assert_eq!(parse("serve").unwrap_err(), "there is no command 'serve'");
        assert_eq!(parse("demo -v=5").unwrap_err(), "'demo' takes no '-v=5'");
        assert_eq!(parse("-nonsense").unwrap_err(), "there is no flag -nonsense");
    }
}
