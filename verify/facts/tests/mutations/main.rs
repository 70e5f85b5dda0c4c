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

/// Runs a check with each alteration. Fails if the check misses one that it must notice:
///
/// - each failure of a call, if it becomes another failure;
/// - some answer, or that the last call succeeds, unless a call fails;
/// - some success, if a call succeeds.
fn test(fact: &Fact) -> Result<(), String> {
    let steps = match rerun::original(fact) {
        Run::Holds(steps) => steps,
        // tests/facts.rs reports it.
        Run::Skipped => return Ok(()),
        Run::Fails(why) => return Err(why),
    };
    let altered = || steps.iter().enumerate().step_by(steps.len().div_ceil(MOST_CALLS).max(1));
    for (index, step) in altered().filter(|(_, step)| step.failed()) {
        let is_polled = POLLED.contains(&(fact.id, &*step.record.call.primitive));
        if !is_polled && !rerun::notices(fact, index, step.other_code()) {
            return Err(format!("the check passes if {step} fails with another code"));
        }
    }
    let successes = || altered().filter(|(_, step)| !step.failed());
    let notices_answer = || {
        successes().any(|(index, step)| {
            // Most checks end when any call fails, so the failure of a call before the last one means little.
            let is_last = index + 1 == steps.len();
            (is_last && !step.has_answer && rerun::notices(fact, index, Alteration::Fail))
                || (step.has_answer && Alteration::OF_ANSWERS.into_iter().any(|how| rerun::notices(fact, index, how)))
        })
    };
    let notices_success = || successes().any(|(index, _)| rerun::notices(fact, index, Alteration::Fail));
    let any_fails = steps.iter().any(Step::failed);
    let is_sensitive = if any_fails { successes().next().is_none() || notices_success() } else { notices_answer() };
    if is_sensitive {
        return Ok(());
    }
    let calls: Vec<String> = steps.iter().map(Step::to_string).collect();
    let calls = if calls.is_empty() { "no call".to_owned() } else { calls.join(", ") };
    Err(format!("the check passes whatever the node answers to {calls}"))
}
