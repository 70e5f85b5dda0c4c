//! A running program: what it serves, its control API, and gRPC reflection.
#![cfg(unix)]

mod api;
mod clouds;
mod codes;
mod ctl;
mod daemon;
mod disks;
mod faults;
mod files;
mod layer;
mod life;
mod program;
mod reflection;
mod restarts;
mod rpc_faults;
mod state;
