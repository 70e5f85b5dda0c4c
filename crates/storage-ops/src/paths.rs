//! Handle-relative access to paths: resolving a path below a working directory and removing directory trees.

pub(crate) mod links;
pub(crate) mod remove_tree;
pub(crate) mod working_directories;
