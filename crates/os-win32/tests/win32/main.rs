//! Tests of every primitive on Windows, or on Wine as far as Wine supports it.
//!
//! A test that needs a function which the system lacks prints a line `skipped: <test>: <why>`.
#![cfg(windows)]

mod control;
mod file_security;
mod files;
mod pipes;
mod scratch;
mod services;
mod skip;
mod system;
mod volumes;
mod wmi;
