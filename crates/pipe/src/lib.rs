//! What both ends of a csi-proxy connection need.
//!
//! - [`address`]: where the endpoint of a group-version lives;
//! - [`listener`]: accepting and making connections there;
//! - [`memory`]: an endpoint within the process instead;
//! - [`authority`]: the filter that lets an HTTP/2 server answer clients which name a pipe in `:authority`;
//! - [`connections`]: which connections are open, and which of them have yet to say anything.
//!
//! Nothing in here knows what travels over a connection beyond the framing of HTTP/2: services and messages
//! are the server's and the client's.

pub mod address;
pub mod authority;
pub mod connections;
pub mod listener;
pub mod memory;
