//! Whether tests detect a broken rule. Each patch beside this program breaks one rule in a copy of
//! this tree, in which a test must then fail. `cargo xtask sensitivity` runs this program.
//!
//! A patch begins with a sentence that states which rule it breaks. Its lines `Case:` select the
//! cases of `fault-injection` to run, and its lines `Fails:` name operations that must be among
//! those that fail. Or its line `Test:` has the arguments of the `cargo test` that must fail, and
//! its line `Says:` a part of the output. A patch that does not apply is a failure.

use std::error::Error;
use std::process::ExitCode;

mod patch;
mod tree_copy;

use patch::Patch;
use tree_copy::TreeCopy;

/// Runs the simulation tests without a patch, where they must pass, and with each patch, where they
/// must fail.
fn main() -> Result<ExitCode, Box<dyn Error>> {
    let copy = TreeCopy::create()?;
    let patches = patch::all()?;
    let all_cases: Vec<String> = patches
        .iter()
        .flat_map(|patch| patch.cases.clone())
        .collect();
    let mut failed = 0;
    let mut fail = |name: &str, reason: &str| {
        failed += 1;
        println!("FAILED {name}: {reason}");
    };
    match copy.inject_faults(&all_cases) {
        Ok(failing) if failing.is_empty() => {}
        Ok(failing) => fail("without a patch", &failing.join(", ")),
        Err(reason) => fail("without a patch", &reason.to_string()),
    }
    for patch in &patches {
        println!("\n{}\n    {}", patch.rule, patch.name);
        match detect(&copy, patch) {
            Ok(found) => println!("    detected by {found}"),
            Err(reason) => fail(&patch.name, &reason.to_string()),
        }
    }
    println!(
        "\n{} passed, {failed} failed, 0 skipped",
        patches.len() + 1 - failed
    );
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Returns which test or operations detect a patch, or why none does.
fn detect(copy: &TreeCopy, patch: &Patch) -> Result<String, Box<dyn Error>> {
    copy.reset()?;
    copy.apply(patch)?;
    if !patch.test.is_empty() {
        copy.test(patch)?;
        return Ok(patch.says.clone());
    }
    let failing = copy.inject_faults(&patch.cases)?;
    match patch.operations.iter().find(|name| !failing.contains(name)) {
        Some(missing) => {
            Err(format!("{missing} does not fail, only: {}", failing.join(", ")).into())
        }
        None => Ok(failing.join(", ")),
    }
}
