//! What every test here has: a [`daemon`], ways to call it, and what it is asked.

mod bad_input;
mod contract;
mod daemon;
mod draining;
mod every_rpc;
mod frames;
mod good_input;
mod limits;
mod transport;
