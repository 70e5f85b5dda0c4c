//! The disks: offline ones, read-only ones, and those that cannot be read.

use crate::Examination;
use crate::checks::counted;

const CHECK: &str = "Disks";

pub(super) fn check(examination: &mut Examination<'_>) {
    let report = &mut examination.report;
    let (disks, unopened) = match examination.inspector.disks() {
        Ok(found) => found,
        Err(error) => return report.unchecked(CHECK, "the disks", &error, error.code()),
    };
    if let Some(code) = unopened {
        report.unchecked(CHECK, "a disk", code, Some(code));
    }
    let mut usable = 0;
    for disk in &disks {
        let number = disk.number;
        match &disk.attributes {
            Ok((false, false)) => usable += 1,
            Ok((is_offline, is_read_only)) => {
                let state = match (is_offline, is_read_only) {
                    (true, true) => "offline and read-only",
                    (true, false) => "offline",
                    _ => "read-only",
                };
                let is = if *is_offline {
                    "brings it online"
                } else {
                    "makes it writable"
                };
                report.warning(
                    CHECK,
                    format!("{number} is {state}"),
                    format!(
                        "a driver {is} when a pod needs it (SetDiskState); otherwise leave it as \
                         it is"
                    ),
                );
            }
            Err(error) => {
                report.unchecked(CHECK, format!("the state of {number}"), error, error.code());
            }
        }
        if let Err(error) = &disk.size {
            report.unchecked(CHECK, format!("the size of {number}"), error, error.code());
        }
    }
    report.ok(
        CHECK,
        format!("{} online and writable", counted(usable, "disk")),
    );
}
