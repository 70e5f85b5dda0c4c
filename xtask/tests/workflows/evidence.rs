//! What must hold in each run.

use std::fs;
use std::path::Path;

use crate::job::{self, Job};
use crate::machine::{self, Case, Outcome, Run};

const BOTH_FILES: [&str; 2] = ["selftest.json", "selftest.md"];

fn workflow() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.github/workflows/windows.yml");
    fs::read_to_string(file).expect("the workflow")
}

/// Returns whether a job runs at all.
fn is_run(job: &Job, released: bool) -> bool {
    match job.condition.as_deref() {
        None => true,
        Some("inputs.released") => released,
        Some(other) => panic!("the condition {other}"),
    }
}

fn position(job: &Job, is_it: impl Fn(&job::Step) -> bool) -> usize {
    job.steps.iter().position(is_it).unwrap_or(job.steps.len())
}

/// Returns each run of a job that the tests make: without a failure, with each step failing, and
/// with each step failing after the released programs could not be downloaded.
fn cases(job: &Job) -> Vec<Case> {
    let steps = 0..job.steps.len();
    let download = position(job, |step| step.is_action("download-artifact"));
    let mut cases = Vec::new();
    for released in [false, true]
        .into_iter()
        .filter(|&released| is_run(job, released))
    {
        let mut sets = vec![Vec::new()];
        sets.extend(steps.clone().map(|step| vec![step]));
        if released {
            sets.extend(steps.clone().map(|step| vec![download, step]));
        }
        cases.extend(sets.into_iter().map(|failing| Case {
            released,
            failing,
            ..Case::default()
        }));
    }
    cases
}

/// Returns what is wrong with a run.
fn faults(job: &Job, case: &Case, run: &Run) -> Vec<String> {
    let self_test = position(job, job::Step::is_self_test);
    let evidence = position(job, job::Step::is_evidence);
    let outcome = |index: usize| run.outcomes.get(index).copied().unwrap_or(Outcome::Skipped);
    let succeeded = |id: &str| {
        let index = position(job, |step| step.id.as_deref() == Some(id));
        outcome(index) == Outcome::Success
    };
    let mut faults = Vec::new();
    let has_program = succeeded("selftest-program");
    let download = position(job, |step| step.is_action("download-artifact"));
    let is_downloadable = case.released && !case.failing.contains(&download);
    let can_have_program = (succeeded("source") || is_downloadable)
        && !job.steps.iter().enumerate().any(|(index, step)| {
            case.failing.contains(&index) && step.id.as_deref() == Some("selftest-program")
        });
    if can_have_program && !(has_program && outcome(self_test) != Outcome::Skipped) {
        faults.push("the self-test does not run".to_owned());
    }
    if outcome(evidence) == Outcome::Skipped {
        faults.push("the report is not kept".to_owned());
    }
    let wrote = !case.failing.contains(&self_test)
        && outcome(self_test) != Outcome::Skipped
        && case.self_test != "writes-nothing";
    if wrote && !case.failing.contains(&evidence) && run.kept.iter().ne(BOTH_FILES) {
        faults.push(format!("only {:?} are kept", run.kept));
    }
    let is_released = succeeded("release");
    let sentence = if is_released {
        "The self-test is the released program."
    } else {
        "The self-test is built from 0123abc, and is not the released program."
    };
    if has_program && !run.summary.contains(sentence) {
        faults.push(format!("the summary does not say: {sentence}"));
    }
    let kind = if is_released {
        "released"
    } else {
        "built here"
    };
    let shows = position(job, |step| step.says("selftest.md"));
    if wrote && outcome(shows) == Outcome::Success && !case.self_test.starts_with('/') {
        let report = format!("report of the # program {kind}\n");
        if !run.summary.contains(&report) {
            faults.push(format!("the summary has no {report}"));
        }
    }
    for name in &run.without_product {
        faults.push(format!("runs without what it uses: {name}"));
    }
    // Without the source, only the self-test matters.
    let needlessly = run.needlessly_skipped.iter();
    for name in needlessly.filter(|_| succeeded("source")) {
        faults.push(format!("is skipped needlessly: {name}"));
    }
    faults
}

/// Returns the first faults of a job in these cases.
fn first_faults(job: &Job, cases: &[Case]) -> Option<(Case, Vec<String>)> {
    cases.iter().find_map(|case| {
        let faults = faults(job, case, &machine::run(job, case));
        (!faults.is_empty()).then(|| (case.clone(), faults))
    })
}

fn assert_no_faults(job: &Job, cases: &[Case]) {
    if let Some((case, faults)) = first_faults(job, cases) {
        let failing = case.failing.iter().map(|&index| &job.steps[index].name);
        panic!(
            "{}: {case:?}, failing {:?}: {faults:#?}",
            job.name,
            failing.collect::<Vec<_>>()
        );
    }
}

#[test]
fn the_evidence_survives_the_failure_of_each_step() {
    let jobs = job::jobs(&workflow());
    assert_eq!(jobs.len(), 2);
    for job in jobs {
        assert_no_faults(&job, &cases(&job));
    }
}

#[test]
fn the_evidence_survives_each_end_of_the_self_test() {
    for job in job::jobs(&workflow()) {
        for self_test in ["fails", "is-killed", "writes-nothing"] {
            let mut cases = cases(&job);
            let download = position(&job, |step| step.is_action("download-artifact"));
            cases.retain(|case| case.failing.iter().all(|&step| step == download));
            for case in &mut cases {
                self_test.clone_into(&mut case.self_test);
            }
            assert_no_faults(&job, &cases);
        }
    }
}

#[test]
fn the_built_self_test_takes_the_flags_of_the_job() {
    let test = std::env::current_exe().expect("a test program");
    let built = test.with_file_name("../csi-proxy-selftest");
    if !built.exists() {
        println!("skipped: the built self-test: csi-proxy-selftest is not built");
        return;
    }
    let case = Case {
        self_test: built.to_str().expect("a text").to_owned(),
        ..Case::default()
    };
    assert_no_faults(&job::jobs(&workflow())[0], &[case]);
}

#[test]
fn a_program_that_fails_everywhere_stops_only_the_steps_that_use_it() {
    for job in job::jobs(&workflow()) {
        for broken in ["rustup", "go", "git", "rustc", "go rustup"] {
            let mut cases = cases(&job);
            cases.retain(|case| case.failing.is_empty());
            for case in &mut cases {
                case.broken = broken;
            }
            assert_no_faults(&job, &cases);
        }
    }
}

/// Also a job that has reached its limit is cancelled.
#[test]
fn a_cancelled_job_keeps_the_report_and_begins_nothing_else() {
    for job in job::jobs(&workflow()) {
        let self_test = position(&job, job::Step::is_self_test);
        for (index, released) in
            (0..job.steps.len()).flat_map(|index| [(index, false), (index, true)])
        {
            if !is_run(&job, released) {
                continue;
            }
            let case = Case {
                released,
                cancelled: Some(index),
                ..Case::default()
            };
            let run = machine::run(&job, &case);
            assert_eq!(
                faults_of_cancelled(&job, self_test, index, &run),
                [""; 0],
                "{case:?}"
            );
        }
    }
}

fn faults_of_cancelled(job: &Job, self_test: usize, cancelled: usize, run: &Run) -> Vec<String> {
    let mut faults = Vec::new();
    if cancelled >= self_test && run.kept.iter().ne(BOTH_FILES) {
        faults.push(format!("only {:?} are kept", run.kept));
    }
    for (step, outcome) in job.steps.iter().zip(&run.outcomes).skip(cancelled + 1) {
        let keeps = step.is_action("upload-artifact") || step.says("GITHUB_STEP_SUMMARY");
        if *outcome != Outcome::Skipped && !keeps {
            faults.push(format!("begins after the cancellation: {}", step.name));
        }
    }
    faults
}

#[test]
fn the_self_test_is_first_and_leaves_time_for_its_report() {
    for job in job::jobs(&workflow()) {
        let self_test = position(&job, job::Step::is_self_test);
        assert!(job.steps[self_test + 1].is_evidence(), "{}", job.name);
        let before = &job.steps[..self_test];
        assert!(before[0].is_action("checkout"), "{}", job.name);
        for word in ["clippy", "xtask", "go build -C"] {
            assert!(!before.iter().any(|step| step.says(word)), "{word}");
        }
        let limits = job.steps[..=self_test + 1]
            .iter()
            .map(|step| step.minutes.expect("a limit"));
        assert!(limits.sum::<i64>() < job.minutes, "{}", job.name);
        // Longer than the 30 minutes after which the self-test ends itself.
        assert_eq!(job.steps[self_test].minutes, Some(45), "{}", job.name);
    }
}

#[test]
fn each_part_of_each_condition_is_needed() {
    let mut parts = 0;
    for job in job::jobs(&workflow()) {
        for (index, step) in job.steps.iter().enumerate() {
            let Some(condition) = &step.condition else {
                continue;
            };
            let text = condition
                .trim_start_matches("${{")
                .trim_end_matches("}}")
                .trim();
            let all: Vec<&str> = text.split(" && ").collect();
            for part in &all {
                let mut rest = all.clone();
                rest.retain(|other| other != part);
                if rest.is_empty() {
                    rest.push("success()");
                }
                let mut changed = job.clone();
                changed.steps[index].condition = Some(format!("${{{{ {} }}}}", rest.join(" && ")));
                parts += 1;
                assert!(
                    is_noticed(&changed, index, part),
                    "{}: {} without {part}",
                    job.name,
                    step.name
                );
            }
        }
    }
    assert!(parts > 50, "{parts} parts");
}

/// Returns whether the tests above notice that this step lacks this part of its condition.
fn is_noticed(job: &Job, index: usize, part: &str) -> bool {
    let mut cases = cases(job);
    // The failures that show most: of a step that the part names, the first one, the self-test.
    let shows = |case: &Case| {
        case.failing.iter().any(|&failing| {
            let step = &job.steps[failing];
            failing == 0
                || step.is_self_test()
                || step.id.as_deref().is_some_and(|id| part.contains(id))
        })
    };
    cases.retain(shows);
    if first_faults(job, &cases).is_some() {
        return true;
    }
    let self_test = position(job, job::Step::is_self_test);
    let released = is_run(job, true);
    [self_test, index - 1].into_iter().any(|cancelled| {
        let case = Case {
            released,
            cancelled: Some(cancelled),
            ..Case::default()
        };
        !faults_of_cancelled(job, self_test, cancelled, &machine::run(job, &case)).is_empty()
    })
}
