//! RPCs: from an HTTP/2 request to an operation, and from its result to a response.
//!
//! [`router`] finds the RPC that a path names, [`call`] handles what all calls have in common, and
//! [`handler`] decodes the request, runs the operation and encodes the response. A group's file has
//! the conversions of their messages.

pub(crate) mod boxed_service;
pub(crate) mod call;
pub(crate) mod convert;
pub(crate) mod disk;
pub(crate) mod endpoint_spec;
pub(crate) mod filesystem;
pub(crate) mod handler;
pub(crate) mod health;
pub(crate) mod iscsi;
pub(crate) mod long_calls;
pub(crate) mod message;
pub(crate) mod router;
pub(crate) mod smb;
pub(crate) mod system;
pub(crate) mod volume;
