//! The calls that can change the node: the table "The same calls in production" of `docs/windows.md`.

const PAGE: &str = include_str!("../../../../docs/windows.md");

/// The first line of the table.
const HEAD: &str = "| primitive | call | in production | difference |";

/// Returns whether the table has the primitive.
pub(super) fn is_listed(primitive: &str) -> bool {
    let (_, table) = PAGE.split_once(HEAD).expect("docs/windows.md has the table of all changes");
    let cell = format!("| `{primitive}` |");
    table.trim_start().lines().take_while(|line| line.starts_with('|')).any(|line| line.starts_with(&cell))
}
