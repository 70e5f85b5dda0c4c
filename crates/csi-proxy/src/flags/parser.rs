//! Reads a command line as Go's `flag` package does: a switch takes a value only after `=`, the
//! last of two values wins, and the first argument that is not a flag ends the flags.

use std::fmt;

use super::table::WITHOUT_EFFECT;
use super::{Flag, FlagKind, Flags, Program, Section, ShownFlags, TABLE, flags_of};

/// Names of flags that another program takes or took, and what to do instead.
const ELSEWHERE: [(&str, &str); 4] = [
    ("node", "csi-proxy-sim serves a simulated node"),
    ("simulate", "csi-proxy-sim serves a simulated node"),
    ("socket-folder", "csi-proxy-sim serves a simulated node"),
    ("windows-service", "only csi-proxy runs as a service"),
];

/// A command line that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlagError {
    /// The user asked for help.
    Help,
    /// A flag that the program does not have, and a hint, if there is one.
    Unknown(String, Option<String>),
    /// A flag without its value.
    NoValue(&'static str),
    /// A value that the flag cannot have, and why.
    BadValue(&'static str, String, String),
    /// An argument that starts like a flag and is not one.
    Syntax(String),
}

impl fmt::Display for FlagError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Help => f.write_str("help was requested"),
            Self::Unknown(name, None) => write!(f, "unknown flag -{name}"),
            Self::Unknown(name, Some(hint)) => write!(f, "unknown flag -{name}: {hint}"),
            Self::NoValue(name) => write!(f, "flag -{name} needs a value"),
            Self::BadValue(name, value, why) => {
                write!(f, "invalid value '{value}' for flag -{name}: {why}")
            }
            Self::Syntax(text) => write!(f, "'{text}' is not a valid flag"),
        }
    }
}

impl std::error::Error for FlagError {}

impl<T: Default + AsMut<Flags>> Program<T> {
    /// Returns the value of each flag when none is given.
    pub fn defaults(&self) -> T {
        let mut flags = T::default();
        set_defaults(&TABLE, flags.as_mut());
        set_defaults(self.own_flags, &mut flags);
        let shown = ShownFlags {
            values: shown(self.own_flags).chain(shown(&TABLE)).collect(),
            given: Vec::new(),
        };
        let shared = flags.as_mut();
        (shared.program, shared.shown) = (self.name, shown);
        flags
    }

    /// Parses a command line, without the program's name and without a command.
    pub fn parse(&self, arguments: impl IntoIterator<Item = String>) -> Result<T, FlagError> {
        let mut flags = self.defaults();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let Some(text) = text_of_flag(&argument) else {
                let rest = &mut flags.as_mut().rest;
                rest.extend((argument != "--").then_some(argument));
                rest.extend(arguments);
                break;
            };
            if text.is_empty() || text.starts_with(['-', '=']) {
                return Err(FlagError::Syntax(argument));
            }
            let (name, value) = text
                .split_once('=')
                .map_or((text, None), |(name, value)| (name, Some(value)));
            if let Some(flag) = find(self.own_flags, name) {
                let value = read(flag, &mut flags, value, &mut arguments)?;
                flags.as_mut().show(flag.name, flag.kind, value);
            } else if let Some(flag) = find(&TABLE, name) {
                let shared = flags.as_mut();
                let value = read(flag, shared, value, &mut arguments)?;
                shared.show(flag.name, flag.kind, value);
                if flag.help.is_empty() {
                    shared.without_effect.push(flag.name);
                }
            } else if matches!(name, "h" | "help") {
                return Err(FlagError::Help);
            } else {
                return Err(FlagError::Unknown(name.to_owned(), self.hint(name)));
            }
        }
        let shared = flags.as_mut();
        // Another flag chooses the file system.
        if let Err(why) = shared.node.check_allocation_unit() {
            let size = shared.node.format_allocation_unit.unwrap_or_default();
            return Err(FlagError::BadValue(
                "format-allocation-unit",
                size.to_string(),
                why.to_string(),
            ));
        }
        // Other flags name the working directories.
        if let Err((directory, why)) = shared.node.check_format_again() {
            return Err(FlagError::BadValue(
                "format-again",
                directory.to_string(),
                why.to_string(),
            ));
        }
        shared.shown.values.sort_unstable();
        shared.log.file = shared.log.file_in_folder(self.name);
        if shared.log.folder.is_some() && shared.log.file.is_none() {
            shared.without_effect.push("log_dir");
        }
        Ok(flags)
    }

    /// Returns what the user may have meant by a flag that the program does not have.
    fn hint(&self, name: &str) -> Option<String> {
        let elsewhere = ELSEWHERE.iter().find(|(known, _)| *known == name);
        let meant = || nearest(self.own_flags, name).or_else(|| nearest(&TABLE, name));
        elsewhere
            .map(|(_, hint)| (*hint).to_owned())
            .or_else(|| meant().map(|near| format!("did you mean -{near}?")))
    }
}

fn set_defaults<T>(sections: &'static [Section<T>], flags: &mut T) {
    for flag in flags_of(sections).filter(|flag| !flag.default.is_empty()) {
        (flag.set)(flags, flag.default).expect("the default of a flag is valid");
    }
}

/// Returns the flags that have an effect, with their defaults.
fn shown<T>(sections: &'static [Section<T>]) -> impl Iterator<Item = (&'static str, String)> {
    let effective = sections
        .iter()
        .filter(|section| section.title != WITHOUT_EFFECT)
        .flat_map(|section| section.flags);
    effective.map(|flag| (flag.name, flag.default.to_owned()))
}

impl Flags {
    /// Notes the value of a flag that was given.
    fn show(&mut self, name: &'static str, kind: FlagKind, value: String) {
        self.shown.given.push(format!("-{name}={value}"));
        let Some((_, shown)) = self
            .shown
            .values
            .iter_mut()
            .find(|(known, _)| *known == name)
        else {
            return self.shown.values.push((name, value));
        };
        if matches!(kind, FlagKind::Values(_)) && !shown.is_empty() {
            *shown = format!("{shown},{value}");
        } else {
            *shown = value;
        }
    }
}

fn find<T>(sections: &'static [Section<T>], name: &str) -> Option<&'static Flag<T>> {
    flags_of(sections).find(|flag| flag.name == name)
}

/// Sets `flag` to the value after its `=`, or to the next argument, and returns the value. A switch
/// without `=` is on.
fn read<T>(
    flag: &Flag<T>,
    flags: &mut T,
    value: Option<&str>,
    arguments: &mut impl Iterator<Item = String>,
) -> Result<String, FlagError> {
    let value = match (value, flag.kind) {
        (Some(value), _) => value.to_owned(),
        (None, FlagKind::Switch) => "true".to_owned(),
        (None, _) => arguments.next().ok_or(FlagError::NoValue(flag.name))?,
    };
    match (flag.set)(flags, &value) {
        Ok(()) => Ok(value),
        Err(why) => Err(FlagError::BadValue(flag.name, value, why)),
    }
}

/// Returns the name in an argument that is a flag, with or without a value after `=`.
pub(crate) fn name_of_flag(argument: &str) -> Option<&str> {
    text_of_flag(argument).map(|text| text.split_once('=').map_or(text, |(name, _)| name))
}

/// Returns the text after the one or two dashes of a flag; `None` for a lone `-`, for `--` and for
/// text without a dash.
fn text_of_flag(argument: &str) -> Option<&str> {
    let text = argument.strip_prefix('-').filter(|text| !text.is_empty())?;
    match text.strip_prefix('-') {
        Some("") => None,
        Some(text) => Some(text),
        None => Some(text),
    }
}

/// Returns the flag that `name` resembles: `_` for `-`, another case, or four or more letters of
/// its beginning.
fn nearest<T>(sections: &'static [Section<T>], name: &str) -> Option<&'static str> {
    let plain = |text: &str| text.replace('_', "-").to_ascii_lowercase();
    let wanted = plain(name);
    let is_near =
        |name| plain(name) == wanted || wanted.len() > 3 && plain(name).starts_with(&wanted);
    flags_of(sections)
        .map(|flag| flag.name)
        .find(|name| is_near(name))
}
