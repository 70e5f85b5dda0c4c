//! The flags that every program which serves takes, in Go's spelling: `-name=value`, `-name value`,
//! `--name`, `-switch`, `-switch=false`.
//!
//! Nodes start csi-proxy with command lines that were written for a Go program, so [`parser`] reads
//! them exactly as Go's `flag` package does. The flags are data, in [`TABLE`]; the parser,
//! [`help`], [`markdown`] and the tests follow from it. A program's own flags are a second table of
//! the same kind: see [`Program`].

pub mod help;
pub mod markdown;
pub mod parser;
pub mod table;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use api::Group;
pub use parser::FlagError;
pub use table::TABLE;
use tracing::Level;

/// One flag, which changes a `T`.
pub struct Flag<T = Flags> {
    /// Its name, without dashes.
    pub name: &'static str,
    /// The kind of value it takes.
    pub kind: FlagKind,
    /// Its value if it is not given, as a user would write it; empty for none.
    pub default: &'static str,
    /// What it does, for the help.
    pub help: &'static str,
    /// Stores a value, or returns why it is invalid.
    pub set: fn(&mut T, &str) -> Result<(), String>,
}

/// Flags that the help lists under one title.
pub struct Section<T: 'static = Flags> {
    /// The title.
    pub title: &'static str,
    /// The flags.
    pub flags: &'static [Flag<T>],
}

/// A program: its name, its help, and the flags that only this program has. `T` has the values of
/// all of its flags.
pub struct Program<T: 'static> {
    /// The name that users type.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub about: &'static str,
    /// Each command with its arguments, and what it does.
    pub commands: &'static [(&'static str, &'static str)],
    /// The flags that it has beyond [`TABLE`].
    pub own_flags: &'static [Section<T>],
}

/// Returns all flags of `sections`.
pub fn flags_of<T>(sections: &'static [Section<T>]) -> impl Iterator<Item = &'static Flag<T>> {
    sections.iter().flat_map(|section| section.flags)
}

/// The kind of value that a flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagKind {
    /// True or false; a value may follow `=`, but not a blank.
    Switch,
    /// One value, called this in the help.
    Value(&'static str),
    /// One value each time the flag is given.
    Values(&'static str),
}

/// The values of all flags in [`TABLE`], and of the flags that only `csi-proxy` has.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// Run as a Windows service.
    pub windows_service: bool,
    /// Install the service only if no ordinary user may replace the program or its log.
    pub require_safe_folders: bool,
    /// Where the log is written and how much is in it.
    pub log: LogFlags,
    /// The API groups that are served.
    pub api_groups: Vec<Group>,
    /// The configuration of the storage operations.
    pub node: storage_ops::Config,
    /// The addresses at which HTTP requests for metrics are answered.
    pub metrics_addresses: Vec<String>,
    /// Serve the pipes without a group in their names too.
    pub groupless_pipes: bool,
    /// Further SIDs that may open the pipes.
    pub pipe_sids: Vec<String>,
    /// How long running calls may take to finish when the daemon stops.
    pub drain: Duration,
    /// The number of open connections at which a new one evicts another.
    pub max_connections: usize,
    /// The name of the program.
    pub program: &'static str,
    /// The value of each flag, to show it.
    pub shown: ShownFlags,
    /// The given flags that have no effect.
    pub without_effect: Vec<&'static str>,
    /// The arguments after the flags, which csi-proxy ignores as Go programs do.
    pub rest: Vec<String>,
}

/// The command line as text. It repeats the other fields of [`Flags`], so `Debug` omits it.
#[derive(Clone, Default)]
pub struct ShownFlags {
    /// The value of each flag as a user would write it, by name.
    pub values: Vec<(&'static str, String)>,
    /// The flags that were given, as a user would write them.
    pub given: Vec<String>,
}

impl ShownFlags {
    /// Returns the flags that were given as one line. A flag with a blank or an apostrophe is
    /// quoted as in `PowerShell`.
    pub fn command_line(&self) -> String {
        let quoted = |flag: &String| {
            if flag.contains([' ', '\'']) {
                format!("'{}'", flag.replace('\'', "''"))
            } else {
                flag.clone()
            }
        };
        self.given.iter().map(quoted).collect::<Vec<_>>().join(" ")
    }
}

impl fmt::Debug for ShownFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ShownFlags")
    }
}

impl AsMut<Self> for Flags {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

/// Where the log is written and how much is in it, as klog's flags say.
#[derive(Clone, Debug, Default)]
pub struct LogFlags {
    /// The log file, if there is one.
    pub file: Option<PathBuf>,
    /// Log to standard error and not to the file.
    pub to_stderr: bool,
    /// Log to standard error as well as to the file.
    pub also_to_stderr: bool,
    /// How much is logged.
    pub verbosity: i32,
    /// The size in MB at which the file is rotated; 0 for never.
    pub megabytes: usize,
    /// The folder of the log file, if only that is known.
    pub folder: Option<PathBuf>,
    /// The least level of lines that are also written to standard error when the log goes to a file
    /// alone; `None` for no line.
    pub stderr_threshold: Option<Level>,
    /// Write each line as a JSON object.
    pub is_json: bool,
}

impl LogFlags {
    /// Returns the log file, if there is one. As in klog, the folder alone has no effect with
    /// `-logtostderr`.
    fn file_in_folder(&self, program: &str) -> Option<PathBuf> {
        let folder = self.folder.as_ref().filter(|_| !self.to_stderr);
        self.file
            .clone()
            .or_else(|| folder.map(|folder| folder.join(format!("{program}.log"))))
    }
}

#[cfg(test)]
mod tests;
