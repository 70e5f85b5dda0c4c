//! The daemon as a Windows program: in a console, over named pipes, on the node that it runs on, and as a service.
//!
//! A test that needs what this system cannot do prints `skipped: <test>: <why>` for what it did not test.
#![cfg(windows)]

mod console;
mod daemon;
mod files;
mod node;
mod service;
mod service_control;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_csi-proxy");
