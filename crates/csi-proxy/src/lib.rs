//! What `csi-proxy` and `csi-proxy-sim` share: flags, log, metrics, serving and the Windows service.
//!
//! This crate serves any [`Backend`](backend::Backend) on any endpoints. Which ones is the programs' choice: `csi-proxy`
//! serves Windows on named pipes, `csi-proxy-sim` serves a simulated node.

pub mod backend;
pub mod command;
mod descriptors;
pub mod dll_search;
pub mod doctor;
pub mod endpoints;
pub mod flags;
pub mod http_server;
pub mod log;
mod own_process;
pub mod pages;
pub mod program;
pub mod serve;
pub mod service;
pub mod signals;
pub mod unsupported;
