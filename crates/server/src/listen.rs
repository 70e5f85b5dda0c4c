//! Endpoints: what is served at which address.

pub(crate) mod endpoint;
