//! Each check notices when a call is answered differently: a check that passes with any answer says nothing.
//!
//! Each check runs on the simulated node, and then again for each call of that run and each way to alter its outcome.

mod alteration;
mod bad_checks;
mod rerun;

use std::process::ExitCode;

use facts::{Check, Fact};
use libtest_mimic::{Arguments, Trial};

use alteration::Alteration;
use rerun::{Run, Step};

/// The most calls of a run that are altered. Those of a run with more calls are chosen at equal distances.
const MOST_CALLS: usize = 120;

/// Checks that poll, and so ignore how the calls before the last one fail. Each with the primitive that they poll.
const POLLED: &[(&str, &str)] = &[];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    // The altered runs panic, which is what they are for.
    std::panic::set_hook(Box::new(|_| {}));
    // The simulated node is the same on Windows.
    let facts = if std::env::consts::OS == "windows" { Vec::new() } else { facts::all() };
    let checked = facts.into_iter().filter(|fact| matches!(fact.check, Check::Test(_)));
    let trials = checked.map(|fact| Trial::test(fact.id, move || test(fact).map_err(Into::into)));
    let trials =
        trials.chain([Trial::test("a_check_that_ignores_an_outcome_is_reported", bad_checks::are_reported)]).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Runs a check with each alteration. Fails if the check misses one that it must notice.
fn test(fact: &Fact) -> Result<(), String> {
    let steps = match rerun::original(fact) {
        Run::Holds(steps) => steps,
        // tests/facts.rs reports it.
        Run::Skipped => return Ok(()),
        Run::Fails(why) => return Err(why),
    };
    let mut says_something = false;
    for (index, step) in steps.iter().enumerate().step_by(steps.len().div_ceil(MOST_CALLS).max(1)) {
        let notices = |alteration| rerun::notices(fact, index, alteration);
        if step.failed() {
            let polled = POLLED.contains(&(fact.id, &*step.record.call.primitive));
            if !polled && !notices(step.other_code()) {
                return Err(format!("the check passes if {step} fails with another code"));
            }
            says_something = true;
        } else {
            // Most checks end when any call fails, so the failure of a call before the last one means little.
            let is_last = index + 1 == steps.len();
            says_something = says_something
                || (is_last && !step.has_answer && notices(Alteration::Fail))
                || (step.has_answer && Alteration::OF_ANSWERS.into_iter().any(notices));
        }
    }
    if !says_something {
        let calls: Vec<String> = steps.iter().map(Step::to_string).collect();
        let calls = if calls.is_empty() { "no call".to_owned() } else { calls.join(", ") };
        return Err(format!("the check passes whatever the node answers to {calls}"));
    }
    Ok(())
}
