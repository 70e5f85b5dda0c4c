//! The daemon as a Windows program: over named pipes, on the node it is on, and as a service.
//!
//! What a system cannot do is found out by the test that needs it, and printed: a line
//! `skipped: <test>: <why>` stands for what was not tested.
#![cfg(windows)]

mod daemon;
mod files;
mod life;
mod node;
mod service;
mod service_control;
