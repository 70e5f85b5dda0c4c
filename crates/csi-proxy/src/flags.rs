//! The daemon's flags, in Go's spelling: `-name=value`, `-name value`, `--name`, `-switch`, `-switch=false`.
//!
//! Nodes start csi-proxy with command lines written for a Go program, so they are read as Go's `flag` package reads
//! them, to the letter: a switch takes a value only behind `=`, the last of two wins, and the first argument that is no
//! flag ends the flags. What flags there are is data, in [`TABLE`]; parsing, `--help` and the tests all follow from it.

pub mod help;
mod table;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use storage_ops::HostPath;

pub use table::{Section, TABLE};

/// One flag.
pub struct Flag {
    /// Its name, without dashes.
    pub name: &'static str,
    /// What kind of value it takes.
    pub kind: Kind,
    /// The value it has when it is not given, as one would write it; empty for none.
    pub default: &'static str,
    /// What it does, for `--help`.
    pub help: &'static str,
    /// Where `--help` lists it.
    pub section: Section,
    set: fn(&mut Flags, &str) -> Result<(), String>,
}

/// What kind of value a flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// On or off; a value may follow `=`, but not a blank.
    Switch,
    /// One value, called this in `--help`.
    Value(&'static str),
    /// A value each time it is given.
    Values(&'static str),
}

/// What the flags say.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// Run as a Windows service.
    pub windows_service: bool,
    /// Where the log goes and how much is in it.
    pub log: LogFlags,
    /// The settings of the node.
    pub node: storage_ops::Config,
    /// Where to answer HTTP requests for metrics.
    pub metrics_address: Option<String>,
    /// Serve a simulated node, wherever this runs.
    pub simulate: bool,
    /// A file that describes the simulated node.
    pub node_file: Option<PathBuf>,
    /// The folder of the sockets.
    pub socket_folder: Option<PathBuf>,
    /// Serve the pipes without a group in their names too.
    pub groupless_pipes: bool,
    /// Further SIDs that may open the pipes.
    pub pipe_sids: Vec<String>,
    /// How long calls may take to end once the daemon is told to stop.
    pub drain: Duration,
    /// How many connections may be open before one without a call makes room.
    pub max_connections: usize,
    /// How many calls may run at once.
    pub max_calls: usize,
    /// How long a connection may be silent.
    pub silence: Duration,
    /// Flags given that mean nothing here.
    pub without_effect: Vec<&'static str>,
    /// What followed the flags. Go programs ignore it, and so must we.
    pub rest: Vec<String>,
}

/// Where the log goes and how much is in it, by klog's names.
#[derive(Clone, Debug, Default)]
pub struct LogFlags {
    /// The file, if the log goes to one.
    pub file: Option<PathBuf>,
    /// To standard error and not to the file.
    pub to_stderr: bool,
    /// To standard error as well as to the file.
    pub also_to_stderr: bool,
    /// How much is logged.
    pub verbosity: i32,
    /// How large the file may grow, in MB; 0 is without a limit.
    pub megabytes: usize,
}

/// A command line that cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlagError {
    /// Help was asked for.
    Help,
    /// There is no such flag.
    Unknown(String),
    /// A flag without its value.
    NoValue(&'static str),
    /// A value that the flag cannot have.
    BadValue(&'static str, String, String),
    /// Something that starts like a flag and is none.
    Syntax(String),
}

impl fmt::Display for FlagError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Help => f.write_str("help was asked for"),
            Self::Unknown(name) => {
                write!(f, "there is no flag -{name}")?;
                nearest(name).map_or(Ok(()), |near| write!(f, "; did you mean -{near}?"))
            }
            Self::NoValue(name) => write!(f, "the flag -{name} needs a value"),
            Self::BadValue(name, value, why) => write!(f, "'{value}' is no value for -{name}: {why}"),
            Self::Syntax(text) => write!(f, "'{text}' is not how a flag is written"),
        }
    }
}

impl std::error::Error for FlagError {}

impl Flags {
    /// What holds when no flag is given.
    pub fn defaults() -> Self {
        let mut flags = Self::default();
        for flag in TABLE.iter().filter(|flag| !flag.default.is_empty()) {
            (flag.set)(&mut flags, flag.default).expect("the default of a flag is a value of it");
        }
        flags.without_effect.clear();
        flags
    }

    /// Reads a command line, without the program's name.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, FlagError> {
        let mut flags = Self::defaults();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let Some(text) = text_of_flag(&argument) else {
                flags.rest.extend((argument != "--").then_some(argument));
                flags.rest.extend(arguments);
                break;
            };
            if text.is_empty() || text.starts_with(['-', '=']) {
                return Err(FlagError::Syntax(argument));
            }
            let (name, inline) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
            let Some(flag) = TABLE.iter().find(|flag| flag.name == name) else {
                let help = matches!(name, "h" | "help");
                return Err(if help { FlagError::Help } else { FlagError::Unknown(name.to_owned()) });
            };
            let value = match (inline, flag.kind) {
                (Some(value), _) => value.to_owned(),
                (None, Kind::Switch) => "true".to_owned(),
                (None, _) => arguments.next().ok_or(FlagError::NoValue(flag.name))?,
            };
            (flag.set)(&mut flags, &value).map_err(|why| FlagError::BadValue(flag.name, value, why))?;
        }
        Ok(flags)
    }
}

/// What follows the one or two dashes of a flag; nothing for a lone `-`, `--` and what has no dash.
fn text_of_flag(argument: &str) -> Option<&str> {
    let text = argument.strip_prefix('-').filter(|text| !text.is_empty())?;
    match text.strip_prefix('-') {
        Some("") => None,
        Some(text) => Some(text),
        None => Some(text),
    }
}

/// The flag that was meant, if it can be told: `-` for `_`, another case, or a few letters of its beginning.
fn nearest(name: &str) -> Option<&'static str> {
    let plain = |text: &str| text.replace('_', "-").to_ascii_lowercase();
    let wanted = plain(name);
    let alike = |flag: &&Flag| plain(flag.name) == wanted || wanted.len() > 3 && plain(flag.name).starts_with(&wanted);
    TABLE.iter().find(alike).map(|flag| flag.name)
}

/// Go's words for true and false.
fn switch(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("it is true or false".to_owned()),
    }
}

fn number<N: TryFrom<u64>>(text: &str) -> Result<N, String> {
    let parsed = text.parse::<u64>().ok().and_then(|number| N::try_from(number).ok());
    parsed.ok_or_else(|| "it is a whole number".to_owned())
}

fn folder(text: &str) -> Result<HostPath, String> {
    HostPath::parse(text).map_err(|fault| fault.to_string())
}

fn some_text(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests;
