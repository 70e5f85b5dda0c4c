//! The tests share a [`daemon`], and the [`node`] of the server's tests.

mod connections;
mod daemon;
mod every_method;
mod examples;
#[path = "../../../server/tests/sockets/node.rs"]
mod node;
mod versions;
