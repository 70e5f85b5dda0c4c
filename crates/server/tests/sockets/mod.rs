//! The tests share a [`daemon`], a client that writes HTTP/2 [`frames`] itself, and requests ([`good_input`]).

mod bad_input;
mod contract;
mod daemon;
mod draining;
mod every_rpc;
mod frames;
mod good_input;
mod hung_reads;
mod limits;
mod transport;
