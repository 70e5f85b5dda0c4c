//! Listeners, and client connections to them.
//!
//! The server's accept loop is written for any [`Listener`], which returns byte streams. On Unix
//! the listener is a socket ([`UnixEndpoint`], opened by [`bind`]). A named pipe needs a security
//! descriptor, so its listener is created with the other Windows calls in another crate and
//! implements the trait there.

use std::future::Future;
use std::io;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::address::Address;

/// An open endpoint that accepts connections.
pub trait Listener: Send + 'static {
    /// The byte stream of one connection.
    type Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    /// Waits for the next connection.
    ///
    /// An error concerns that connection or a temporary shortage, such as too many open files. The
    /// endpoint stays open, and the caller may try again. Dropping the future before it completes
    /// loses no connection.
    fn accept(&mut self) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// Returns the process at the other end of a connection, if the system returns it. Only for
    /// shares among clients: the process may have ended, and its id may belong to another one.
    fn client_process(_stream: &Self::Stream) -> Option<u32> {
        None
    }

    /// The address that clients connect to.
    fn address(&self) -> &Address;
}

#[cfg(unix)]
#[path = "listener/unix.rs"]
mod imp;

#[cfg(windows)]
#[path = "listener/windows.rs"]
mod imp;

pub use imp::*;
