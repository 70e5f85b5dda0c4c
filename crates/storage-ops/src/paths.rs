//! Paths: opening them below a working directory handle by handle or in one call, creating and
//! following links, removing trees.
//!
//! The text of a path is validated in `types/host_path.rs`; `working_directories` decides whether a
//! path is inside a working directory.

pub(crate) mod held_directory;
pub(crate) mod links;
pub(crate) mod on_node;
pub(crate) mod opening;
pub(crate) mod path_lookup;
pub(crate) mod refused_links;
pub(crate) mod remove_tree;
pub(crate) mod working_directories;
