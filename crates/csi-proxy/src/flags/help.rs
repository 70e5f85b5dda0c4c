//! The text of `help`, made from the tables of flags.

use std::fmt;

use anstyle::{AnsiColor, Style};
use terminal_text::wrapped;

use super::table::WITHOUT_EFFECT;
use super::{Flag, FlagKind, Program, Section, TABLE};

const HEADING: Style = Style::new().bold();
const NAME: Style = AnsiColor::Cyan.on_default();
/// The column at which the descriptions of flags start.
const COLUMN: usize = 33;
/// The longest line: the width of a small terminal.
const WIDTH: usize = 80;

/// The whole help of a program, with colours, which `anstream` removes where they are not wanted.
pub struct Help<T: 'static>(pub &'static Program<T>);

impl<T> fmt::Display for Help<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Program {
            name,
            about,
            commands,
            own_flags,
        } = self.0;
        writeln!(f, "{about}\n\n{HEADING}Usage{HEADING:#}")?;
        let longest = commands
            .iter()
            .map(|(command, _)| command.len())
            .max()
            .unwrap_or_default();
        for (command, meaning) in *commands {
            writeln!(f, "  {name} {command:<longest$}  {meaning}")?;
        }
        f.write_str(
            "\nFlags are written as for Go programs: -name=value, -name value or --name.\n\
             A switch needs no value to be on; -switch=false turns it off.\n",
        )?;
        write_sections(f, own_flags)?;
        write_sections(f, &TABLE)
    }
}

fn write_sections<T>(f: &mut fmt::Formatter<'_>, sections: &[Section<T>]) -> fmt::Result {
    for Section { title, flags } in sections {
        writeln!(f, "\n{HEADING}{title}{HEADING:#}")?;
        if *title == WITHOUT_EFFECT {
            let names: Vec<String> = flags.iter().map(|flag| format!("-{}", flag.name)).collect();
            writeln!(f, "  {}", wrapped(&names.join(" "), 2, Some(WIDTH)))?;
        } else {
            flags.iter().try_for_each(|flag| describe(f, flag))?;
        }
    }
    Ok(())
}

fn describe<T>(f: &mut fmt::Formatter<'_>, flag: &Flag<T>) -> fmt::Result {
    let value = match flag.kind {
        FlagKind::Switch => String::new(),
        FlagKind::Value(value) => format!(" {value}"),
        FlagKind::Values(value) => format!(" {value} ..."),
    };
    let spelling = format!("-{}{value}", flag.name);
    let shown = match (flag.kind, flag.default) {
        (_, "") | (FlagKind::Switch, "false") => flag.help.to_owned(),
        (_, default) => format!("{} [{default}]", flag.help),
    };
    let shown = wrapped(&shown, COLUMN, Some(WIDTH));
    writeln!(
        f,
        "  {NAME}{spelling:<width$}{NAME:#}{shown}",
        width = COLUMN - 2
    )
}

#[cfg(test)]
mod tests {
    use super::{Help, WIDTH};
    use crate::flags::{TABLE, flags_of};
    use crate::program::CSI_PROXY;

    fn plain() -> String {
        anstream::adapter::strip_str(&Help(&CSI_PROXY).to_string()).to_string()
    }

    #[test]
    fn every_flag_is_in_the_help_with_its_default() {
        let text = plain();
        for flag in flags_of(CSI_PROXY.own_flags).chain(flags_of(&TABLE)) {
            assert!(
                text.contains(&format!("-{}", flag.name)),
                "-{} is missing",
                flag.name
            );
            assert!(
                flag.help.len() <= 128,
                "the help of -{} is longer than two lines of a wide terminal",
                flag.name
            );
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
