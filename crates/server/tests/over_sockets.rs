//! Tests of the server over real Unix sockets, on a simulated node.
#![cfg(unix)]

mod sockets;
