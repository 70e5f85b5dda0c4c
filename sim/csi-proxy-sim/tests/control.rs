//! A running program: its control API, and gRPC reflection.
#![cfg(unix)]

#[path = "control/changes.rs"]
mod changes;
#[path = "control/container_files.rs"]
mod container_files;
#[path = "control/injected_faults.rs"]
mod injected_faults;
#[path = "control/program.rs"]
mod program;
#[path = "control/reflection.rs"]
mod reflection;
#[path = "control/restarts.rs"]
mod restarts;
#[path = "control/state.rs"]
mod state;
