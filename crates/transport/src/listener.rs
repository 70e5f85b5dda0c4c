//! Listeners: taking connections at an address.
//!
//! An accept loop is written once, over [`Listener`]; what it hands out is a byte stream and nothing more. On Unix
//! the endpoint is a socket ([`UnixEndpoint`], made by [`bind`]). Creating a named pipe needs a security descriptor,
//! so the pipe's listener is made beside the other Windows calls and only implements the trait.

use std::future::Future;
use std::io;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::address::Address;

/// An endpoint that clients connect to.
pub trait Listener: Send + 'static {
    /// One connection.
    type Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    /// Waits for the next connection.
    ///
    /// An error concerns that one connection or a passing shortage, such as too many open files: the endpoint stays
    /// open and may be asked again. A call dropped before it is ready loses no connection.
    fn accept(&mut self) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// Where clients find this endpoint.
    fn address(&self) -> &Address;
}

#[cfg(unix)]
#[path = "listener/unix.rs"]
mod imp;

#[cfg(windows)]
#[path = "listener/windows.rs"]
mod imp;

pub use imp::*;
