//! A log file that only its owner can read.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;

/// Makes a file that these options create readable and writable for its owner alone.
pub(crate) fn for_owner_only(options: &mut OpenOptions) {
    options.mode(0o600);
}
