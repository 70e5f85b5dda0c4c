//! Admission: limits on connections, calls, request bodies and unread responses, shared fairly
//! between connections.

pub(crate) mod connections;
pub(crate) mod limits;
pub(crate) mod request_body;
pub(crate) mod response_body;
