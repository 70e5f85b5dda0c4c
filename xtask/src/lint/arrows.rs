//! Which of our crates may depend on which.
//!
//! Logic stands on the seam (`os`) and never on one of its implementations; only the daemon's crate knows all.

use cargo_metadata::{DependencyKind, Metadata};

/// One dependency between two of our crates, by package name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Arrow {
    from: String,
    to: String,
    for_tests: bool,
}

/// What a crate may depend on.
struct Allowed {
    from: &'static str,
    to: &'static [&'static str],
    /// In addition, for its tests, benches and examples.
    for_tests: &'static [&'static str],
}

const ALLOWED: &[Allowed] = &[
    Allowed { from: "csi-proxy-os", to: &[], for_tests: &[] },
    Allowed { from: "csi-proxy-api", to: &[], for_tests: &[] },
    Allowed { from: "csi-proxy-transport", to: &[], for_tests: &[] },
    Allowed { from: "csi-proxy-authority-filter", to: &[], for_tests: &["csi-proxy-transport"] },
    Allowed { from: "csi-proxy-os-win32", to: &["csi-proxy-os"], for_tests: &[] },
    Allowed { from: "csi-proxy-os-sim", to: &["csi-proxy-os"], for_tests: &[] },
    Allowed { from: "csi-proxy-storage-ops", to: &["csi-proxy-os"], for_tests: &["csi-proxy-os-sim"] },
    Allowed {
        from: "csi-proxy-server",
        to: &["csi-proxy-storage-ops", "csi-proxy-api", "csi-proxy-authority-filter", "csi-proxy-transport"],
        for_tests: &["csi-proxy-os-sim"],
    },
    Allowed { from: "csi-proxy-client", to: &["csi-proxy-api", "csi-proxy-transport"], for_tests: &[] },
    Allowed {
        from: "csi-proxy",
        to: &[
            "csi-proxy-os",
            "csi-proxy-api",
            "csi-proxy-transport",
            "csi-proxy-os-win32",
            "csi-proxy-storage-ops",
            "csi-proxy-server",
            "csi-proxy-client",
        ],
        for_tests: &[],
    },
    Allowed {
        from: "csi-proxy-sim",
        to: &[
            "csi-proxy",
            "csi-proxy-os",
            "csi-proxy-api",
            "csi-proxy-transport",
            "csi-proxy-os-sim",
            "csi-proxy-storage-ops",
            "csi-proxy-server",
        ],
        for_tests: &["csi-proxy-os-win32"],
    },
    // A program of tests: nothing depends on it, and it is not published.
    Allowed {
        from: "csi-proxy-simtest",
        to: &["csi-proxy-os", "csi-proxy-os-sim", "csi-proxy-storage-ops"],
        for_tests: &[],
    },
    Allowed {
        from: "csi-proxy-fuzz-targets",
        to: &[
            "csi-proxy-authority-filter",
            "csi-proxy-os",
            "csi-proxy-api",
            "csi-proxy-transport",
            "csi-proxy-os-sim",
            "csi-proxy-storage-ops",
            "csi-proxy-server",
            "csi-proxy",
        ],
        for_tests: &[],
    },
    Allowed { from: "xtask", to: &[], for_tests: &[] },
];

/// The arrows between the members of this workspace. A member without any appears as an arrow to itself.
pub(super) fn of(metadata: &Metadata) -> Vec<Arrow> {
    let packages = metadata.workspace_packages();
    let ours: Vec<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    let mut arrows = Vec::new();
    for package in &packages {
        let from = package.name.to_string();
        arrows.push(Arrow { from: from.clone(), to: from.clone(), for_tests: false });
        for dependency in package.dependencies.iter().filter(|dependency| ours.contains(&dependency.name.as_str())) {
            let for_tests = dependency.kind == DependencyKind::Development;
            arrows.push(Arrow { from: from.clone(), to: dependency.name.clone(), for_tests });
        }
    }
    arrows
}

/// The arrows that may not be, one sentence each.
pub(super) fn breaches(arrows: &[Arrow]) -> Vec<String> {
    arrows.iter().filter_map(breach).collect()
}

fn breach(Arrow { from, to, for_tests }: &Arrow) -> Option<String> {
    let Some(allowed) = ALLOWED.iter().find(|allowed| allowed.from == from) else {
        return Some(format!("{from}: not in the table of dependency arrows, xtask/src/lint/arrows.rs"));
    };
    let to = to.as_str();
    let may = from == to || allowed.to.contains(&to) || (*for_tests && allowed.for_tests.contains(&to));
    let even = if *for_tests { " even in tests" } else { "" };
    (!may).then(|| format!("{from}: may not depend on {to}{even}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrow(from: &str, to: &str, for_tests: bool) -> Vec<String> {
        breaches(&[Arrow { from: from.into(), to: to.into(), for_tests }])
    }

    #[test]
    fn logic_may_not_see_an_implementation_of_the_seam() {
        assert_eq!(
            arrow("csi-proxy-storage-ops", "csi-proxy-os-win32", false),
            ["csi-proxy-storage-ops: may not depend on csi-proxy-os-win32"]
        );
        assert_eq!(
            arrow("csi-proxy-storage-ops", "csi-proxy-os-sim", false),
            ["csi-proxy-storage-ops: may not depend on csi-proxy-os-sim"]
        );
        assert_eq!(arrow("csi-proxy-server", "csi-proxy-os", false).len(), 1);
    }

    #[test]
    fn tests_of_logic_may_use_the_simulated_node_and_nothing_more() {
        assert!(arrow("csi-proxy-storage-ops", "csi-proxy-os-sim", true).is_empty());
        assert!(arrow("csi-proxy-server", "csi-proxy-os-sim", true).is_empty());
        assert_eq!(
            arrow("csi-proxy-transport", "csi-proxy-os-sim", true),
            ["csi-proxy-transport: may not depend on csi-proxy-os-sim even in tests"]
        );
    }

    #[test]
    fn no_arrow_points_back() {
        for allowed in ALLOWED {
            for to in allowed.to {
                assert!(!arrow(to, allowed.from, false).is_empty(), "{to} -> {} is allowed both ways", allowed.from);
            }
        }
    }

    #[test]
    fn only_the_daemon_and_what_tests_it_choose_an_implementation() {
        let users = |name| ALLOWED.iter().filter(move |row| row.to.contains(&name)).map(|row| row.from);
        assert_eq!(users("csi-proxy-os-win32").collect::<Vec<_>>(), ["csi-proxy"]);
        let of_the_simulated_node = ["csi-proxy-sim", "csi-proxy-simtest", "csi-proxy-fuzz-targets"];
        assert_eq!(users("csi-proxy-os-sim").collect::<Vec<_>>(), of_the_simulated_node);
    }

    #[test]
    fn an_unknown_crate_is_a_breach() {
        assert_eq!(arrow("csi-proxy-new", "csi-proxy-new", false).len(), 1);
    }
}
