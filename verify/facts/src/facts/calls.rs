//! Calls that the checks of several subjects make.

use os::{FileInfo, Handle, OsResult};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Reads information of a fixed size about a file.
pub(crate) fn query<T>(handle: &dyn Handle, class: FileInfo) -> OsResult<T>
where
    T: FromBytes + IntoBytes + KnownLayout + Immutable,
{
    let mut information = T::new_zeroed();
    handle.query(class, information.as_mut_bytes()).map(|()| information)
}
