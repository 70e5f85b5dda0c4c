//! The calls that can change the node: the table of `changes.md`.

const PAGE: &str = include_str!("changes.md");

/// The first line of the table.
const HEAD: &str = "| primitive | call | in production | difference |";

/// Returns whether the table has the primitive.
pub(super) fn is_listed(primitive: &str) -> bool {
    let (_, table) = PAGE
        .split_once(HEAD)
        .expect("changes.md has the table of all changes");
    let cell = format!("| `{primitive}` |");
    table
        .trim_start()
        .lines()
        .take_while(|line| line.starts_with('|'))
        .any(|line| line.starts_with(&cell))
}
