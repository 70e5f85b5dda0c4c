//! Named pipes: how csi-proxy is reached on Windows.
//!
//! Paths may be written `\\.\pipe\name` or, as the clients in the field have it, `\\.\\pipe\\name`; both mean the
//! same pipe. Bytes flow both ways, and only from this machine.
//!
//! A [`Listener`] never lets its name go: it always has one instance more than it has handed out, so no client is
//! told that there is no such pipe and nobody else can take the name.

mod owner;
mod security;

use std::io;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeClient, NamedPipeServer, PipeMode, ServerOptions};
use tokio::time::{Instant, sleep_until};
use windows_sys::Win32::Foundation::ERROR_PIPE_BUSY;
use windows_sys::Win32::Storage::FileSystem::SECURITY_ANONYMOUS;

pub use owner::{Owner, owner};
pub use security::Security;

/// A pipe that waits for clients.
#[derive(Debug)]
pub struct Listener {
    path: String,
    security: Arc<Security>,
    idle: NamedPipeServer,
}

impl Listener {
    /// Takes the name `path` and waits there for clients that `security` lets in.
    ///
    /// Errors: `PermissionDenied` if the name is taken ([`owner`] says by whom). Must be called in a runtime with
    /// I/O.
    pub fn bind(path: &str, security: Arc<Security>) -> io::Result<Self> {
        let path = normalised(path)?;
        let idle = instance(&path, &security, true)?;
        Ok(Self { path, security, idle })
    }

    /// The next client's connection. Another instance waits already when this returns.
    ///
    /// Errors: no further instance could be made. The client stays connected, and the next call is its next chance.
    ///
    /// Nothing is lost if the future is dropped.
    pub async fn accept(&mut self) -> io::Result<NamedPipeServer> {
        self.idle.connect().await?;
        let next = instance(&self.path, &self.security, false)?;
        Ok(mem::replace(&mut self.idle, next))
    }

    /// The path, in its usual spelling.
    pub fn path(&self) -> &str {
        &self.path
    }
}

fn instance(path: &str, security: &Security, first: bool) -> io::Result<NamedPipeServer> {
    let mut attributes = security.attributes();
    let mut options = ServerOptions::new();
    options.pipe_mode(PipeMode::Byte).reject_remote_clients(true).first_pipe_instance(first);
    // SAFETY: the pointer is to a SECURITY_ATTRIBUTES whose descriptor `security` owns; both outlive the call.
    unsafe { options.create_with_security_attributes_raw(path, (&raw mut attributes).cast()) }
}

/// Connects to the pipe at `path`, waiting up to `patience` while all its instances are busy.
///
/// The server learns nothing about the account, and cannot act in its name: by what the pipe lets in it knows all it
/// needs to. Errors: `NotFound` if nobody serves the name; `ERROR_PIPE_BUSY` (231) when patience ends.
pub async fn connect(path: &str, patience: Duration) -> io::Result<NamedPipeClient> {
    const PAUSE: Duration = Duration::from_millis(10);
    let path = normalised(path)?;
    let give_up = Instant::now() + patience;
    loop {
        match ClientOptions::new().security_qos_flags(SECURITY_ANONYMOUS).open(&path) {
            Err(error) if is_busy(&error) && Instant::now() < give_up => {
                sleep_until(give_up.min(Instant::now() + PAUSE)).await;
            }
            result => return result,
        }
    }
}

fn is_busy(error: &io::Error) -> bool {
    error.raw_os_error() == Some(ERROR_PIPE_BUSY.cast_signed())
}

/// `\\.\pipe\name`, with single backslashes after the first two.
fn normalised(path: &str) -> io::Result<String> {
    let invalid = || io::Error::new(io::ErrorKind::InvalidInput, format!(r"not a path of a named pipe: {path}"));
    let rest = path.strip_prefix(r"\\").ok_or_else(invalid)?;
    let mut pieces = rest.split('\\').filter(|piece| !piece.is_empty());
    let local = pieces.next() == Some(".") && pieces.next().is_some_and(|piece| piece.eq_ignore_ascii_case("pipe"));
    match (local, pieces.next(), pieces.next()) {
        (true, Some(name), None) => Ok(format!(r"\\.\pipe\{name}")),
        _ => Err(invalid()),
    }
}

#[cfg(test)]
mod tests {
    use super::normalised;

    #[test]
    fn both_spellings_name_the_same_pipe() {
        for path in [r"\\.\pipe\csi-proxy-disk-v1", r"\\.\\pipe\\csi-proxy-disk-v1", r"\\.\PIPE\csi-proxy-disk-v1"] {
            assert_eq!(normalised(path).unwrap(), r"\\.\pipe\csi-proxy-disk-v1");
        }
    }

    #[test]
    fn only_a_pipe_of_this_machine_is_one() {
        for path in [r"\\.\pipe\", r"\\.\pipe", r"\\host\pipe\x", r"C:\pipe\x", r"\\.\pipe\a\b", r"\.\pipe\x", ""] {
            assert_eq!(normalised(path).unwrap_err().kind(), std::io::ErrorKind::InvalidInput, "{path}");
        }
    }
}
