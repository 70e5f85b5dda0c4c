//! The parts of `csi-proxy-sim`: the simulated node that its flags select, its endpoints, its
//! control API with the commands for it, and the demonstration.

pub mod backend;
pub mod command;
mod control;
pub mod ctl;
pub mod demo;
pub mod endpoints;
pub mod flags;
mod layer;
mod reflection;
pub use csi_proxy_simtest::control_api;

mod serve;
mod simulated_system;
mod state_file;
mod tonic_service;
