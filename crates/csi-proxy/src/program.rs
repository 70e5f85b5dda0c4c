//! A program that serves: how the command lines of `csi-proxy` and `csi-proxy-sim` differ.

use std::env;
use std::error::Error;
use std::io;
use std::process::ExitCode;

use crate::command::CommandError;
use crate::flags::table::switch;
use crate::flags::{Flag, FlagKind, Flags, Section};
use crate::platform;

/// The exit code of a command that failed.
const FAILED: u8 = 1;
/// The exit code of Go programs for a command line that cannot be parsed.
const USAGE: u8 = 2;

/// A program: its name, its help, and the flags that only this program has. `T` has the values of
/// all of its flags.
pub struct Program<T: 'static> {
    /// The name that users type.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub about: &'static str,
    /// Each command with its arguments, and what it does.
    pub commands: &'static [(&'static str, &'static str)],
    /// The flags that it has beyond [`TABLE`](crate::flags::TABLE).
    pub own_flags: &'static [Section<T>],
}

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
                help: "Run as the Windows service csiproxy instead of in the console.",
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
