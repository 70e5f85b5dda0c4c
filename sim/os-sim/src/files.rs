//! Simulates file systems: files, directories, links and the handles that are open on them.

mod file_information;
pub(crate) mod file_name;
pub(crate) mod file_system;
pub(crate) mod handles;
pub(crate) mod path_resolution;
pub(crate) mod reparse_point;

pub(crate) use file_information::{BAD_LENGTH, fill, fill_part};
