//! The command lines of `csi-proxy` and `csi-proxy-sim`: running them, and what is invalid in them.

use std::env;
use std::error::Error;
use std::fmt;
use std::io;
use std::process::ExitCode;

use crate::flags::table::switch;
use crate::flags::{Flag, FlagError, FlagKind, Flags, Program, Section};
use crate::platform;

/// The version of the program, with the commit if it is known, such as `0.1.0+1a2b3c4d5e6f`.
pub const VERSION: &str = env!("CSI_PROXY_VERSION");

/// The exit code of a command that failed.
const FAILED: u8 = 1;
/// The exit code of Go programs for a command line that cannot be parsed.
const USAGE: u8 = 2;

/// The flag of `service install` that makes its warnings errors.
pub(crate) const REQUIRE_SAFE_FOLDERS: &str = "require-safe-folders";

/// The daemon.
pub static CSI_PROXY: Program<Flags> = Program {
    name: "csi-proxy",
    about: "Performs storage operations on a Windows node for unprivileged CSI drivers.",
    commands: &[
        ("[FLAGS]", "serve until stopped"),
        (
            "service install [FLAGS]",
            "install the Windows service csiproxy",
        ),
        (
            "service flags [FLAGS]",
            "print or replace all flags of the service",
        ),
        ("service uninstall", "stop and remove the service"),
        ("service status", "print the state of the service"),
        ("service find", "print the service of the pipes as JSON"),
        ("doctor [FLAGS]", "examine this node and list what is wrong"),
        ("help", "print this help"),
        ("version", "print the version"),
    ],
    own_flags: &[Section {
        title: "Windows service",
        flags: &[
            Flag {
                name: "windows-service",
                kind: FlagKind::Switch,
                default: "false",
                help: "Run as a Windows service instead of in the console.",
                set: |flags, text| switch(text).map(|on| flags.windows_service = on),
            },
            Flag {
                name: REQUIRE_SAFE_FOLDERS,
                kind: FlagKind::Switch,
                default: "false",
                help: "For 'service install' and 'service flags': fail, instead of warning, if \
                       ordinary users may replace the program or its log.",
                set: |flags, text| switch(text).map(|on| flags.require_safe_folders = on),
            },
        ],
    }],
};

/// An invalid command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandError {
    /// An unknown command.
    Unknown(String),
    /// An argument for a command that takes none.
    UnexpectedArgument(&'static str, String),
    /// `service` without a task.
    NoTask,
    /// Flags that cannot be parsed.
    Flags(FlagError),
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(word) if word == "demo" => {
                f.write_str("unknown command 'demo'; use 'csi-proxy-sim demo'")
            }
            Self::Unknown(word) => write!(f, "unknown command '{word}'"),
            Self::UnexpectedArgument(command, word) => {
                write!(f, "unexpected argument '{word}' after '{command}'")
            }
            Self::NoTask => {
                f.write_str("'service' needs one of install, flags, uninstall, status and find")
            }
            Self::Flags(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CommandError {}

/// Refuses arguments after `command`, which takes none.
pub fn no_more(
    command: &'static str,
    mut arguments: impl Iterator<Item = String>,
) -> Result<(), CommandError> {
    match arguments.next() {
        None => Ok(()),
        Some(word) => Err(CommandError::UnexpectedArgument(command, word)),
    }
}

impl<T> Program<T> {
    /// Parses this process's command line, runs the command, and returns the exit code: that of
    /// `run`, 1 if the command failed, or 2 if the command line cannot be parsed.
    pub fn main<C>(
        &self,
        parse: impl FnOnce(Vec<String>) -> Result<C, CommandError>,
        run: impl FnOnce(C) -> Result<ExitCode, Box<dyn Error>>,
    ) -> ExitCode {
        let name = self.name;
        if let Err(error) = platform::limit_dll_search() {
            eprintln!("{name}: cannot limit the search for DLLs to System32: {error}");
            return ExitCode::from(FAILED);
        }
        let arguments = env::args_os()
            .skip(1)
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect();
        match parse(arguments).map(run) {
            Ok(Ok(code)) => code,
            // The reader of the output has closed it.
            Ok(Err(error)) if is_broken_pipe(&*error) => ExitCode::SUCCESS,
            Ok(Err(error)) => {
                eprintln!("{name}: {error}");
                ExitCode::from(FAILED)
            }
            Err(error) => {
                eprintln!("{name}: {error} (see '{name} help')");
                ExitCode::from(USAGE)
            }
        }
    }
}

/// Returns whether the reader of the output has ended, as when it is piped into `head`.
pub(crate) fn is_broken_pipe(error: &(dyn Error + 'static)) -> bool {
    error
        .downcast_ref()
        .is_some_and(|error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe)
}
