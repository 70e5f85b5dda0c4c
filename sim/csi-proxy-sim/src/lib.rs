//! The parts of `csi-proxy-sim`: the simulated node that its flags select, its endpoints, its control API with the commands
//! for it, and the demonstration.

pub mod backend;
pub mod command;
pub mod control;
pub mod control_api;
pub mod ctl;
pub mod demo;
pub mod endpoints;
pub mod flags;
pub mod reflection;
pub mod serve;
pub mod state_file;
