//! The pipes: whether they are served, by whom, and who may open them.

use std::collections::BTreeMap;

use os::OsError;

use crate::access::{is_ordinary, name_of, who_may_open};
use crate::examination::Examination;
use crate::redaction::{NameKind, Names};
use crate::system::Pipe;
use crate::words::{counted, listed, quoted};

const CHECK: &str = "Pipes";

const UNKNOWN_PROGRAM: &str = "a program that Windows does not name";

/// Returns the program that serves the pipes, if it is known.
pub(super) fn check(examination: &mut Examination<'_>) -> Option<String> {
    let (mut served, mut missing) = (Vec::new(), Vec::new());
    for name in &examination.settings.pipes {
        match examination.system.pipe(name) {
            Ok(pipe) => served.push((name.as_str(), pipe)),
            Err(OsError::FILE_NOT_FOUND) => missing.push(name.as_str()),
            Err(code) => {
                examination
                    .report
                    .unchecked(CHECK, format!("pipe {name}"), code, Some(code));
            }
        }
    }
    report_served(examination, &served, &missing);
    if let Some(groups) = &examination.settings.excluded_groups {
        let seen = format!(
            "excluded by -api-groups: {groups}; drivers that need these groups cannot connect"
        );
        examination.report.ok(CHECK, seen);
        report_excluded(examination);
    }
    report_access(examination, &served);
    served.into_iter().find_map(|(_, pipe)| pipe.program)
}

fn report_served(examination: &mut Examination<'_>, served: &[(&str, Pipe)], missing: &[&str]) {
    let Examination {
        settings, report, ..
    } = examination;
    let mut servers: BTreeMap<(u32, Option<&str>), Vec<&str>> = BTreeMap::new();
    for (name, pipe) in served {
        servers
            .entry((pipe.process, pipe.program.as_deref()))
            .or_default()
            .push(name);
    }
    for ((process, program), names) in &servers {
        let program = program.map_or_else(|| UNKNOWN_PROGRAM.to_owned(), quoted);
        let seen = format!(
            "{} served by process {process}, {program}",
            counted(names.len(), "pipe")
        );
        if servers.len() == 1 {
            report.ok(CHECK, seen);
        } else {
            report.problem(
                CHECK,
                format!("{seen}: {}", listed(names)),
                "stop all but one of these programs; a driver reaches one of them by chance",
            );
        }
    }
    if missing.is_empty() {
        return;
    }
    let seen = format!(
        "{} not served: {}",
        counted(missing.len(), "pipe"),
        listed(missing)
    );
    if served.is_empty() {
        let log = "the log of csi-proxy's pod has the reason (kubectl logs)";
        let advice = if settings.is_in_container {
            log
        } else {
            "start csi-proxy: sc.exe start csiproxy"
        };
        report.problem(CHECK, seen, advice);
    } else {
        report.warning(
            CHECK,
            seen,
            "drivers of these versions cannot connect; the program that serves the other pipes may \
             be old",
        );
    }
}

/// Reports pipes of excluded groups that another program serves. That program receives the requests
/// and secrets of drivers, and does not share the daemon's locks.
fn report_excluded(examination: &mut Examination<'_>) {
    for name in &examination.settings.excluded_pipes {
        match examination.system.pipe(name) {
            Ok(Pipe {
                process, program, ..
            }) => {
                let program = program
                    .as_deref()
                    .map_or_else(|| UNKNOWN_PROGRAM.to_owned(), quoted);
                let seen = format!(
                    "{name}, which -api-groups excludes, is served by process {process}, {program}"
                );
                let remedy = "stop that program; then remove -api-groups if csi-proxy should serve \
                              the group";
                examination.report.problem(CHECK, seen, remedy);
            }
            Err(OsError::FILE_NOT_FOUND) => {}
            Err(code) => {
                examination
                    .report
                    .unchecked(CHECK, format!("pipe {name}"), code, Some(code));
            }
        }
    }
}

fn report_access(examination: &mut Examination<'_>, served: &[(&str, Pipe)]) {
    let Examination {
        settings,
        names,
        report,
        ..
    } = examination;
    let mut lists: BTreeMap<Vec<String>, Vec<&str>> = BTreeMap::new();
    for (name, pipe) in served {
        match &pipe.access {
            Ok(access) => lists.entry(who_may_open(access)).or_default().push(name),
            Err(code) => report.unchecked(CHECK, format!("who may open {name}"), code, Some(*code)),
        }
    }
    for (accounts, pipes) in lists {
        let words = words(&accounts, names);
        let of = if pipes.len() == served.len() {
            "the pipes".to_owned()
        } else {
            listed(&pipes)
        };
        let are_given = accounts
            .iter()
            .all(|account| settings.accounts.contains(account));
        if accounts.is_empty() {
            report.ok(
                CHECK,
                format!("only LocalSystem and Administrators may open {of}"),
            );
        } else if accounts.iter().any(|account| is_ordinary(account)) {
            report.problem(
                CHECK,
                format!(
                    "{words} may open {of}, and can then do everything on the node that csi-proxy \
                     can"
                ),
                "remove the account from -pipe-sid; if csi-proxy does not serve the pipes, stop \
                 the program that does",
            );
        } else if are_given {
            report.ok(
                CHECK,
                format!("LocalSystem, Administrators and {words} (-pipe-sid) may open {of}"),
            );
        } else {
            report.warning(
                CHECK,
                format!("{words} may open {of}, but is not named with -pipe-sid"),
                "find out which program serves the pipes and why it admits this account",
            );
        }
    }
}

/// Returns the names of accounts: the English name of a well-known account, or else a redacted
/// name.
pub(super) fn words(accounts: &[String], names: &Names) -> String {
    let word = |sid: &String| {
        name_of(sid).map_or_else(|| quoted(&names.of(NameKind::Account, sid)), str::to_owned)
    };
    accounts.iter().map(word).collect::<Vec<_>>().join(", ")
}
