//! A log file has the access list that its folder gives to new files.

use std::fs::OpenOptions;

/// Changes nothing. `service install` sets the access list of a folder that it makes.
pub(crate) fn for_owner_only(_options: &mut OpenOptions) {}
