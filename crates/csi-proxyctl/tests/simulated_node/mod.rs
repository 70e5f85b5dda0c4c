//! The tests use the daemon of the client's tests, and the node of the server's tests.

mod calls;
mod completions;
#[expect(dead_code, reason = "the tests of the client use all of it")]
#[path = "../../../client/tests/simulated_node/daemon.rs"]
mod daemon;
mod exit_codes;
mod get;
mod help;
mod last_seen;
#[path = "../../../server/tests/sockets/node.rs"]
mod node;
mod program;
mod secrets;
mod top;
mod watching;
