//! Conditional compilation by platform: on the first line of a crate or on a pair of `mod imp`, and
//! not elsewhere.

use super::Source;

const PLATFORMS: [&str; 5] = [
    "windows",
    "unix",
    "target_os",
    "target_family",
    "target_env",
];

/// Returns a breach for each cfg that names a platform where it must not.
pub(super) fn breaches(source: &Source, is_crate_root: bool) -> Vec<String> {
    let lines: Vec<&str> = source.text.lines().map(str::trim).collect();
    let is_code = |line: &str| !line.is_empty() && !line.starts_with("//");
    let first = lines.iter().position(|line| is_code(line));
    let (imp, mut others): (Vec<usize>, Vec<usize>) = (0..lines.len())
        .filter(|at| source.is_rust() && is_code(lines[*at]) && names_platform(lines[*at]))
        .partition(|at| lines[*at].starts_with("#[cfg(") && is_imp(&lines[*at..]));
    others.retain(|at| !(is_crate_root && Some(*at) == first && lines[*at].starts_with("#![cfg(")));
    if imp.len() != 2 {
        others.extend(imp);
    }
    let sentence =
        "cfg for a platform is neither on the first line of a crate nor on a pair of `mod imp`";
    others
        .into_iter()
        .map(|at| source.breach(at + 1, sentence))
        .collect()
}

/// Returns whether a line of code has a cfg that names a platform outside quotation marks.
fn names_platform(line: &str) -> bool {
    let unquoted: String = line.split('"').step_by(2).collect();
    let mut words = unquoted.split(|letter: char| letter != '_' && !letter.is_alphanumeric());
    words.any(|word| ["cfg", "cfg_attr"].contains(&word))
        && words.any(|word| PLATFORMS.contains(&word))
}

/// Returns whether these lines are attributes followed by `mod imp`.
fn is_imp(lines: &[&str]) -> bool {
    let item = lines
        .iter()
        .find(|line| !line.starts_with("#["))
        .unwrap_or(&"");
    ["mod imp;", "mod imp {"].contains(item)
}

#[cfg(test)]
mod tests {
    use super::super::tests::source;
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        breaches(&source(path, text), path.ends_with("lib.rs")).len()
    }

    #[test]
    fn a_crate_can_be_for_one_platform_by_its_first_line() {
        assert_eq!(
            count(
                "crates/os-win32/src/lib.rs",
                "//! Windows.\n#![cfg(windows)]\nmod a;\n"
            ),
            0
        );
        assert_eq!(
            count("crates/os-win32/src/lib.rs", "use a;\n#![cfg(windows)]\n"),
            1
        );
        assert_eq!(
            count("crates/os-win32/src/disk.rs", "#![cfg(windows)]\n"),
            1
        );
    }

    #[test]
    fn a_pair_of_imp_modules_can_differ_by_platform() {
        let pair = "#[cfg(unix)]\n#[path = \"unix.rs\"]\nmod imp;\n#[cfg(windows)]\nmod imp {\n}\n";
        assert_eq!(count("crates/transport/src/address.rs", pair), 0);
        assert_eq!(
            count(
                "crates/transport/src/address.rs",
                "#[cfg(windows)]\nmod imp;\n"
            ),
            1
        );
        assert_eq!(
            count(
                "crates/transport/src/address.rs",
                &pair.replace("imp", "import")
            ),
            2
        );
    }

    #[test]
    fn no_other_cfg_names_a_platform() {
        for text in [
            "#[cfg(windows)]\nfn a() {}\n",
            "#[cfg(all(test, not(windows)))]\nmod tests {}\n",
            "fn a() -> bool { cfg!(target_os = \"linux\") }\n",
            "#[cfg_attr(unix, path = \"unix.rs\")]\nmod a;\n",
        ] {
            assert_eq!(count("crates/os/src/disk.rs", text), 1, "{text}");
        }
        for text in [
            "#[cfg(test)]\nmod tests {}\n",
            "#[cfg(feature = \"windows\")]\nfn a() {}\n",
            "fn windows() {}\n",
        ] {
            assert_eq!(count("crates/os/src/disk.rs", text), 0, "{text}");
        }
    }
}
