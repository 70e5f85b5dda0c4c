//! The checks, one file for each subject.

mod disks;
mod folders;
mod leftovers;
mod pipes;
mod service;
mod windows;
mod working_directories;

use crate::Examination;

/// Makes all checks, in the order of the output.
pub(crate) fn all(examination: &mut Examination<'_>) {
    windows::check(examination);
    let served_by = pipes::check(examination);
    let registered = service::check(examination, served_by.as_deref());
    folders::check(examination, [registered, served_by]);
    working_directories::check(examination);
    let iscsi_runs = service::check_prerequisites(examination);
    disks::check(examination);
    leftovers::check(examination, iscsi_runs);
}

/// Returns `count` and the noun, in the plural unless it is one.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Returns the first few of `items`, and how many more there are.
fn listed<T: AsRef<str>>(items: &[T]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<_> = items.iter().take(SHOWN).map(AsRef::as_ref).collect();
    match items.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::{counted, listed};

    #[test]
    fn lists_are_short_and_counts_have_a_plural() {
        assert_eq!(listed(&["a", "b"]), "a, b");
        assert_eq!(listed(&["a", "b", "c", "d", "e", "f", "g"]), "a, b, c, d, e and 2 more");
        assert_eq!([counted(1, "disk"), counted(0, "disk")], ["1 disk", "0 disks"]);
    }
}
