//! The client of a named pipe.

use std::io;
use std::time::Duration;

use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeClient};
use tokio::time::sleep;

use crate::address::{Address, Location};

/// The client's end of a connection.
pub type ClientStream = NamedPipeClient;

/// All instances of the pipe are connected. The server creates the next one at once, so the client
/// tries again.
const ERROR_PIPE_BUSY: i32 = 231;
const BUSY_BACKOFF: Duration = Duration::from_millis(10);

/// The server can neither identify nor impersonate the account of the client.
const SECURITY_ANONYMOUS: u32 = 0;

/// Connects to the endpoint at `address`. Waits while all instances of the pipe are connected; the
/// caller must bound the wait.
///
/// Errors: `NotFound` if no process serves the pipe.
pub async fn connect(address: &Address) -> io::Result<ClientStream> {
    if *address.location() != Location::NamedPipes {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("{address} is not a named pipe"),
        ));
    }
    loop {
        match ClientOptions::new()
            .security_qos_flags(SECURITY_ANONYMOUS)
            .open(address.path())
        {
            Err(error) if error.raw_os_error() == Some(ERROR_PIPE_BUSY) => {
                sleep(BUSY_BACKOFF).await;
            }
            opened => return opened,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::windows::named_pipe::ServerOptions;

    use super::*;

    fn pipe(name: &str) -> Address {
        Location::NamedPipes.address(&format!("{name}-{}", std::process::id()))
    }

    #[tokio::test]
    async fn bytes_cross_a_connection() {
        let address = pipe("csi-proxy-bytes");
        let mut server = ServerOptions::new().create(address.path()).unwrap();
        let mut client = connect(&address).await.unwrap();
        server.connect().await.unwrap();
        client.write_all(b"ping").await.unwrap();
        let mut bytes = [0; 4];
        server.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"ping");
    }

    #[tokio::test]
    async fn connecting_waits_for_a_busy_pipe() {
        let address = pipe("csi-proxy-busy");
        let _first = ServerOptions::new().create(address.path()).unwrap();
        let _taken = connect(&address).await.unwrap();
        let waiting = tokio::spawn({
            let address = address.clone();
            async move { connect(&address).await.map(drop) }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        let _second = ServerOptions::new().create(address.path()).unwrap();
        waiting.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_pipe_that_no_process_serves_is_not_found() {
        assert_eq!(
            connect(&pipe("csi-proxy-none")).await.unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }

    #[tokio::test]
    async fn a_socket_is_not_supported_on_windows() {
        let socket = Location::Directory("C:/run".into()).address("csi-proxy-disk-v1");
        assert_eq!(
            connect(&socket).await.unwrap_err().kind(),
            io::ErrorKind::Unsupported
        );
    }
}
