//! The server over real Unix sockets, in front of a simulated node.
#![cfg(unix)]

mod bad_input;
mod contract;
mod daemon;
mod draining;
mod dynamic;
mod every_rpc;
mod frames;
mod good_input;
mod limits;
mod transport;
