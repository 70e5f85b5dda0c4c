//! The sockets that the plugin serves.

use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::{fs, thread};

use socket2::{Domain, SockAddr, Socket, Type};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};

/// Serves an address such as `unix://C:\csi\csi.sock`, and returns the connections.
///
/// Windows has Unix sockets from Windows Server 2019 on, but Tokio supports them on Unix only.
/// Therefore a thread accepts the connections, and Tokio reads and writes them like those of any
/// other socket.
pub(crate) fn listen(
    endpoint: &str,
) -> io::Result<impl Stream<Item = io::Result<TcpStream>> + use<>> {
    let socket = match endpoint.split_once("://") {
        Some(("unix", path)) => listen_at(path)?,
        Some(("tcp", address)) => Socket::from(TcpListener::bind(address)?),
        _ => {
            return Err(io::Error::other(format!(
                "{endpoint} is neither unix://PATH nor tcp://HOST:PORT"
            )));
        }
    };
    let (sender, connections) = mpsc::channel(16);
    thread::spawn(move || while sender.blocking_send(socket.accept()).is_ok() {});
    Ok(ReceiverStream::new(connections).map(|accepted| {
        let (connection, _) = accepted?;
        connection.set_nonblocking(true)?;
        TcpStream::from_std(connection.into())
    }))
}

fn listen_at(path: &str) -> io::Result<Socket> {
    // A plugin that was killed leaves its socket behind.
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    socket.listen(128)?;
    Ok(socket)
}
