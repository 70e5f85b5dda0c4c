//! A system without named pipes.

use std::io;

use transport::address::Address;
use transport::listener::UnixEndpoint;

use super::Endpoints;
use crate::flags::Flags;
use crate::unsupported::WindowsOnly;

/// The type of the function that would open a named pipe. Its listener is an arbitrary implementation of the trait, of
/// which no value exists.
type Bind = fn(&Address) -> io::Result<UnixEndpoint>;

/// Returns an error: this system is not Windows.
pub fn named_pipes(_flags: &Flags) -> io::Result<Endpoints<Bind>> {
    Err(WindowsOnly.into())
}
