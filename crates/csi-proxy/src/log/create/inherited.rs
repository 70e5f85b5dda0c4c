//! A log file has the access list that its folder gives to new files.

use std::fs::OpenOptions;

/// Changes nothing. A folder that is created for the service has an access list of its own.
pub(crate) fn for_owner_only(_options: &mut OpenOptions) {}
