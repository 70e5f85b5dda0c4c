//! The daemon as a library: flags, log, metrics, serving, `doctor` and the Windows service.
//!
//! Two programs are made of it. `csi-proxy` serves the Windows node that it runs on, on named pipes
//! ([`platform`]); `csi-proxy-sim` serves a simulated node. [`serve`] takes any
//! [`Backend`](serve::Backend) on any [`Endpoints`](serve::Endpoints).

pub mod command;
pub mod doctor;
pub mod flags;
pub mod http_server;
pub mod log;
pub mod pages;
pub mod platform;
pub mod program;
pub mod serve;
pub mod service;

/// The version of the program, with the commit if it is known, such as `0.1.0+1a2b3c4d5e6f`.
pub const VERSION: &str = env!("CSI_PROXY_VERSION");
