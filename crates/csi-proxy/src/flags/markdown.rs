//! The tables of flags in a program's README, made from the same data as its help.

use super::table::WITHOUT_EFFECT;
use super::{Flag, FlagKind, Program, Section, TABLE};

/// Returns `readme` with the tables of the flags of `program` in place of those that it has: from
/// the first one to the line of the flags without effect.
///
/// # Panics
///
/// If `readme` has no such tables.
pub fn with_tables<T>(readme: &str, program: &Program<T>) -> String {
    let tables: String = program
        .own_flags
        .iter()
        .map(section)
        .chain(TABLE.iter().map(section))
        .collect();
    let (before, _) = readme.split_once(" | default | |\n").expect("a table");
    let begin = before.rfind('\n').expect("a line above");
    let last_line = format!("\n{WITHOUT_EFFECT}: ");
    let (_, after) = readme.split_once(&last_line).expect("the last line");
    let (_, rest) = after.split_once('\n').expect("its end");
    format!("{}{tables}{rest}", &readme[..begin])
}

fn section<T>(Section { title, flags }: &Section<T>) -> String {
    if *title == WITHOUT_EFFECT {
        let names: Vec<String> = flags
            .iter()
            .map(|flag| format!("`-{}`", flag.name))
            .collect();
        return format!("\n{title}: {}.\n", names.join(", "));
    }
    format!(
        "\n| {title} | default | |\n|---|---|---|\n{}",
        flags.iter().map(row).collect::<String>()
    )
}

fn row<T>(flag: &Flag<T>) -> String {
    let (value, repeated) = match flag.kind {
        FlagKind::Switch => (String::new(), ""),
        FlagKind::Value(value) => (format!(" {value}"), ""),
        FlagKind::Values(value) => (format!(" {value}"), " May be repeated."),
    };
    let default = if flag.default.is_empty() {
        String::new()
    } else {
        format!("`{}`", flag.default)
    };
    format!(
        "| `-{}{value}` | {default} | {}{repeated} |\n",
        flag.name, flag.help
    )
}

#[cfg(test)]
mod tests {
    use std::{env, fs};

    use super::with_tables;
    use crate::program::CSI_PROXY;

    #[test]
    fn the_readme_lists_every_flag_as_the_table_has_it() {
        const README: &str = include_str!("../../README.md");
        let renewed = with_tables(README, &CSI_PROXY);
        if env::var_os("BLESS").is_some() {
            fs::write("README.md", &renewed).expect("the README can be written");
        }
        assert!(README == renewed, "BLESS=1 renews the README");
    }
}
