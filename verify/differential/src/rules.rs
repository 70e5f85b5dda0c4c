//! The declared differences: rules that say which results may differ, and how.
//!
//! Each rule has the key of a row in the table of docs/design.md; a test compares both lists.

use std::collections::BTreeMap;
use std::fmt;

use super::call::{Call, Rpc};
use super::program::Answer;
use super::spelling::Spelling;
use super::tree::Tree;

/// A call whose results are compared.
pub(super) struct Difference<'a> {
    pub(super) call: &'a Call,
    /// The tree before the call, which both programs had.
    pub(super) before: &'a Tree,
    pub(super) go: &'a Answer,
    pub(super) own: &'a Answer,
    /// The trees after the call, in the same order.
    pub(super) trees: &'a (Tree, Tree),
}

/// What a comparison found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    Same,
    /// A difference between the programs that docs/design.md lists, with its key.
    Declared(&'static str),
    /// A difference that only Wine makes, with its key in [`WINE`].
    Wine(&'static str),
    Undeclared,
}

/// A difference that may occur.
struct Rule {
    key: &'static str,
    /// Whether the rule explains a difference.
    explains: fn(&Difference<'_>) -> bool,
}

const fn rule(key: &'static str, explains: fn(&Difference<'_>) -> bool) -> Rule {
    Rule { key, explains }
}

/// The differences that docs/design.md lists.
const RULES: &[Rule] = &[
    // Only the Go program answers or acts.
    rule("containment", |found| {
        found.own_refuses() && found.any_path(|path| path.has_prefix() && !path.is_inside())
    }),
    rule("name-ends", |found| {
        found.own_is_invalid() && found.any_path(Spelling::has_stripped_end)
    }),
    rule("device-names", |found| {
        found.own_is_invalid() && found.any_path(Spelling::has_device_name)
    }),
    rule("characters", |found| {
        found.own_is_invalid() && found.any_path(Spelling::has_forbidden_character)
    }),
    rule("IsSymlink-paths", |found| {
        found.call.rpc == Rpc::IsSymlink
            && found.own_is_invalid()
            && found.any_path(|path| !path.is_acceptable())
    }),
    rule("context", |found| {
        found.own_is_invalid()
            && found
                .call
                .context
                .as_ref()
                .is_some_and(serde_json::Value::is_number)
    }),
    rule("working-directory", |found| {
        matches!(found.call.rpc, Rpc::Rmdir { .. } | Rpc::RmdirContents)
            && !found.own.is_ok()
            && found.any_path(Spelling::is_working_directory)
    }),
    rule("final-separator", |found| {
        found.call.rpc == Rpc::Rmdir { force: true }
            && found.own.code == "FailedPrecondition"
            && found.any_path(Spelling::asks_for_directory)
            && &found.trees.1 == found.before
    }),
    // Only this program answers or acts.
    rule("final-dot", |found| {
        found.call.rpc == Rpc::Rmdir { force: true }
            && found.go_refuses()
            && found.any_path(Spelling::ends_with_dot)
    }),
    rule("repeated-separators", |found| {
        found.go_refuses() && found.any_path(|path| path.is_inside() && !path.has_prefix())
    }),
    rule("dots-in-names", |found| {
        found.go_refuses() && found.any_path(Spelling::has_dots_in_name)
    }),
    rule("length", |found| {
        found.go_refuses() && found.any_path(Spelling::is_long_in_bytes_only)
    }),
];

/// The differences that the two programs have only under Wine, so that nothing is learned about
/// Windows.
const WINE: &[Rule] = &[
    // Wine's CreateSymbolicLinkW succeeds and creates nothing, and its file system has no reparse
    // points to set.
    rule("no-links", |found| {
        found.call.rpc == Rpc::CreateSymlink
            && found.go.is_ok()
            && !found.own.is_ok()
            && !found.own_is_invalid()
            && found.trees_are_equal()
    }),
    // Wine takes a path that begins with a slash for a path of Linux, on its drive Z:. csi-proxy
    // puts it on drive C: first.
    rule("linux-paths", |found| {
        found.call.rpc == Rpc::IsSymlink
            && found.call.path.starts_with('/')
            && found.own.is_ok()
            && found.go_refuses()
            && found.trees_are_equal()
    }),
];

impl Difference<'_> {
    pub(super) fn judge(&self) -> Judgement {
        let has_answered = !self.go.is_missing() && !self.own.is_missing();
        if !has_answered || ["Unknown", "Internal"].contains(&self.own.code.as_str()) {
            return Judgement::Undeclared;
        }
        let same_answer =
            self.go.is_ok() == self.own.is_ok() && self.go.response == self.own.response;
        if same_answer && self.trees_are_equal() {
            return Judgement::Same;
        }
        let explains = |rule: &&Rule| (rule.explains)(self);
        let declared = || {
            RULES
                .iter()
                .find(explains)
                .map(|rule| Judgement::Declared(rule.key))
        };
        let of_wine = || {
            WINE.iter()
                .find(explains)
                .map(|rule| Judgement::Wine(rule.key))
        };
        declared().or_else(of_wine).unwrap_or(Judgement::Undeclared)
    }

    fn trees_are_equal(&self) -> bool {
        self.trees.0 == self.trees.1
    }

    fn any_path(&self, has: impl Fn(&Spelling) -> bool) -> bool {
        self.call
            .paths()
            .into_iter()
            .any(|path| has(&Spelling::new(path)))
    }

    /// Returns whether this program has refused the call and changed nothing.
    fn own_refuses(&self) -> bool {
        ["InvalidArgument", "PermissionDenied"].contains(&self.own.code.as_str())
            && &self.trees.1 == self.before
    }

    /// Returns whether this program has refused the text of a path.
    fn own_is_invalid(&self) -> bool {
        self.own.code == "InvalidArgument" && &self.trees.1 == self.before
    }

    /// Returns whether the Go program has refused the call and changed nothing.
    fn go_refuses(&self) -> bool {
        !self.go.is_ok() && &self.trees.0 == self.before
    }
}

impl fmt::Display for Difference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.call.line())?;
        for (name, answer) in [("Go program", self.go), ("this program", self.own)] {
            writeln!(
                f,
                "{name}: {} {} {}",
                answer.code, answer.message, answer.response
            )?;
        }
        for difference in self.trees.0.differences(&self.trees.1) {
            writeln!(f, "trees: {difference}")?;
        }
        Ok(())
    }
}

/// How many calls had which result.
#[derive(Default)]
pub(super) struct Counts {
    same: usize,
    pub(super) undeclared: usize,
    by_key: BTreeMap<(&'static str, &'static str), usize>,
}

impl Counts {
    pub(super) fn add(&mut self, judgement: Judgement) {
        match judgement {
            Judgement::Same => self.same += 1,
            Judgement::Undeclared => self.undeclared += 1,
            Judgement::Declared(key) => *self.by_key.entry(("declared", key)).or_default() += 1,
            Judgement::Wine(key) => *self.by_key.entry(("only under Wine", key)).or_default() += 1,
        }
    }

    /// Returns the keys of the declared differences that no call has shown.
    pub(super) fn unused(&self) -> impl Iterator<Item = &'static str> {
        RULES
            .iter()
            .map(|rule| rule.key)
            .filter(|key| !self.by_key.contains_key(&("declared", key)))
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>7} with the same result", self.same)?;
        for ((kind, key), count) in &self.by_key {
            writeln!(f, "{count:>7} {kind}: {key}")?;
        }
        write!(f, "{:>7} undeclared", self.undeclared)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::Value;

    use super::super::call::{Call, Rpc};
    use super::super::program::Answer;
    use super::super::tree::{Entry, Tree};
    use super::{Difference, Judgement, RULES};

    fn answer(code: &str) -> Answer {
        Answer {
            code: code.into(),
            message: String::new(),
            response: Value::Null,
        }
    }

    fn tree(paths: &[&str]) -> Tree {
        Tree(
            paths
                .iter()
                .map(|path| ((*path).to_owned(), Entry::Directory))
                .collect(),
        )
    }

    /// Judges a call of Mkdir that had these results: the code and the tree of the Go program and
    /// of this one.
    fn judge(path: &str, go: (&str, &[&str]), own: (&str, &[&str])) -> Judgement {
        let call = Call {
            rpc: Rpc::Mkdir,
            path: path.into(),
            ..Call::probe()
        };
        let trees = (tree(go.1), tree(own.1));
        let difference = Difference {
            call: &call,
            before: &tree(&[]),
            go: &answer(go.0),
            own: &answer(own.0),
            trees: &trees,
        };
        difference.judge()
    }

    #[test]
    fn equal_results_are_the_same_whatever_the_codes_of_errors_are() {
        const PATH: &str = r"C:\var\lib\kubelet\new";
        assert_eq!(
            judge(PATH, ("OK", &["new"]), ("OK", &["new"])),
            Judgement::Same
        );
        assert_eq!(
            judge(PATH, ("Unknown", &[]), ("NotFound", &[])),
            Judgement::Same
        );
    }

    #[test]
    fn a_difference_without_a_rule_is_undeclared() {
        const PATH: &str = r"C:\var\lib\kubelet\new";
        for (go, own) in [
            (("OK", &["new"][..]), ("OK", &[][..])),
            (("OK", &["new"]), ("NotFound", &["new"])),
            (("Unknown", &[]), ("OK", &[])),
            (("Unknown", &["new"]), ("NotFound", &[])),
            // An error that this program did not expect is a defect, also if the other program
            // fails.
            (("Unknown", &[]), ("Internal", &[])),
            // A call that was not made shows nothing.
            (("Canceled", &[]), ("Canceled", &[])),
            (("Unavailable", &[]), ("InvalidArgument", &[])),
        ] {
            assert_eq!(
                judge(PATH, go, own),
                Judgement::Undeclared,
                "{go:?} {own:?}"
            );
        }
    }

    #[test]
    fn a_rule_explains_only_what_it_is_about() {
        let beside = r"C:\var\lib\kubelet-evil\new";
        assert_eq!(
            judge(beside, ("OK", &["new"]), ("PermissionDenied", &[])),
            Judgement::Declared("containment")
        );
        // This program has made something although it refused the call.
        assert_eq!(
            judge(beside, ("OK", &["new"]), ("PermissionDenied", &["other"])),
            Judgement::Undeclared
        );
        assert_eq!(
            judge(beside, ("Unknown", &[]), ("OK", &["new"])),
            Judgement::Undeclared
        );
        let dots = r"C:\var\lib\kubelet\a..b";
        assert_eq!(
            judge(dots, ("Unknown", &[]), ("OK", &["a..b"])),
            Judgement::Declared("dots-in-names")
        );
        assert_eq!(
            judge(dots, ("OK", &["a..b"]), ("InvalidArgument", &[])),
            Judgement::Undeclared
        );
    }

    #[test]
    fn a_final_dot_is_one_with_separators_after_it_too() {
        let difference = |path: &str| {
            let call = Call {
                rpc: Rpc::Rmdir { force: true },
                path: path.into(),
                ..Call::probe()
            };
            let (before, trees) = (tree(&["full"]), (tree(&["full"]), tree(&[])));
            let (go, own) = (answer("Unknown"), answer("OK"));
            Difference {
                call: &call,
                before: &before,
                go: &go,
                own: &own,
                trees: &trees,
            }
            .judge()
        };
        for end in [r"\.", r"\.\", r"\.\\"] {
            let path = format!(r"C:\var\lib\kubelet\full{end}");
            assert_eq!(
                difference(&path),
                Judgement::Declared("final-dot"),
                "{path}"
            );
        }
        assert_eq!(
            difference(r"C:\var\lib\kubelet\full.d\"),
            Judgement::Undeclared
        );
    }

    #[test]
    fn a_path_of_linux_is_one_that_begins_with_a_slash() {
        let judge = |path: &str| {
            let call = Call {
                rpc: Rpc::IsSymlink,
                path: path.into(),
                ..Call::probe()
            };
            let (go, own, before, trees) = (
                answer("Unknown"),
                answer("OK"),
                tree(&[]),
                (tree(&[]), tree(&[])),
            );
            Difference {
                call: &call,
                before: &before,
                go: &go,
                own: &own,
                trees: &trees,
            }
            .judge()
        };
        assert_eq!(
            judge("/var/lib/kubelet/pods"),
            Judgement::Wine("linux-paths")
        );
        assert_eq!(judge(r"\var\lib\kubelet\pods"), Judgement::Undeclared);
    }

    /// Returns the keys in the table of the section about the file system.
    fn documented() -> Vec<String> {
        let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/design.md"))
            .expect("the page");
        let section = page
            .split("\n### ")
            .find(|section| section.starts_with("File system\n"))
            .expect("the section");
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
        rows.filter_map(|row| row.split_once("` |"))
            .map(|(key, _)| key.to_owned())
            .collect()
    }

    #[test]
    fn docs_design_lists_the_declared_differences_and_no_others() {
        assert_eq!(
            documented(),
            RULES.iter().map(|rule| rule.key).collect::<Vec<_>>()
        );
    }
}
