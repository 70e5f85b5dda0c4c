//! Named pipes, on which csi-proxy serves its clients: the listener, its security descriptor, and
//! the process that serves a pipe.
//!
//! A pipe is a byte stream in both directions and accepts clients of this machine only. Its path is
//! `\\.\pipe\name`; the crate `transport` normalizes the other spellings, and has the client.
//!
//! A [`Listener`] always has one instance more than it has returned. A client therefore always
//! finds the pipe, and no other process can take the name.

mod owner;
mod security;

use std::io;
use std::mem;
use std::sync::Arc;

use tokio::net::windows::named_pipe::{NamedPipeServer, PipeMode, ServerOptions};

pub use owner::{Owner, client_process, owner, owner_and_access};
pub use security::Security;

/// A named pipe that accepts clients.
#[derive(Debug)]
pub struct Listener {
    path: String,
    security: Arc<Security>,
    idle: NamedPipeServer,
}

impl Listener {
    /// Creates the pipe at `path` (`\\.\pipe\name`) for the clients that `security` admits.
    ///
    /// Must be called within a tokio runtime with I/O enabled. Errors: `PermissionDenied` if
    /// another process has the name ([`owner`] returns which).
    pub fn bind(path: &str, security: Arc<Security>) -> io::Result<Self> {
        let idle = create_instance(path, &security, true)?;
        Ok(Self {
            path: path.to_owned(),
            security,
            idle,
        })
    }

    /// Waits for a client and returns its connection. By then, another instance is ready for the
    /// next client.
    ///
    /// Errors: the next instance could not be created. The client stays connected, and the next
    /// call returns it if an instance can be created then.
    ///
    /// Dropping the future loses no client.
    pub async fn accept(&mut self) -> io::Result<NamedPipeServer> {
        self.idle.connect().await?;
        let next = create_instance(&self.path, &self.security, false)?;
        Ok(mem::replace(&mut self.idle, next))
    }

    /// Returns the path of the pipe.
    pub fn path(&self) -> &str {
        &self.path
    }
}

fn create_instance(path: &str, security: &Security, first: bool) -> io::Result<NamedPipeServer> {
    let mut attributes = security.attributes();
    let mut options = ServerOptions::new();
    options
        .pipe_mode(PipeMode::Byte)
        .reject_remote_clients(true)
        .first_pipe_instance(first);
    // SAFETY: the pointer is to a SECURITY_ATTRIBUTES, whose descriptor `security` owns; both
    // outlive the call.
    unsafe { options.create_with_security_attributes_raw(path, (&raw mut attributes).cast()) }
}
