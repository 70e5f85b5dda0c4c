//! A running program: what it serves, its control API, and gRPC reflection.
#![cfg(unix)]

mod api;
mod ctl;
mod daemon;
mod disks;
mod faults;
mod files;
mod program;
mod reflection;
mod restarts;
mod state;
