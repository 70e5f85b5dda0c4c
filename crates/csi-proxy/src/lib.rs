//! The daemon: its flags, its log, what it serves, and a demonstration of it.
//!
//! This crate is the only place that chooses what the storage operations run on, Windows or a simulated node.

#[path = "../../../sim/csi-proxy-sim/src/backend.rs"]
pub mod backend;
pub mod command;
pub mod demo;
pub mod endpoints;
pub mod flags;
pub mod log;
pub mod metrics_http;
pub mod serve;
pub mod service;
pub mod signals;
