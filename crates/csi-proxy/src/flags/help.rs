//! What `csi-proxy help` says, made of the table of flags.

use std::fmt;

use anstyle::{AnsiColor, Style};

use crate::flags::{Flag, Kind, Section, TABLE};

const HEADING: Style = Style::new().bold();
const NAME: Style = AnsiColor::Cyan.on_default();
/// Where the descriptions begin.
const COLUMN: usize = 34;
/// Where lines end.
const WIDTH: usize = 98;

/// The whole help, with colours that whoever prints it may strip.
#[derive(Clone, Copy, Debug)]
pub struct Help;

impl fmt::Display for Help {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Answers CSI drivers that run without privileges on a Windows node.\n\n\
             {HEADING}Usage{HEADING:#}\n  \
             csi-proxy [FLAGS]      serve until told to stop\n  \
             csi-proxy demo         play each CSI driver against a simulated node\n  \
             csi-proxy service ...  install [FLAGS], uninstall, status: the Windows service csiproxy\n  \
             csi-proxy help         print this\n  \
             csi-proxy version      print the version\n\n\
             Flags are written as Go programs take them: -name=value, -name value or --name; a switch\n\
             alone is on, and -switch=false is off.\n"
        )?;
        for section in Section::ALL {
            writeln!(f, "\n{HEADING}{section}{HEADING:#}")?;
            let flags = TABLE.iter().filter(|flag| flag.section == section);
            if section == Section::WithoutEffect {
                let names: Vec<String> = flags.map(|flag| format!("-{}", flag.name)).collect();
                write_beside(f, "  ", "  ", &names.join(" "))?;
            } else {
                flags.into_iter().try_for_each(|flag| describe(f, flag))?;
            }
        }
        Ok(())
    }
}

fn describe(f: &mut fmt::Formatter<'_>, flag: &Flag) -> fmt::Result {
    let value = match flag.kind {
        Kind::Switch => String::new(),
        Kind::Value(value) => format!(" {value}"),
        Kind::Values(value) => format!(" {value} ..."),
    };
    let spelling = format!("-{}{value}", flag.name);
    let shown = match (flag.kind, flag.default) {
        (_, "") | (Kind::Switch, "false") => flag.help.to_owned(),
        (_, default) => format!("{} [{default}]", flag.help),
    };
    let first = format!("  {NAME}{spelling:<width$}{NAME:#}", width = COLUMN - 2);
    write_beside(f, &first, &" ".repeat(COLUMN), &shown)
}

/// Writes a sentence behind `first`, and as many lines behind `other` as it takes.
fn write_beside(f: &mut fmt::Formatter<'_>, first: &str, other: &str, sentence: &str) -> fmt::Result {
    for (at, line) in wrap(sentence).into_iter().enumerate() {
        writeln!(f, "{}{line}", if at == 0 { first } else { other })?;
    }
    Ok(())
}

/// The flags as the tables that the README has.
#[cfg(test)]
fn markdown() -> String {
    let mut text = String::new();
    for section in Section::ALL {
        let flags: Vec<&Flag> = TABLE.iter().filter(|flag| flag.section == section).collect();
        let names = flags.iter().map(|flag| format!("`-{}`", flag.name)).collect::<Vec<_>>().join(", ");
        let rows = flags.iter().map(|flag| {
            let value = match flag.kind {
                Kind::Switch => String::new(),
                Kind::Value(value) | Kind::Values(value) => format!(" {value}"),
            };
            let repeated = if matches!(flag.kind, Kind::Values(_)) { " May be repeated." } else { "" };
            let default = if flag.default.is_empty() { String::new() } else { format!("`{}`", flag.default) };
            format!("| `-{}{value}` | {default} | {}{repeated} |\n", flag.name, flag.help)
        });
        let table = match section {
            Section::WithoutEffect => format!("\n{section}: {names}.\n"),
            _ => format!("\n| {section} | default | |\n|---|---|---|\n{}", rows.collect::<String>()),
        };
        text.push_str(&table);
    }
    text
}

/// Breaks a sentence into lines that fit beside the names.
fn wrap(sentence: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in sentence.split(' ') {
        let last = lines.last_mut().expect("there is always a line");
        if last.is_empty() {
            last.push_str(word);
        } else if COLUMN + last.len() + 1 + word.len() > WIDTH {
            lines.push(word.to_owned());
        } else {
            last.push(' ');
            last.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{Help, WIDTH, markdown};
    use crate::flags::TABLE;

    fn plain() -> String {
        anstream::adapter::strip_str(&Help.to_string()).to_string()
    }

    #[test]
    fn every_flag_is_in_the_help_with_its_default() {
        let text = plain();
        for flag in &TABLE {
            assert!(text.contains(&format!("-{}", flag.name)), "-{} is not there", flag.name);
        }
        assert!(text.contains(r"[C:\var\lib\kubelet]"), "{text}");
    }

    #[test]
    fn the_readme_has_every_flag_as_the_table_has_it() {
        let readme = include_str!("../../README.md");
        assert!(readme.contains(&markdown()), "the README should have:\n{}", markdown());
    }

    #[test]
    fn no_line_of_the_help_is_longer_than_a_terminal() {
        for line in plain().lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
    }
}
