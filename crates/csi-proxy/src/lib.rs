//! The daemon as a library: flags, log, metrics, serving, `doctor` and the Windows service.
//!
//! Two programs are made of it. `csi-proxy` serves the Windows node that it runs on, on named pipes
//! ([`daemon`]); `csi-proxy-sim` serves a simulated node. [`serve`] takes any
//! [`Backend`](serve::Backend) on any [`Endpoints`](serve::Endpoints).

// The modules, from the lowest: `platform`, `flags`, `program`, `log`, `pages`, `http_server`, `serve`,
// `service`, `doctor`, `command`, `daemon`.

pub mod command;
pub mod daemon;
pub mod doctor;
pub mod flags;
pub mod http_server;
pub mod log;
pub mod pages;
pub mod platform;
pub mod program;
pub mod serve;
pub mod service;

pub use program::VERSION;
