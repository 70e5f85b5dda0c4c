//! The server over real Unix sockets, in front of a simulated node.
#![cfg(unix)]

mod sockets;
