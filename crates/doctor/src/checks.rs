//! The checks, one file for each subject.

mod disks;
mod folders;
mod leftovers;
mod pipes;
mod service;
mod windows;
mod working_directories;

use crate::examination::Examination;

/// Makes all checks, in the order of the output.
pub(crate) fn all(examination: &mut Examination<'_>) {
    windows::check(examination);
    let served_by = pipes::check(examination);
    let registered = service::check(examination, served_by.as_deref());
    folders::check(examination, [registered, served_by]);
    working_directories::check(examination);
    let iscsi_runs = service::check_prerequisites(examination);
    let volumes = disks::check(examination);
    leftovers::check(examination, iscsi_runs, &volumes);
}
