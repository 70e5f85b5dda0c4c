//! The commands of `csi-proxy`.

use crate::doctor::{CSI_PROXY_DOCTOR, Doctor};
use crate::flags::{FlagError, Flags};
use crate::program::{CSI_PROXY, CommandError, no_more};
use crate::service::Task;

/// A command of `csi-proxy`.
#[derive(Clone, Debug)]
pub enum Command {
    /// Serve. A command line without a command means this, because that is how nodes start
    /// csi-proxy.
    Serve(Box<Flags>),
    /// Manage the Windows service.
    Service(Task),
    /// Examine the node.
    Doctor(Doctor),
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
            Some("service") => Task::parse(more).map(Self::Service),
            Some("doctor") => Doctor::parse(&CSI_PROXY_DOCTOR, more.collect()).map(Self::Doctor),
            Some("help") => no_more("help", more).map(|()| Self::Help),
            Some("version" | "-version" | "--version") => {
                no_more("version", more).map(|()| Self::Version)
            }
            Some(word) if !word.starts_with('-') => Err(CommandError::Unknown(word.to_owned())),
            _ => match CSI_PROXY.parse(arguments) {
                Ok(flags) => Ok(Self::Serve(Box::new(flags))),
                Err(FlagError::Help) => Ok(Self::Help),
                Err(error) => Err(CommandError::Flags(error)),
            },
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
    fn a_command_line_without_a_command_means_serve() {
        for line in ["", "-v=5", "-windows-service -v 5 install"] {
            assert!(matches!(parse(line), Ok(Command::Serve(_))), "{line}");
        }
    }

    #[test]
    fn a_service_is_installed_only_with_flags_that_it_can_parse() {
        let Ok(Command::Service(Task::Install(installation))) =
            parse("service install -v 5 --log_file=x")
        else {
            panic!("the flags are valid")
        };
        assert_eq!(installation.arguments, ["-v", "5", "--log_file=x"]);
        assert!(!installation.require_safe_folders);
        let Ok(Command::Service(Task::Flags(change))) =
            parse("service flags -v 5 -require-safe-folders")
        else {
            panic!("the flags are valid")
        };
        assert!(change.arguments == ["-v", "5"] && change.require_safe_folders);
        let Ok(Command::Service(Task::Flags(none))) = parse("service flags") else {
            panic!("flags may be missing")
        };
        assert!(none.arguments.is_empty());
        assert_eq!(
            parse("service flags -nonsense").unwrap_err(),
            "unknown flag -nonsense"
        );
        assert_eq!(
            parse("service flags now").unwrap_err(),
            "unexpected argument 'now' after 'service flags'"
        );
        assert_eq!(
            parse("service install -nonsense").unwrap_err(),
            "unknown flag -nonsense"
        );
        assert_eq!(
            parse("service install -v=1 now").unwrap_err(),
            "unexpected argument 'now' after 'service install'"
        );
    }

    #[test]
    fn the_flag_that_requires_safe_folders_is_not_for_the_service() {
        for (flag, is_required) in [
            ("-require-safe-folders", true),
            ("--require-safe-folders=true", true),
            ("-require-safe-folders=false", false),
        ] {
            let Ok(Command::Service(Task::Install(installation))) =
                parse(&format!("service install -v=5 {flag} -drain 7"))
            else {
                panic!("the flags are valid")
            };
            assert_eq!(installation.arguments, ["-v=5", "-drain", "7"], "{flag}");
            assert_eq!(installation.require_safe_folders, is_required, "{flag}");
        }
    }

    #[test]
    fn a_command_is_the_first_argument_and_takes_no_others() {
        assert!(matches!(parse("version"), Ok(Command::Version)));
        for line in ["help", "-h", "--help", "-v=5 -help"] {
            assert!(matches!(parse(line), Ok(Command::Help)), "{line}");
        }
        assert!(matches!(
            parse("service status"),
            Ok(Command::Service(Task::Status))
        ));
        assert_eq!(
            parse("service status now").unwrap_err(),
            "unexpected argument 'now' after 'service status'"
        );
        assert_eq!(
            parse("service start").unwrap_err(),
            "'service' needs one of install, flags, uninstall, status and find"
        );
        assert_eq!(parse("serve").unwrap_err(), "unknown command 'serve'");
        assert_eq!(
            parse("version -v=5").unwrap_err(),
            "unexpected argument '-v=5' after 'version'"
        );
    }
}
