//! An endpoint inside the process, for tests of everything above the operating system.

use std::future::pending;
use std::io;

use tokio::io::{DuplexStream, duplex};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::address::Address;
use crate::listener::Listener;

/// Maximum bytes in flight in each direction of a connection.
const CAPACITY: usize = 1 << 16;

/// Creates an endpoint, and the dialer that connects to it. Only the dialer can reach the address.
pub fn endpoint(address: Address) -> (Dialer, MemoryEndpoint) {
    let (dialer, streams) = unbounded_channel();
    (Dialer(dialer), MemoryEndpoint { address, streams })
}

/// Opens connections to a [`MemoryEndpoint`].
#[derive(Debug)]
pub struct Dialer(UnboundedSender<DuplexStream>);

impl Dialer {
    /// Opens a connection and returns the client's end. Fails if the endpoint was dropped.
    pub fn connect(&self) -> io::Result<DuplexStream> {
        let (client, server) = duplex(CAPACITY);
        self.0
            .send(server)
            .map_err(|_| io::ErrorKind::ConnectionRefused)?;
        Ok(client)
    }
}

/// Accepts the connections of its [`Dialer`].
#[derive(Debug)]
pub struct MemoryEndpoint {
    address: Address,
    streams: UnboundedReceiver<DuplexStream>,
}

impl Listener for MemoryEndpoint {
    type Stream = DuplexStream;

    async fn accept(&mut self) -> io::Result<DuplexStream> {
        match self.streams.recv().await {
            Some(stream) => Ok(stream),
            None => pending().await,
        }
    }

    fn address(&self) -> &Address {
        &self.address
    }
}
