//! Windows has no limit on handles that connections could reach.

/// Returns that there is no limit.
pub(crate) fn raise(_wanted: usize) -> Option<usize> {
    None
}
