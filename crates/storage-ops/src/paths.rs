//! Paths: opening them below a working directory handle by handle, creating and following links, removing trees.

pub(crate) mod links;
pub(crate) mod remove_tree;
pub(crate) mod working_directories;
