//! The order of the checks.

use facts::Fact;

use crate::ACCEPTANCE;

/// The beginnings of the ids of the checks that run first: those that end a fallback
/// (docs/appendix-fallbacks.md), then those of the calls that change disks, volumes, mounts and
/// links, and then those of the queries that such a change depends on.
const FIRST: [&str; 27] = [
    "DISK-04",
    "DISK-07",
    "DISK-08",
    "DISK-10",
    "DISK-13",
    "DISK-21",
    "DISK-22",
    "FILE-OPEN-28",
    "FILE-OPEN-50",
    "FILE-OPEN-59",
    "FINAL-04",
    "FS-INFO-01",
    "FS-INFO-04",
    "SMBIOS-02",
    "SMBIOS-03",
    "VOL-14",
    "VOL-15",
    "VOL-22",
    "WMI-DISK",
    "WMI-PART",
    "WMI-VOL",
    "MOUNT",
    "REP-SET",
    "FILE-DEL",
    "DISK",
    "VOL",
    "FS-INFO",
];

/// Returns the acceptance and the checks of all facts, those on which operations depend most first:
/// a stranger runs the program once, and a slow machine does not reach the end.
pub fn checks() -> Vec<Fact> {
    let rank = |check: &Fact| FIRST.iter().position(|start| check.id.starts_with(start));
    let mut facts = facts::all();
    facts.sort_by_key(|check| rank(check).unwrap_or(FIRST.len()));
    [&ACCEPTANCE[..], &facts].concat()
}

#[cfg(test)]
mod tests {
    use super::{FIRST, checks};
    use crate::ACCEPTANCE;

    #[test]
    fn the_checks_that_end_a_fallback_follow_the_acceptance() {
        let page = include_str!("../../../docs/appendix-fallbacks.md");
        let all = checks();
        let ending = FIRST.iter().take_while(|id| page.contains(*id)).count();
        assert_eq!(ending, 18);
        for check in &all[ACCEPTANCE.len()..][..ending] {
            assert!(page.contains(check.id), "{}", check.id);
        }
        for start in FIRST {
            assert!(
                all.iter().any(|check| check.id.starts_with(start)),
                "{start}"
            );
        }
    }
}
