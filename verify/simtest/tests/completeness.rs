//! Whether the tables leave nothing out.

use std::collections::BTreeSet;
use std::path::Path;

use simtest::scenarios::{self, operation_of};

/// The names of all operations, as the library declares them.
fn declared() -> BTreeSet<String> {
    declared_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/storage-ops/src/ops"))
}

fn declared_in(sources: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(sources).expect("the library's sources") {
        let path = entry.expect("a source").path();
        if path.is_dir() {
            names.extend(declared_in(&path));
            continue;
        }
        let text = std::fs::read_to_string(path).expect("a source");
        // What a module's own tests declare is no operation of a node.
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        let declarations = text.split("const NAME: &'static str = \"").skip(1);
        names.extend(declarations.filter_map(|rest| rest.split('"').next()).map(str::to_owned));
    }
    names
}

#[test]
fn every_operation_of_the_library_has_its_scenarios() {
    let proved: BTreeSet<String> =
        scenarios::all().iter().map(|scenario| operation_of(&scenario.asked).to_owned()).collect();
    assert_eq!(proved, declared());
    assert_eq!(proved.len(), 39);
}

#[test]
fn a_scenario_is_called_what_its_operation_is_called() {
    for scenario in [scenarios::all(), scenarios::contested::scenarios()].concat() {
        let sim = (scenario.state.build)();
        assert_eq!((scenario.asked.request)(&sim).operation(), operation_of(&scenario.asked), "{scenario}");
    }
}

#[test]
fn no_two_scenarios_have_one_name() {
    let all = scenarios::all();
    let names: BTreeSet<String> = all.iter().map(ToString::to_string).collect();
    // An operation on a path is asked about volumes and about files; their states have names of their own.
    assert_eq!(names.len(), all.len());
}
