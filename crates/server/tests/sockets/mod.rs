//! The tests share a [`daemon`] with its [`channels`], a client that writes HTTP/2 [`frames`]
//! itself ([`unusual_calls`] too), and requests ([`good_input`]).

mod bad_input;
mod channels;
mod contract;
mod daemon;
mod draining;
mod every_rpc;
mod frames;
mod good_input;
mod hung_reads;
mod limits;
mod long_calls;
mod node;
mod status;
mod transport;
mod unusual_calls;
