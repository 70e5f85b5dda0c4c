//! The parts of `csi-proxy-sim`: the simulated node that its flags select, its endpoints, and the demonstration.

pub mod backend;
pub mod command;
pub mod demo;
pub mod endpoints;
pub mod flags;
