//! Programs of Windows, which code starts by their absolute paths. Windows searches for a program
//! without a path in the folder of the running program first, where an ordinary user may have put
//! another one.

use super::Source;

/// Programs of Windows that tests, checks and tools might start. Any name with `.exe` counts too.
const PROGRAMS: [&str; 16] = [
    "bcdedit",
    "cmd",
    "diskpart",
    "fsutil",
    "icacls",
    "mountvol",
    "net",
    "netsh",
    "powershell",
    "pwsh",
    "reg",
    "sc",
    "takeown",
    "taskkill",
    "wevtutil",
    "whoami",
];

/// Returns a breach for each start of such a program by its name.
pub(super) fn breaches(source: &Source) -> Vec<String> {
    let is_bare = |name: &str| {
        let is_program = name.rsplit_once('.').is_some_and(|(_, kind)| kind == "exe");
        PROGRAMS.contains(&name) || (is_program && !name.contains(['\\', '/', ':']))
    };
    source
        .text
        .lines()
        .enumerate()
        .filter(|_| source.is_rust())
        .flat_map(|(index, line)| {
            line.split("Command::new(\"")
                .skip(1)
                .filter_map(|rest| rest.split_once('"'))
                .filter(|(name, _)| is_bare(name))
                .map(move |(name, _)| {
                    source.breach(
                        index + 1,
                        &format!(
                            "{name} is started by its name; start os_win32::system::program({name:?})"
                        ),
                    )
                })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::source;
    use super::breaches;

    #[test]
    fn a_program_of_windows_is_not_started_by_its_name() {
        let count = |line: &str| breaches(&source("verify/facts/src/a.rs", line)).len();
        for name in ["powershell", "diskpart", "icacls.exe", "other.exe"] {
            let start = ["Command", "::new(\"", name, "\").arg(\"/s\")"].concat();
            assert_eq!(count(&start), 1, "{name}");
        }
        for accepted in [
            r#"Command::new("sh")"#,
            r#"Command::new(system::program("icacls.exe")?)"#,
            r#"Command::new("C:\\windows\\regedit.exe")"#,
        ] {
            assert_eq!(count(accepted), 0, "{accepted}");
        }
    }
}
