//! Tests of the program with a daemon on a simulated node, over Unix sockets.
#![cfg(unix)]

#[path = "simulated_node/mod.rs"]
mod tests;
