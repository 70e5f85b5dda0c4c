//! Findings: what was seen, whether it is a problem, and what to do.

use std::fmt::Display;

use os::OsError;
use serde::Serialize;

use crate::words::enclosed;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// As it should be.
    Ok,
    /// Works, but deserves a look.
    Warning,
    /// Something does not work, or is not safe.
    Problem,
    /// Could not be checked.
    Unchecked,
}

impl State {
    /// Returns the word for the state in the output.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
            Self::Unchecked => "unchecked",
        }
    }
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The subject, under which the finding is listed.
    pub check: &'static str,
    /// The severity.
    pub state: State,
    /// What was seen.
    pub seen: String,
    /// What to do; empty for [`State::Ok`].
    pub advice: String,
}

/// All findings, in the order of the checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The findings.
    pub findings: Vec<Finding>,
    /// Whether names such as `share-1` stand for the real ones.
    pub has_hidden_names: bool,
}

impl Report {
    /// Returns the number of findings with this state.
    pub fn count(&self, state: State) -> usize {
        self.findings
            .iter()
            .filter(|finding| finding.state == state)
            .count()
    }

    pub(crate) fn ok(&mut self, check: &'static str, seen: impl Into<String>) {
        self.add(check, State::Ok, seen.into(), String::new());
    }

    pub(crate) fn warning(
        &mut self,
        check: &'static str,
        seen: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.add(check, State::Warning, seen.into(), advice.into());
    }

    pub(crate) fn problem(
        &mut self,
        check: &'static str,
        seen: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.add(check, State::Problem, seen.into(), advice.into());
    }

    /// Adds that `what` could not be checked, because a reading failed.
    pub(crate) fn unchecked(
        &mut self,
        check: &'static str,
        what: impl Display,
        error: impl Display,
        code: Option<OsError>,
    ) {
        self.add(
            check,
            State::Unchecked,
            format!("{what} could not be checked: {}", enclosed(error)),
            advice_on(code),
        );
    }

    /// Adds that something was not looked at, although no reading failed.
    pub(crate) fn skipped(
        &mut self,
        check: &'static str,
        seen: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.add(check, State::Unchecked, seen.into(), advice.into());
    }

    fn add(&mut self, check: &'static str, state: State, seen: String, advice: String) {
        self.findings.push(Finding {
            check,
            state,
            seen,
            advice,
        });
    }
}

/// Advice that follows from the code of a reading that failed.
fn advice_on(code: Option<OsError>) -> String {
    match code {
        Some(OsError::ACCESS_DENIED | OsError::PRIVILEGE_NOT_HELD) => {
            "run csi-proxy doctor in an elevated command prompt".to_owned()
        }
        Some(OsError::REPARSE_POINT_ENCOUNTERED) => {
            "doctor does not follow links to servers: list the links on the path (dir /al), and \
             remove those that are not needed"
                .to_owned()
        }
        _ => "repeat the check later; if it still fails, report the code".to_owned(),
    }
}
