//! Listening: endpoints, the acceptor of each, and the task of each connection.

pub(crate) mod acceptor;
pub(crate) mod connection_task;
pub(crate) mod endpoint;
