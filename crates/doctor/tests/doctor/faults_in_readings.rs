//! Nothing is changed, and a reading that fails ends nothing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use doctor::{Pipe, Report, SeenDisk, ServiceRegistration, State, System, compare, examine};
use faults::{Fault, FaultAction, Probed, Trace, When};
use os::{Os, OsError, OsResult};

use crate::setup::Patient;

/// A code that no part of the program knows.
const UNKNOWN: OsError = OsError(4711);

fn patient() -> Patient {
    let patient = Patient::healthy();
    patient.map(r"\\server\share");
    patient
}

/// Runs both examinations with `probe` between them and the node.
fn run(
    patient: &Patient,
    probe: impl faults::Probe + 'static,
) -> (Report, doctor::ProviderComparison) {
    let os: Arc<dyn Os> = Arc::new(Probed::new(patient.sim.process(), probe));
    let report = examine(&os, &patient.system, &patient.settings);
    (report, compare(&os, &patient.settings.node, false))
}

#[test]
fn no_primitive_that_changes_the_node_is_called() {
    let patient = patient();
    let before = patient.sim.snapshot();
    let trace = Arc::new(Trace::recording());
    run(&patient, Arc::clone(&trace));
    let records = trace.take();
    assert!(records.len() > 100, "{}", records.len());
    let changes: BTreeSet<_> = records
        .iter()
        .filter(|record| record.call.mutates)
        .map(|record| &record.call.primitive)
        .collect();
    assert!(changes.is_empty(), "{changes:?}");
    assert_eq!(patient.sim.snapshot(), before);
    assert_eq!(patient.sim.open_handles(), 0);
}

#[test]
fn whatever_call_fails_the_examination_ends_and_says_what_could_not_be_checked() {
    let patient = patient();
    let trace = Arc::new(Trace::recording());
    let (healthy, same) = run(&patient, Arc::clone(&trace));
    let calls = trace.take().len() as u64;
    for code in [
        UNKNOWN,
        OsError::ACCESS_DENIED,
        OsError::FILE_NOT_FOUND,
        OsError::MORE_DATA,
        OsError::WAIT_TIMEOUT,
    ] {
        for number in 0..calls {
            let fault = Arc::new(Fault::at(number, When::Before, FaultAction::Fail(code)));
            let (report, comparison) = run(&patient, Arc::clone(&fault));
            let call = fault.last_hit();
            if code == UNKNOWN {
                let says = |text: String| text.contains("4711");
                let is_said = says(report.to_string()) || says(comparison.to_string());
                // A second way to the same result, such as opening a disk with fewer rights.
                assert!(
                    is_said || (report == healthy && comparison == same),
                    "{call:?}\n{report}"
                );
            }
            // What does not exist is a problem; any other failure is not taken for one.
            if code != OsError::FILE_NOT_FOUND {
                assert_eq!(
                    report.count(State::Problem),
                    0,
                    "{code:?} {call:?}\n{report}"
                );
            }
        }
    }
}

#[test]
fn if_every_call_fails_everything_is_reported_as_unchecked() {
    let patient = patient();
    let (report, comparison) = run(
        &patient,
        Fault::each(|_| true, When::Before, FaultAction::Fail(UNKNOWN)),
    );
    assert!(report.count(State::Unchecked) >= 6, "{report}");
    assert!(
        comparison
            .rows
            .iter()
            .all(|row| row.agreement == doctor::Agreement::Unknown),
        "{comparison}"
    );
    assert!(!comparison.rows.is_empty());
    for number in [0, 20, 60] {
        run(&patient, Fault::at(number, When::After, FaultAction::Die));
    }
}

/// A system of which one call fails.
struct Failing<'a> {
    inner: &'a dyn System,
    calls: AtomicUsize,
    fails: usize,
}

impl Failing<'_> {
    fn call<T>(&self, call: impl FnOnce(&dyn System) -> OsResult<T>) -> OsResult<T> {
        if self.calls.fetch_add(1, Ordering::Relaxed) == self.fails {
            Err(UNKNOWN)
        } else {
            call(self.inner)
        }
    }
}

impl System for Failing<'_> {
    fn build(&self) -> OsResult<u32> {
        self.call(|inner| inner.build())
    }

    fn pipe(&self, name: &str) -> OsResult<Pipe> {
        self.call(|inner| inner.pipe(name))
    }

    fn service(&self, name: &str) -> OsResult<ServiceRegistration> {
        self.call(|inner| inner.service(name))
    }
}

#[test]
fn each_reading_of_the_system_that_fails_is_one_finding_with_its_code() {
    let patient = patient();
    for fails in 0.. {
        let system = Failing {
            inner: &patient.system,
            calls: AtomicUsize::new(0),
            fails,
        };
        let report = examine(&patient.os(), &system, &patient.settings);
        if system.calls.into_inner() <= fails {
            assert!(fails > 3);
            return;
        }
        let unchecked = report
            .findings
            .iter()
            .filter(|finding| finding.state == State::Unchecked);
        let seen: Vec<_> = unchecked.map(|finding| &finding.seen).collect();
        assert!(
            seen.len() == 1 && seen[0].contains("4711"),
            "call {fails}: {seen:?}"
        );
        assert_eq!(
            report.count(State::Problem) + report.count(State::Warning),
            0,
            "call {fails}: {report}"
        );
    }
}

#[test]
fn a_disk_that_does_not_answer_is_named_by_what_the_daemon_has_last_seen() {
    let mut patient = patient();
    let seen = |disk, serial_number: &str| SeenDisk {
        disk,
        serial_number: serial_number.to_owned(),
        seconds_ago: 300.0,
    };
    patient.settings.seen_disks = vec![seen(0, "a"), seen(1, "disk-serial")];
    patient.settings.show_names = true;
    let sim = patient.sim.clone();
    let on_disk =
        move |call: &faults::Call| call.primitive == "open" && sim.is_on_disk(&call.object, 1);
    let fails = FaultAction::Fail(OsError::SEM_TIMEOUT);
    let (report, _) = run(&patient, Fault::each(on_disk, When::Before, fails));
    let text = "disk 1 (seen 300 s ago as disk-serial) could not be checked: ";
    assert!(
        report
            .findings
            .iter()
            .any(|finding| finding.seen.starts_with(text)),
        "{report}"
    );
}
