//! The tables of scenarios cover every operation of the library.

use std::collections::BTreeSet;
use std::path::Path;

use fault_injection::scenarios;

/// Returns the names of all operations, as the library's sources declare them.
fn declared() -> BTreeSet<String> {
    declared_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/storage-ops/src/ops"))
}

fn declared_in(sources: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(sources).expect("the library's sources") {
        let path = entry.expect("a source file").path();
        if path.is_dir() {
            names.extend(declared_in(&path));
            continue;
        }
        let text = std::fs::read_to_string(path).expect("a source file");
        // Operations that a module's own tests declare do not count.
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        let declarations = text.split("const NAME: &'static str = \"").skip(1);
        names.extend(
            declarations
                .filter_map(|rest| rest.split('"').next())
                .map(str::to_owned),
        );
    }
    names
}

#[test]
fn every_operation_of_the_library_has_scenarios() {
    let tested: BTreeSet<String> = scenarios::all()
        .iter()
        .map(|scenario| scenario.spec.operation().to_owned())
        .collect();
    let missing: Vec<String> = declared().difference(&tested).cloned().collect();
    assert!(
        missing.is_empty(),
        "src/scenarios has no operation {missing:?}"
    );
}

#[test]
fn a_scenario_has_the_name_of_its_operation() {
    for scenario in [scenarios::all(), scenarios::races::scenarios()].concat() {
        let sim = (scenario.state.build)();
        assert_eq!(
            (scenario.spec.request)(&sim).operation(),
            scenario.spec.operation(),
            "{scenario}"
        );
    }
}

#[test]
fn all_scenarios_have_different_names() {
    let all = scenarios::all();
    let names: BTreeSet<String> = all.iter().map(ToString::to_string).collect();
    // Some operations are in the tables for volumes and for files, with different names of the
    // states.
    assert_eq!(names.len(), all.len());
}
