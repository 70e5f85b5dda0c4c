//! A running program: what it serves, its control API, and gRPC reflection.
#![cfg(unix)]

#[path = "control/api.rs"]
mod api;
#[path = "control/ctl.rs"]
mod ctl;
#[path = "control/daemon.rs"]
mod daemon;
#[path = "control/disks.rs"]
mod disks;
#[path = "control/faults.rs"]
mod faults;
#[path = "control/files.rs"]
mod files;
#[path = "control/program.rs"]
mod program;
#[path = "control/reflection.rs"]
mod reflection;
#[path = "control/restarts.rs"]
mod restarts;
#[path = "control/state.rs"]
mod state;
