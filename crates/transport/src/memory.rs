//! An endpoint within one process: what is served over it meets everything but the operating system.

use std::future::pending;
use std::io;

use tokio::io::{DuplexStream, duplex};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::address::Address;
use crate::listener::Listener;

/// How many octets may be on their way in each direction of a connection.
const ROOM: usize = 1 << 16;

/// The endpoint, under an address that nobody else can reach, and what connects to it.
pub fn endpoint(address: Address) -> (Dial, MemoryEndpoint) {
    let (dial, streams) = unbounded_channel();
    (Dial(dial), MemoryEndpoint { address, streams })
}

/// Where connections come from. When it is gone, no more come.
#[derive(Debug)]
pub struct Dial(UnboundedSender<DuplexStream>);

impl Dial {
    /// The client's end of a new connection; an error if nobody listens any more.
    pub fn connect(&self) -> io::Result<DuplexStream> {
        let (client, server) = duplex(ROOM);
        self.0.send(server).map_err(|_| io::ErrorKind::ConnectionRefused)?;
        Ok(client)
    }
}

/// Takes the connections that a [`Dial`] makes.
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
