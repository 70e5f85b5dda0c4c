//! The version of Windows.

use crate::examination::Examination;

const CHECK: &str = "Windows";

/// The builds that are supported, oldest first. docs/windows.md has the same table.
pub(crate) const SUPPORTED: [(u32, &str); 3] = [
    (17763, "Windows Server 2019"),
    (20348, "Windows Server 2022"),
    (26100, "Windows Server 2025"),
];

pub(super) fn check(examination: &mut Examination<'_>) {
    let report = &mut examination.report;
    let build = match examination.system.build() {
        Ok(build) => build,
        Err(code) => return report.unchecked(CHECK, "the build of Windows", code, Some(code)),
    };
    let supported: Vec<_> = SUPPORTED
        .iter()
        .map(|(build, name)| format!("{name} ({build})"))
        .collect();
    match SUPPORTED.iter().find(|(known, _)| *known == build) {
        Some((_, name)) => report.ok(CHECK, format!("{name}, build {build}, is supported")),
        None if build < SUPPORTED[0].0 => report.problem(
            CHECK,
            format!("build {build} of Windows lacks calls that csi-proxy uses"),
            format!("use one of {}", supported.join(", ")),
        ),
        None => report.warning(
            CHECK,
            format!("csi-proxy is not made for build {build} of Windows"),
            format!("the supported builds are {}", supported.join(", ")),
        ),
    }
}
