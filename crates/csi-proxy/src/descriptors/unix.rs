//! The limit on the file descriptors of this process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit to `wanted` if it is lower, or as far as is allowed. Returns the limit, or `None` without one.
pub(crate) fn raise(wanted: usize) -> Option<usize> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let (current, wanted) = (current?, u64::try_from(wanted).unwrap_or(u64::MAX));
    let higher = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let limit = if higher > current && setrlimit(Resource::Nofile, Rlimit { current: Some(higher), maximum }).is_ok() {
        higher
    } else {
        current
    };
    Some(usize::try_from(limit).unwrap_or(usize::MAX))
}
