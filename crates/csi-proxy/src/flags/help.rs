//! The text of `help`, made from the tables of flags.

use std::fmt;

use anstyle::{AnsiColor, Style};

use super::table::WITHOUT_EFFECT;
use super::{Flag, Kind, TABLE};
use crate::program::Program;

const HEADING: Style = Style::new().bold();
const NAME: Style = AnsiColor::Cyan.on_default();
/// The column at which the descriptions start.
const COLUMN: usize = 34;
/// The longest line.
const WIDTH: usize = 98;

/// The whole help of a program, with colours, which `anstream` removes where they are not wanted.
pub struct Help<T: 'static>(pub &'static Program<T>);

impl<T> fmt::Display for Help<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Program { name, about, commands, own_flags } = self.0;
        writeln!(f, "{about}\n\n{HEADING}Usage{HEADING:#}")?;
        for (command, meaning) in *commands {
            let usage = format!("{name} {command}");
            write_beside(f, &format!("  {usage:<width$}", width = COLUMN - 2), &" ".repeat(COLUMN), meaning)?;
        }
        write!(
            f,
            "\nFlags are written as for Go programs: -name=value, -name value or --name. A switch needs no\n\
             value to be on; -switch=false turns it off.\n"
        )?;
        write_sections(f, own_flags)?;
        write_sections(f, &TABLE)
    }
}

fn write_sections<T>(f: &mut fmt::Formatter<'_>, table: &[Flag<T>]) -> fmt::Result {
    for flags in table.chunk_by(|one, next| one.section == next.section) {
        let section = flags[0].section;
        writeln!(f, "\n{HEADING}{section}{HEADING:#}")?;
        if section == WITHOUT_EFFECT {
            let names: Vec<String> = flags.iter().map(|flag| format!("-{}", flag.name)).collect();
            write_beside(f, "  ", "  ", &names.join(" "))?;
        } else {
            flags.iter().try_for_each(|flag| describe(f, flag))?;
        }
    }
    Ok(())
}

fn describe<T>(f: &mut fmt::Formatter<'_>, flag: &Flag<T>) -> fmt::Result {
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

/// Writes a sentence after `first`, wrapped; each further line starts with `other`.
fn write_beside(f: &mut fmt::Formatter<'_>, first: &str, other: &str, sentence: &str) -> fmt::Result {
    for (at, line) in wrap(sentence).into_iter().enumerate() {
        writeln!(f, "{}{line}", if at == 0 { first } else { other })?;
    }
    Ok(())
}

/// Breaks a sentence into lines that fit beside the names of flags.
fn wrap(sentence: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in sentence.split(' ') {
        let last = lines.last_mut().expect("at least one line");
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
    use super::{Help, WIDTH};
    use crate::flags::TABLE;
    use crate::program::CSI_PROXY;

    fn plain() -> String {
        anstream::adapter::strip_str(&Help(&CSI_PROXY).to_string()).to_string()
    }

    #[test]
    fn every_flag_is_in_the_help_with_its_default() {
        let text = plain();
        let own = CSI_PROXY.own_flags.iter();
        for flag in own.chain(&TABLE) {
            assert!(text.contains(&format!("-{}", flag.name)), "-{} is missing", flag.name);
        }
        assert!(text.contains(r"[C:\var\lib\kubelet]"), "{text}");
    }

    #[test]
    fn no_line_of_the_help_is_longer_than_a_terminal() {
        for line in plain().lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
    }
}
