//! The daemon as a Windows program: in a console, over named pipes, on the node that it runs on,
//! and as a service.
//!
//! A test that needs a feature that this system lacks prints `skipped: <test>: <why>` for the part
//! that it skips.
#![cfg(windows)]

mod console;
mod daemon;
mod doctor;
mod files;
mod log;
mod node;
mod program;
mod service;
mod service_control;
#[path = "../../../os-win32/tests/win32/skip.rs"]
mod skip;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_csi-proxy");
