//! Admission: limits on connections, calls, request bodies and unread responses, shared fairly
//! between connections.

pub(crate) mod connections;
pub(crate) mod limits;
pub(crate) mod message_memory;
pub(crate) mod response_body;
