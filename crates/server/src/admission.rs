//! Admission control: which connections, calls and bodies the server takes, and the limits on each.

pub(crate) mod call_slots;
pub mod connections;
pub(crate) mod limits;
pub(crate) mod request_body;
pub(crate) mod response_body;
