//! Whether tests detect a broken rule. Each patch beside this program breaks one rule in a copy of this tree, in which a
//! test must then fail. `cargo xtask sensitivity` runs this program.
//!
//! A patch begins with a sentence that states which rule it breaks. Its lines `Case:` select the cases of `prove` to run,
//! and its lines `Fails:` name operations that must be among those that fail. Or its line `Test:` has the arguments of the
//! `cargo test` that must fail, and its line `Says:` a part of the output. A patch that does not apply is a failure.

use std::error::Error;
use std::process::ExitCode;

mod patch;
mod tree_copy;

use patch::Patch;
use tree_copy::TreeCopy;

/// Runs the simulation tests without a patch, where they must pass, and with each patch, where they must fail.
fn main() -> Result<ExitCode, Box<dyn Error>> {
    let copy = TreeCopy::create()?;
    let patches = patch::all()?;
    let all_cases: Vec<&str> = patches.iter().flat_map(|patch| &patch.cases).map(String::as_str).collect();
    let mut failed = 0;
    let mut fail = |name: &str, reason: &str| {
        failed += 1;
        println!("FAILED {name}: {reason}");
    };
    match copy.test(&all_cases)? {
        Ok(findings) if findings.failures == 0 => {}
        Ok(findings) => fail("without a patch", &findings.describe()),
        Err(reason) => fail("without a patch", &reason),
    }
    for patch in &patches {
        copy.reset()?;
        println!("\n{}\n    {}", patch.rule, patch.name);
        match detect(&copy, patch)? {
            Ok(text) => println!("    {text}"),
            Err(reason) => fail(&patch.name, &reason),
        }
    }
    println!("\n{} passed, {failed} failed, 0 skipped", patches.len() + 1 - failed);
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns what the tests detect with a patch, or why they do not detect it.
fn detect(copy: &TreeCopy, patch: &Patch) -> Result<Result<String, String>, Box<dyn Error>> {
    if !copy.apply(patch)? {
        return Ok(Err("it does not apply".to_owned()));
    }
    if !patch.test.is_empty() {
        return Ok(copy.run_test(patch)?);
    }
    let cases: Vec<&str> = patch.cases.iter().map(String::as_str).collect();
    let findings = match copy.test(&cases)? {
        Ok(findings) if findings.failures == 0 => return Ok(Err("no test fails".to_owned())),
        Ok(findings) => findings,
        Err(reason) => return Ok(Err(reason)),
    };
    Ok(match patch.operations.iter().find(|name| !findings.operations.contains(*name)) {
        Some(missing) => Err(format!("{missing} does not fail, but {}", findings.describe())),
        None => Ok(findings.describe()),
    })
}
