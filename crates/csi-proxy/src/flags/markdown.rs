//! The tables of flags in a program's README, made from the same data as its help.

use super::table::WITHOUT_EFFECT;
use super::{Flag, FlagKind, Section, TABLE};
use crate::program::Program;

/// Returns the tables that the README of `program` must contain.
pub fn tables<T>(program: &Program<T>) -> String {
    program
        .own_flags
        .iter()
        .map(section)
        .chain(TABLE.iter().map(section))
        .collect()
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
    use super::tables;
    use crate::program::CSI_PROXY;

    #[test]
    fn the_readme_lists_every_flag_as_the_table_has_it() {
        let tables = tables(&CSI_PROXY);
        assert!(
            include_str!("../../README.md").contains(&tables),
            "the README should contain:\n{tables}"
        );
    }
}
